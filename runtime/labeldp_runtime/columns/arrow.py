"""Columns of pyarrow: arrays and chunked arrays, however their values are stored."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labeldp_runtime.coded import Texts
from labeldp_runtime.columns import plain
from labeldp_runtime.columns.plain import WANTED, integer_ids
from labeldp_runtime.elements import float_in, number_in
from labeldp_runtime.errors import IdError
from labeldp_runtime.ids import ByteIds, Ids, null_id
from labeldp_runtime.labels import Cells, Declared, from_objects, unknown_type

_CHUNK_ROWS = 1 << 20


def is_column(values: Any) -> bool:
    """Whether this is an array, chunked or not."""
    return isinstance(values, pa.Array | pa.ChunkedArray)


def cells(values: Any) -> list[Cells]:
    """An array, or each chunk, taken apart."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return [_of_chunk(chunk) for chunk in chunks or [pa.nulls(0, values.type)]]


def like(values: Any, private: NDArray[Any] | Texts) -> Any:
    """Private labels [n] as an array, or as a chunked one if ``values`` are: in chunks of a fixed
    number of rows: the chunks of ``values`` may depend on the bytes of true labels."""
    if isinstance(private, Texts):
        texts = pa.array(private.entries, type=pa.string())
        return _in_chunks(values, private.codes, pa.string(), texts.take)
    kind = pa.float64() if private.dtype.kind == "f" else pa.int64()
    return _in_chunks(values, private, kind, lambda part: part)


def _in_chunks(values: Any, private: NDArray[Any], kind: Any, made: Callable[[Any], Any]) -> Any:
    """The column that ``made`` gives for private labels [n], in chunks if ``values`` have any."""
    if not isinstance(values, pa.ChunkedArray):
        return made(pa.array(private))
    starts = range(0, len(private), _CHUNK_ROWS)
    parts = [made(pa.array(private[start : start + _CHUNK_ROWS])) for start in starts]
    return pa.chunked_array(parts, type=kind)


def of_numbers(numbers: NDArray[Any]) -> Any:
    """An array of int64 or float64 [n], in the memory of numpy's.

    ``pa.array`` imports pandas, where there is one, and all of Arrow's functions.
    """
    kind, dtype = (pa.float64(), "f8") if numbers.dtype.kind == "f" else (pa.int64(), "i8")
    bare = np.ascontiguousarray(numbers, dtype)
    return pa.Array.from_buffers(kind, len(bare), [None, pa.py_buffer(bare)])


def ids(values: Any) -> Ids:
    """Ids [n]."""
    if values.null_count:
        raise null_id()
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()  # an array, in every version since 15 but for no chunks
        if isinstance(values, pa.ChunkedArray):
            values = pa.concat_arrays(values.chunks) if values.chunks else pa.array([], values.type)
    values = plain_array(values)
    if values.null_count:
        raise null_id()
    kind = values.type
    if pa.types.is_integer(kind):
        return integer_ids(_whatever_is_null(values))
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return _of_fixed_bytes(values, kind.byte_width)
    if is_text(kind) or str(kind) in ("binary", "large_binary", "binary_view"):
        return _of_bytes(values)
    if pa.types.is_null(kind) and not len(values):
        return integer_ids(np.empty(0, dtype=np.int64))
    raise IdError(f"{WANTED}, not {kind}")


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of the types of text."""
    return str(kind) in ("string", "large_string", "string_view")


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is one of the types of numbers, booleans included."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
    )


def plain_array(values: Any) -> Any:
    """An array in the type of its values: a dictionary, runs and an extension type are only how
    they are stored."""
    while True:
        if isinstance(values.type, pa.BaseExtensionType):
            values = _storage(values)
        elif pa.types.is_run_end_encoded(values.type):
            values = values.values.take(pa.array(_runs(values)))
        elif pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        else:
            return values


def _storage(values: Any) -> Any:
    """The array that an extension type stores; booleans of eight bits as booleans."""
    if values.type.extension_name == "arrow.bool8":
        return values.storage.cast(pa.bool_())
    return values.storage


def _runs(values: Any) -> NDArray[np.int64]:
    """[n] the run of each cell of a run-end-encoded array."""
    cells = values.offset + np.arange(len(values))
    return np.searchsorted(np.asarray(values.run_ends), cells, side="right")


def _of_chunk(values: Any) -> Cells:
    """An array taken apart, in a way that depends on its type, and never on nulls.

    Raises LabelError for a type that is not known here: no list of Python objects becomes one.
    """
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return _of_chunk(_storage(values))
    if pa.types.is_run_end_encoded(kind):
        return Cells.coded(_runs(values), _of_chunk(values.values))
    if pa.types.is_dictionary(kind):
        return Cells.coded(_codes(values), _of_chunk(values.dictionary))
    if is_text(kind) or pa.types.is_decimal(kind):
        encoded = distinct(values)
        entries = encoded.dictionary.to_pylist()
        if is_text(kind):
            own = Cells("text", kind, [entry.decode(errors="replace") for entry in entries])
        else:
            own = Cells("numbers", kind, entries)
        return Cells.coded(_codes(encoded), own)
    if not is_number(kind):
        if not pa.types.is_null(kind) and not _is_other(kind):
            raise unknown_type(kind)
        declared: Declared = "objects" if pa.types.is_null(kind) else "other"
        return Cells(declared, kind, [None] * len(values))
    declares: Declared = "integers" if pa.types.is_integer(kind) else "numbers"
    return Cells(declares, kind, _whatever_is_null(values), _nulls(values))


def _is_other(kind: Any) -> bool:
    """Whether a type holds neither numbers nor text for certain: times, bytes, lists, structs."""
    return bool(
        pa.types.is_temporal(kind)
        or pa.types.is_fixed_size_binary(kind)
        or str(kind) in ("binary", "large_binary", "binary_view")
        or (pa.types.is_nested(kind) and not pa.types.is_union(kind))
    )


def distinct(values: Any) -> Any:
    """The values of an array as a dictionary without nulls: of bytes for text, or of decimals."""
    kind = values.type
    if is_text(kind):
        return values.cast(pa.large_binary()).dictionary_encode()  # decodes nothing
    if kind.bit_width < 128:  # which has no dictionaries
        return values.cast(pa.decimal128(38, kind.scale)).dictionary_encode()
    return values.dictionary_encode()


def by_entries(encoded: Any, entries: NDArray[Any]) -> NDArray[Any]:
    """[n] the entry of each code of a dictionary array; the last entry is that of nulls."""
    return entries[_codes(encoded)]


def labels_of_cells(
    values: Any,
    element_type: str,
    missing: int | float,
    read: Callable[[bytes], Any] | None = None,
) -> NDArray[Any]:
    """Numbers [n], ``int64`` or ``float64``, of cells [n] of text; what is not a number is missing.

    ``read`` gives the number in one cell, or None; by default that of the grammar of ``elements``.
    """
    encoded = distinct(values)  # few cells differ, mostly: each is read once
    if read is None:
        read = float_in if element_type == "float64" else number_in
    numbers = [read(cell) for cell in encoded.dictionary.to_pylist()]
    return by_entries(encoded, from_objects([*numbers, None], element_type, missing))


def _codes(encoded: Any) -> NDArray[np.int64]:
    """[n] the codes of a dictionary array; −1 for nulls."""
    codes = _whatever_is_null(encoded.indices).astype(np.int64)
    codes[_nulls(encoded.indices)] = -1
    return codes


def _whatever_is_null(values: Any) -> NDArray[Any]:
    """[n] the numbers of an array, and anything in the places of nulls.

    From the buffers: ``to_numpy`` imports pandas where there is one, which takes longer than most
    calls.
    """
    data = values.buffers()[1]
    if data is None or not len(values):
        return np.zeros(len(values), dtype=np.int64)
    if pa.types.is_boolean(values.type):
        return _bits(data, values)
    dtype = np.dtype(_DTYPES.get(str(values.type), str(values.type)))
    return np.frombuffer(data, dtype, len(values), values.offset * dtype.itemsize)


def _nulls(values: Any) -> NDArray[np.bool_]:
    """[n] which values are null, found by the same steps where there is none."""
    valid = values.buffers()[0]
    every = b"\xff" * -(-(values.offset + len(values)) // 8)
    return ~_bits(every if valid is None else valid, values)


def _bits(data: Any, values: Any) -> NDArray[np.bool_]:
    """[n] of a buffer with a bit for each value, and for those before an array's offset."""
    start, skipped = divmod(values.offset, 8)
    octets = np.frombuffer(data, np.uint8, -(-(skipped + len(values)) // 8), start)
    bits = np.unpackbits(octets, count=skipped + len(values), bitorder="little")
    return bits[skipped:].view(np.bool_)


_DTYPES = {"bool": "?", "halffloat": "f2", "float": "f4", "double": "f8"}
"""Arrow's names of types where numpy has others."""


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


def arrays(values: Any) -> list[Any]:
    """The arrays of numpy or Arrow that hold a column."""
    return list(values.chunks) if isinstance(values, pa.ChunkedArray) else [values]
