"""How many bytes each row of a column has: a function of its values alone.

``nbytes`` of Arrow cannot be used where sizes decide what others see: it also counts masks and
dictionaries, which depend on how a file was cut into pieces.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_runtime.columns.arrow import is_text
from numpy.typing import NDArray

_BYTES = ("binary", "large_binary", "binary_view")
_OFFSET = 4  # bytes that the length of a text or a list takes


def row_bytes(column: pa.Array) -> NDArray[np.int64] | int:
    """Bytes of each row [n], or of every row where all rows have as many."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return row_bytes(column.storage)
    if pa.types.is_dictionary(kind):
        entries = _each(column.dictionary)
        codes: Any = column.indices.cast(pa.int64()).fill_null(len(entries)).to_numpy()
        return np.append(entries, 0)[codes]
    if pa.types.is_struct(kind):
        return sum((row_bytes(child) for child in column.flatten()), start=0)
    if pa.types.is_nested(kind):
        return _of_lists(column)
    if is_text(kind) or str(kind) in _BYTES:
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


def _lengths(column: pa.Array) -> NDArray[np.int64]:
    import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

    if str(column.type).endswith("_view"):
        column = column.cast(pa.large_string() if is_text(column.type) else pa.large_binary())
    lengths: NDArray[np.int64] = pc.fill_null(pc.binary_length(column), 0).to_numpy()
    return lengths.astype(np.int64) + _OFFSET


def _of_lists(column: pa.Array) -> NDArray[np.int64]:
    kind = column.type
    inside = (column.keys, column.items) if pa.types.is_map(kind) else (column.values,)
    items: NDArray[np.int64] = np.sum([_each(part) for part in inside], axis=0, dtype=np.int64)
    before = np.concatenate([[0], np.cumsum(items)])
    if pa.types.is_fixed_size_list(kind):
        starts = (column.offset + np.arange(len(column))) * kind.list_size
        ends = starts + kind.list_size
    elif pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        starts = column.offsets.to_numpy()
        ends = starts + column.sizes.to_numpy()
    else:
        starts, ends = column.offsets.to_numpy()[:-1], column.offsets.to_numpy()[1:]
    found: NDArray[np.int64] = before[ends] - before[starts]
    # A null list counts nothing, even if there are values in its place.
    if column.null_count:
        found = np.where(column.is_valid().to_numpy(zero_copy_only=False), found, 0)
    return found + _OFFSET
