"""Read a Parquet file in batches whose size does not grow with it."""

import base64
import binascii
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from labeldp_runtime.columns.arrow import is_text

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
