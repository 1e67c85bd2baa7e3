"""Columns of pyarrow: arrays and chunked arrays, dictionary-encoded ones included."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from labeldp_runtime.columns import plain
from labeldp_runtime.columns.plain import WANTED, integer_ids, null_id
from labeldp_runtime.errors import IdError, LabelError
from labeldp_runtime.ids import ByteIds, Ids
from labeldp_runtime.labels import as_label_array


def is_column(values: Any) -> bool:
    """Whether this is an array, chunked or not."""
    return isinstance(values, pa.Array | pa.ChunkedArray)


def labels(values: Any, element_type: str, missing: str | int | float) -> NDArray[Any]:
    """Labels [n]; nulls become ``missing``."""
    if isinstance(values, pa.ChunkedArray):
        parts = [labels(chunk, element_type, missing) for chunk in values.chunks]
        return np.concatenate(parts) if parts else as_label_array([], element_type, missing)
    if pa.types.is_null(values.type):
        return as_label_array([None] * len(values), element_type, missing)
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _of_dictionary(values, element_type, missing)
    if element_type == "string":
        if not is_text(kind):
            raise LabelError(f"expected text as labels, got {kind}")
        return _of_dictionary(values.dictionary_encode(), "string", missing)
    if pa.types.is_decimal(kind):
        values = values.cast(pa.float64())
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise LabelError(f"expected numbers as labels, got {kind}")
    filled = pc.fill_null(values, pa.scalar(0, values.type)).to_numpy(zero_copy_only=False)
    return _with_missing(as_label_array(filled, element_type, missing), values, missing)


def like(values: Any, private: NDArray[Any]) -> Any:
    """Private labels [n] as an array, or in the chunks of ``values``."""
    kind = {"f": pa.float64(), "i": pa.int64()}.get(private.dtype.kind, pa.string())
    if not isinstance(values, pa.ChunkedArray):
        return pa.array(private, type=kind)
    ends = np.cumsum([0, *map(len, values.chunks)])
    parts = [pa.array(private[ends[i] : ends[i + 1]], type=kind) for i in range(len(ends) - 1)]
    return pa.chunked_array(parts, type=kind)


def ids(values: Any) -> Ids:
    """Ids [n]."""
    if values.null_count:
        raise null_id()
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()  # an array, in every version since 15 but for no chunks
        if isinstance(values, pa.ChunkedArray):
            values = pa.concat_arrays(values.chunks) if values.chunks else pa.array([], values.type)
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.storage
    if pa.types.is_dictionary(values.type):
        return ids(values.dictionary_decode())
    kind = values.type
    if pa.types.is_integer(kind):
        return integer_ids(values.to_numpy(zero_copy_only=False))
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return _of_fixed_bytes(values, kind.byte_width)
    if is_text(kind) or _is_binary(kind):
        return _of_bytes(values)
    if pa.types.is_null(kind) and not len(values):
        return integer_ids(np.empty(0, dtype=np.int64))
    raise IdError(f"{WANTED}, not {kind}")


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of the types of text."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is(kind, "string_view")
    )


def _is_binary(kind: Any) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or _is(kind, "binary_view")
    )


def _is(kind: Any, name: str) -> bool:
    """Types that older versions of pyarrow do not have."""
    return str(kind) == name


def _of_dictionary(values: Any, element_type: str, missing: str | int | float) -> NDArray[Any]:
    entries = values.dictionary  # few categories: each is converted once
    if element_type == "string" and is_text(entries.type):
        entries = as_label_array(_texts(entries), "string", missing)
    else:
        entries = labels(entries, element_type, missing)
    if not len(entries):
        return as_label_array([None] * len(values), element_type, missing)
    codes = pc.fill_null(values.indices, pa.scalar(0, values.indices.type))
    return _with_missing(entries[codes.to_numpy(zero_copy_only=False)], values, missing)


def _with_missing(array: NDArray[Any], values: Any, missing: str | int | float) -> NDArray[Any]:
    if values.null_count:
        array[values.is_null().to_numpy(zero_copy_only=False)] = missing
    return array


def _texts(values: Any) -> NDArray[Any]:
    """The texts as objects, None for nulls; bytes that are no UTF-8 never raise."""
    try:
        return np.asarray(values.to_numpy(zero_copy_only=False), dtype=object)
    except (pa.ArrowException, UnicodeDecodeError):
        cells = values.cast(pa.large_binary()).to_pylist()
        texts = [None if cell is None else cell.decode(errors="replace") for cell in cells]
        return np.array(texts, dtype=object)


def _of_bytes(values: Any) -> Ids:
    """Ids of text or bytes of any length."""
    kind: Literal["text", "binary"] = "text" if is_text(values.type) else "binary"
    try:
        wide = values.cast(pa.large_string() if kind == "text" else pa.large_binary())
    except pa.ArrowNotImplementedError:  # views, before pyarrow 18
        return plain.ids(values.to_pylist())
    values = wide.view(pa.large_binary())
    _, offsets, data = values.buffers()
    edges = np.frombuffer(offsets, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    if not len(values) or data is None:
        return ByteIds.of(kind, b"", np.zeros(len(values), dtype=np.int64))
    return ByteIds.of(kind, memoryview(data)[edges[0] : edges[-1]], np.diff(edges))


def _of_fixed_bytes(values: Any, width: int) -> ByteIds:
    data = values.buffers()[1]
    if data is None:
        return ByteIds.of_width(b"", len(values), width)
    start = values.offset * width
    return ByteIds.of_width(memoryview(data)[start:], len(values), width)
