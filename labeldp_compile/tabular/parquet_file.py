"""Read Parquet in batches of bounded size; write it in a layout that no true label decides.

The layout of a written file depends on the number of rows and on the columns written alone. The
batches and dictionaries in which rows arrive depend on how the input was cut, and so perhaps on the
bytes of true labels. Nothing of that reaches the file: a row group is gathered row by row, and each
of its columns is written as one array. Where a row group ends is not decided by Arrow's ``nbytes``,
which also counts masks and dictionaries.
"""

import base64
import binascii
import contextlib
import io
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from labeldp_runtime.columns.arrow import is_text
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.tabular.csv_file import DAMAGED, MAX_COLUMNS

BATCH_BYTES = 1 << 25
BATCH_ROWS = (1 << 13, 1 << 17)  # least and most: few enough to stay in a core's cache
MAX_FOOTER_BYTES = 1 << 26
_BUFFER = (1 << 14, 1 << 20)  # least and most bytes of a column that are read at a time
_MAGIC, _MAGIC_ENCRYPTED, _ARROW = b"PAR1", b"PARE", b"ARROW:schema"
_ENCRYPTED = "is encrypted: write it without encryption first"
_SIGNATURE_BYTES = 28  # behind a footer that is not encrypted, of a file with encrypted columns
_NEXT_BYTES = b"\x18"  # header of the next field, of bytes
_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError, binascii.Error)


def read_footer(path: Path) -> tuple[pq.FileMetaData, pa.Schema]:
    """The metadata of a Parquet file, and its schema. Raises DataError.

    A footer with too many bytes or columns is refused: in memory an entry takes a hundred times as
    many bytes as in the file.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 8, 0))
            footer = int.from_bytes(file.read(4), "little")
            if file.read(4) == _MAGIC_ENCRYPTED:
                raise refused(path, _ENCRYPTED)
            if MAX_FOOTER_BYTES < footer <= size:
                raise refused(path, f"has a footer of more than {MAX_FOOTER_BYTES:,} bytes")
            file.seek(0)
            metadata = pq.read_metadata(file)
            if footer == metadata.serialized_size + _SIGNATURE_BYTES:
                raise refused(path, _ENCRYPTED)
            if metadata.num_columns > MAX_COLUMNS:
                raise refused(path, f"has more than {MAX_COLUMNS:,} columns")
            schema = metadata.schema.to_arrow_schema()
            if any(map(_is_narrow, schema.types)):
                file.seek(max(size - 8 - footer, 0))
                metadata = _widened(metadata, file.read(footer))
                schema = metadata.schema.to_arrow_schema()
        return metadata, schema
    except _ERRORS:
        raise refused(path, "is empty, or not a Parquet file") from None


def _is_narrow(kind: pa.DataType) -> bool:
    """Whether it is a dictionary of text whose indices Arrow narrows after it read them."""
    return (
        pa.types.is_dictionary(kind)
        and is_text(kind.value_type)
        and not pa.types.is_int32(kind.index_type)
    )


def _widened(metadata: pq.FileMetaData, footer: bytes) -> pq.FileMetaData:
    """The metadata of a file whose dictionaries of text have indices of 32 bits.

    To narrow indices, Arrow looks whether the entries are UTF-8, and fails if one is not: a label
    would decide whether its table is refused. Arrow's own schema is in the footer (Thrift's compact
    protocol), as a key, the header of the next field, and the length and the bytes of the value.
    """
    stated = (metadata.metadata or {}).get(_ARROW)
    if stated is None:
        return metadata
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stated)))
    for place, field in enumerate(schema):
        if _is_narrow(field.type):
            kind = pa.dictionary(pa.int32(), field.type.value_type, field.type.ordered)
            schema = schema.set(place, field.with_type(kind))
    wide = base64.b64encode(schema.serialize().to_pybytes())
    before, found, after = footer.rpartition(_ARROW + _NEXT_BYTES + _varint(len(stated)) + stated)
    if not found:
        return metadata
    footer = before + _ARROW + _NEXT_BYTES + _varint(len(wide)) + wide + after
    return pq.read_metadata(
        pa.BufferReader(_MAGIC + footer + len(footer).to_bytes(4, "little") + _MAGIC)
    )


def _varint(number: int) -> bytes:
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def parquet_batches(path: Path, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    """The rows in order, of all columns if none are named. Raises DataError.

    The file is read in small pieces: with pre_buffer, whole row groups are kept, and pile up.
    """
    metadata, _ = read_footer(path)
    least, most = _BUFFER
    buffer = max(least, min(most, BATCH_BYTES // max(metadata.num_columns, 1)))
    try:
        with pq.ParquetFile(path, metadata=metadata, pre_buffer=False, buffer_size=buffer) as file:
            yield from file.iter_batches(_batch_rows(file, columns), columns=columns)
    except _ERRORS:
        raise refused(path, DAMAGED) from None


def _batch_rows(file: pq.ParquetFile, columns: list[str] | None) -> int:
    """Rows whose data have about ``BATCH_BYTES``, in the file without compression and as arrays.

    Arrays may be much larger where a column has few values; their size is that of the first rows.
    """
    least, most = BATCH_ROWS
    metadata = file.metadata
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    width = sum(group.total_byte_size for group in groups) / max(metadata.num_rows, 1)
    for batch in file.iter_batches(least, columns=columns):
        width = max(width, batch.nbytes / max(len(batch), 1))
        break
    return max(least, min(most, int(BATCH_BYTES / max(width, 1))))


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


# A row group ends with the row that fills one of these.
GROUP_BYTES = 1 << 27
GROUP_ROWS = 1 << 20
_SAMPLE = 1 << 16  # rows that say whether numbers repeat
_CODECS = {name: name for name in ("SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD")}
_CODECS |= {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}


class ParquetSink:
    """Gathers rows until they fill a row group, and writes it.

    Row groups end after ``GROUP_ROWS`` rows, or with the row whose bytes fill ``GROUP_BYTES``, of
    the columns that are written: true labels that are replaced do not count. Numbers that
    hardly repeat in the first rows get no dictionary.

    ``like`` is the metadata of the input (None: no Parquet): leaf columns get the codec that the
    one at the same place has there, which is an option of its writer. Levels of compression are
    not known from a file: they are those that pyarrow chooses. Row groups, dictionaries and
    encodings of the input are not copied, since true labels may have decided them.

    ``drawn`` are the private columns.
    """

    def __init__(
        self,
        file: BinaryIO,
        schema: pa.Schema,
        like: pq.FileMetaData | None,
        drawn: Collection[str],
    ) -> None:
        """Write nothing yet."""
        fields = [field.with_type(written_type(field.type)) for field in schema]
        self._schema = pa.schema(fields, metadata=schema.metadata)
        self._file, self._like, self._drawn = file, like, drawn
        self._writer: pq.ParquetWriter | None = None
        self._begin()

    def write(self, batch: pa.RecordBatch) -> None:
        """Take the batch, and write the row groups that are full."""
        ends = np.cumsum(_bytes_of(batch))
        start = 0
        while start < len(batch):
            before = int(ends[start - 1]) if start else 0
            full = int(np.searchsorted(ends, before + GROUP_BYTES - self._bytes)) + 1
            end = min(full, start + GROUP_ROWS - self._rows, len(batch))
            for column, pieces in zip(batch.columns, self._pending, strict=True):
                pieces.append(column.slice(start, end - start))
            self._rows += end - start
            self._bytes += int(ends[end - 1]) - before
            start = end
            if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
                self._write_group()

    def finish(self) -> None:
        """Write what is left, and the end of the file."""
        if self._rows or self._writer is None:
            self._write_group()
        assert self._writer is not None
        self._writer.close()

    def abandon(self) -> None:
        """Forget what is not written; otherwise pyarrow writes the end of the file later."""
        if self._writer is None:
            return
        with contextlib.suppress(Exception):  # the disk may be full
            self._writer.close()
        self._writer.is_open = False

    def _begin(self) -> None:
        self._pending: list[list[pa.Array]] = [[] for _ in self._schema]
        self._rows = self._bytes = 0

    def _write_group(self) -> None:
        # One column after another, so that no more than one is held twice.
        columns = [whole_column(field.type, self._pending.pop(0)) for field in self._schema]
        table = pa.Table.from_arrays(columns, schema=self._schema)
        del columns
        self._begin()
        if self._writer is None:
            options = _options(table, self._like, self._drawn)
            self._writer = pq.ParquetWriter(self._file, self._schema, **options)
        if len(table):
            self._writer.write_table(table, row_group_size=len(table))
        del table
        pa.default_memory_pool().release_unused()


def _bytes_of(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Bytes of each row [n] of a batch."""
    found = sum((row_bytes(column) for column in batch.columns), start=np.int64(0))
    return np.broadcast_to(np.asarray(found, dtype=np.int64), (len(batch),))


def _options(
    table: pa.Table, like: pq.FileMetaData | None, drawn: Collection[str]
) -> dict[str, Any]:
    """Arguments of a ParquetWriter, by the first row group [n] and the codecs of the input."""
    file = io.BytesIO()
    pq.write_table(table.schema.empty_table(), file)
    leaves = pq.read_metadata(file).schema
    paths = [leaves.column(i).path for i in range(len(leaves))]
    columns = zip(table.schema.names, table.columns, strict=True)
    plain = {name for name, column in columns if name not in drawn and not _repeats(column)}
    options: dict[str, Any] = {"use_dictionary": [path for path in paths if path not in plain]}
    if like is not None and like.num_row_groups:
        group = like.row_group(0)
        theirs = [group.column(i).compression for i in range(group.num_columns)]
        # Names of nested columns may be spelled in another way, so the place decides.
        places = (min(i, len(theirs) - 1) for i in range(len(paths)))
        codecs = [_CODECS.get(theirs[place], "SNAPPY") for place in places]
        options["compression"] = dict(zip(paths, codecs, strict=True))
    return options


def _repeats(column: pa.ChunkedArray) -> bool:
    """Whether to try a dictionary: not for numbers that hardly repeat in the first rows. Filling it
    would then cost more than all other work on the column."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)):
        return True
    first = column.slice(0, _SAMPLE)
    return 2 * len(first.unique()) <= len(first) or not len(first)


def written_type(kind: pa.DataType) -> pa.DataType:
    """The type in which a column is written: indices of 32 bits, so that the entries of any row
    group fit; no dictionaries inside other types, nor of what Parquet reads back without one."""
    if pa.types.is_dictionary(kind):
        value = kind.value_type
        kept = is_text(value) or pa.types.is_binary(value) or pa.types.is_large_binary(value)
        return pa.dictionary(pa.int32(), value, kind.ordered) if kept else value
    plain = _plain(kind)
    return kind if plain == kind else plain


def whole_column(kind: pa.DataType, pieces: Sequence[pa.Array]) -> pa.Array:
    """The pieces [n] as one array of the type that ``written_type`` gave, however they are cut.

    A reader gives every piece its own dictionary, with the entries of the input's row group in
    their order. A written dictionary has the entries that occur, sorted. Only a dictionary that is
    declared as ordered keeps its entries and their order, which are part of its type.
    """
    if not pieces:
        return pa.nulls(0, kind)
    if not pa.types.is_dictionary(kind):
        return pa.concat_arrays([p if p.type == kind else p.cast(kind) for p in pieces])
    whole = pa.concat_arrays([_wide(piece, ordered=kind.ordered) for piece in pieces])
    return whole if kind.ordered else _sorted(whole.cast(kind.value_type))


def _wide(column: pa.DictionaryArray, *, ordered: bool) -> pa.DictionaryArray:
    indices = column.indices.cast(pa.int32())
    return pa.DictionaryArray.from_arrays(indices, column.dictionary, ordered=ordered)


def _sorted(values: pa.Array) -> pa.DictionaryArray:
    """Values [n] with a dictionary of those that occur, by their bytes."""
    import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

    encoded = values.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    place = np.empty(len(order), dtype=np.int32)
    place[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    indices = pa.array(place).take(encoded.indices)
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary.take(order))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type with the values of dictionaries in their place."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([_field(child) for child in kind])
    if pa.types.is_map(kind):
        return pa.map_(_field(kind.key_field), _field(kind.item_field), kind.keys_sorted)
    if pa.types.is_large_list(kind):
        return pa.large_list(_field(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_field(kind.value_field), kind.list_size)
    return pa.list_(_field(kind.value_field)) if pa.types.is_list(kind) else kind


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain(field.type))
