"""How many bytes each row of a column has: a function of its values alone.

``nbytes`` of Arrow will not do where sizes decide what others see: it also counts masks and
dictionaries, which depend on how a file was read, piece by piece.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_runtime.columns.arrow import is_text
from numpy.typing import NDArray

_OFFSET = 4  # bytes that the length of a text or a list takes


def row_bytes(column: pa.Array) -> NDArray[np.int64] | int:
    """Bytes of each row [n], or of every row where all rows have as many."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return row_bytes(column.storage)
    if pa.types.is_dictionary(kind):
        entries = _each(column.dictionary)
        codes: Any = column.indices.cast(pa.int64()).fill_null(len(entries)).to_numpy()
        found: NDArray[np.int64] = np.append(entries, 0)[codes]
        return found
    if pa.types.is_struct(kind):
        return sum((row_bytes(child) for child in column.flatten()), start=0)
    if pa.types.is_nested(kind):
        return _of_lists(column)
    if is_text(kind) or _is_bytes(kind):
        return _lengths(column)
    return _width(kind)


def _each(column: pa.Array) -> NDArray[np.int64]:
    """[n] the same, one by one."""
    return np.broadcast_to(np.asarray(row_bytes(column), dtype=np.int64), (len(column),))


def _width(kind: pa.DataType) -> int:
    try:
        return int(-(-kind.bit_width // 8))
    except ValueError:  # null, and what no Parquet file holds
        return 0


def _is_bytes(kind: pa.DataType) -> bool:
    views = str(kind) == "binary_view"
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or views)


def _lengths(column: pa.Array) -> NDArray[np.int64]:
    # From the buffers where there are offsets: a function of Arrow's needs all of them loaded.
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    if str(column.type).endswith("_view"):
        column = column.cast(pa.large_string() if is_text(column.type) else pa.large_binary())
        wide = True
    data = column.buffers()[1]
    if data is None or not len(column):
        return np.full(len(column), _OFFSET, dtype=np.int64)
    ends = np.frombuffer(data, np.int64 if wide else np.int32)
    ends = ends[column.offset : column.offset + len(column) + 1]
    return _present(column, np.diff(ends).astype(np.int64)) + _OFFSET


def _of_lists(column: pa.Array) -> NDArray[np.int64]:
    kind = column.type
    items = _each(column.keys) + _each(column.items) if pa.types.is_map(kind) else None
    items = _each(column.values) if items is None else items
    before = np.concatenate([[0], np.cumsum(items)])
    if pa.types.is_fixed_size_list(kind):
        ends = (column.offset + np.arange(len(column) + 1)) * kind.list_size
    else:
        ends = column.offsets.to_numpy()
    return _present(column, np.diff(before[ends])) + _OFFSET


def _present(column: pa.Array, found: NDArray[np.int64]) -> NDArray[np.int64]:
    """[n] nothing where the column is null, whatever stands in the place of a null."""
    if not column.null_count:
        return found
    return np.where(column.is_valid().to_numpy(zero_copy_only=False), found, 0)
