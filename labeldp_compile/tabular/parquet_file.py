"""Read a Parquet file in batches whose size does not grow with it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from labeldp_compile.errors import refused
from labeldp_compile.tabular.csv_file import DAMAGED, MAX_COLUMNS

BATCH_BYTES = 1 << 25
BATCH_ROWS = (1 << 13, 1 << 17)  # least and most: few enough to stay in a core's cache
MAX_FOOTER_BYTES = 1 << 26
_BUFFER = (1 << 14, 1 << 20)  # least and most bytes of a column that are read at a time
_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError)


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
            if MAX_FOOTER_BYTES < footer <= size:
                raise refused(path, f"has a footer of more than {MAX_FOOTER_BYTES:,} bytes")
            file.seek(0)
            metadata = pq.read_metadata(file)
        if metadata.num_columns > MAX_COLUMNS:
            raise refused(path, f"has more than {MAX_COLUMNS:,} columns")
        return metadata, metadata.schema.to_arrow_schema()
    except _ERRORS:
        raise refused(path, "is empty, or not a Parquet file") from None


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
