"""Stream a Parquet or CSV file batch by batch, whatever its size."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from labeldp_runtime import IdError
from labeldp_runtime.columns import read_ids
from labeldp_runtime.ids import Ids
from labeldp_verify.forms import Domain
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.tabular.count_column import check_count_type, count_array
from labeldp_compile.tabular.csv_file import MAX_ROW_BYTES, CsvFile, LongRowError, empty_is_null
from labeldp_compile.tabular.label_column import check_type

BATCH_BYTES = 1 << 25
BATCH_ROWS = (1 << 13, 1 << 20)  # least and most
_PARQUET_BUFFER = (1 << 14, 1 << 20)  # least and most bytes of a column that are read at a time
_CSV_SUFFIXES = (".csv",)
_PARQUET_SUFFIXES = (".parquet", ".pq")
# All that is said: the message of Arrow may quote a label.
_DAMAGED = "is damaged, and cannot be read to the end"


@dataclass(frozen=True)
class TableReader:
    """An open table with a label column of a usable type.

    Attributes:
        path: of the file.
        column: name of the label column.
        schema: of what ``batches`` yields.
        rows: number of labels if the file states it (Parquet, one label a row), else None.
        csv: the file if it is CSV, else None.
        all_columns: whether ``batches`` yields the other columns too.
        domain: of the labels.
        id_column: name of the column that names the labels, or None.
        count_column: of a histogram file, how many rows have the label; or None.
    """

    path: Path
    column: str
    schema: pa.Schema
    rows: int | None
    csv: CsvFile | None
    all_columns: bool
    domain: Domain
    id_column: str | None = None
    count_column: str | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in order. Raises DataError if the file turns out to be damaged."""
        names = [self.column, *([self.count_column] if self.count_column else [])]
        return self._read(None if self.all_columns else names)

    def columns(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of the rows, in order. Raises DataError like ``batches``."""
        return self._read(names)

    def require_column(self, name: str) -> None:
        """Raise DataError unless the table, opened with all columns, has this one, once."""
        require_column(self.path, name, list(self.schema.names))

    def parquet_metadata(self) -> pq.FileMetaData | None:
        """What a Parquet file says of its row groups; None of a CSV file. Raises DataError."""
        if self.csv is not None:
            return None
        try:
            return pq.read_metadata(self.path)
        except (pa.ArrowException, OSError):
            raise refused(self.path, "is damaged") from None

    def ids(self) -> Iterator[Ids]:
        """The ids in order; reads no other column. Raises DataError."""
        assert self.id_column is not None
        return (self.ids_of(batch) for batch in self._read([self.id_column]))

    def ids_of(self, batch: pa.RecordBatch) -> Ids:
        """The ids of one batch. Raises DataError for nulls (empty cells of a CSV file, too)."""
        column = batch.column(self.id_column)
        if self.csv is not None:
            column = empty_is_null(column)
        try:
            return read_ids(column)
        except IdError as error:
            raise refused(self.path, f"{self.id_column!r}: {error}") from None

    def counts_of(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """How many rows have the labels of one batch. Raises DataError for what is no count."""
        assert self.count_column is not None
        return count_array(self.path, self.count_column, batch.column(self.count_column))

    def _read(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        if self.csv is not None:
            yield from csv_batches(self.csv, columns or self.schema.names, self.column)
            return
        try:
            with _open_parquet(self.path) as file:
                yield from file.iter_batches(_batch_rows(file, columns), columns=columns)
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            raise refused(self.path, _DAMAGED) from None


def open_table(
    path: Path,
    column: str,
    domain: Domain,
    *,
    all_columns: bool,
    id_column: str | None = None,
    count_column: str | None = None,
) -> TableReader:
    """Open a table and check its label column, and its column of ids or counts if it needs one.

    Raises DataError if the file is missing, damaged or empty of columns, or if a column is missing
    or of the wrong type.
    """
    suffix = path.suffix.lower()
    if suffix not in (*_CSV_SUFFIXES, *_PARQUET_SUFFIXES):
        raise refused(path, "expected a .parquet or .csv file")
    if not path.is_file():
        raise refused(path, "there is no such file")
    csv, rows = None, None
    if suffix in _CSV_SUFFIXES:
        # Cells are kept as the text that they are; the label is parsed in number_cells.
        csv = open_csv(path)
        every = pa.schema([(name, pa.string()) for name in csv.names])
    else:
        try:
            with _open_parquet(path) as file:
                every, rows = file.schema_arrow, file.metadata.num_rows
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            raise refused(path, "is empty, or not a Parquet file") from None
    names = list(every.names)
    require_column(path, column, names)
    if csv is None:
        check_type(domain, column, every.field(column).type)
    elif repeated := sorted({name for name in names if names.count(name) > 1}):
        raise refused(path, f"has several columns called {repeated[0]!r}")
    schema = every if all_columns else pa.schema([every.field(column)])
    if count_column is not None:
        require_column(path, count_column, names)
        if csv is None:
            check_count_type(path, count_column, every.field(count_column).type)
        rows = None  # the file's own rows are labels that occur, not occurrences
    table = TableReader(
        path, column, schema, rows, csv, all_columns, domain, id_column, count_column
    )
    if id_column is not None:
        require_column(path, id_column, names)
        if id_column == column:
            raise refused(path, f"{column!r} cannot be both the label and its id")
        table.ids_of(
            pa.RecordBatch.from_pylist([], schema=every)
        )  # refuses the type, if it is wrong
    return table


def require_column(path: Path, column: str, names: list[str]) -> None:
    """Raise DataError, with the nearest name, unless exactly one column has this name."""
    if names.count(column) > 1:
        raise refused(path, f"has several columns called {column!r}")
    if column not in names:
        close = difflib.get_close_matches(column, names, n=1)
        known = ", ".join(map(repr, names[:12])) or "none"
        hint = f"did you mean {close[0]!r}?" if close else f"its columns: {known}"
        raise refused(path, f"has no column {column!r}; {hint}")


def open_csv(path: Path) -> CsvFile:
    """Open a CSV file. Raises DataError unless it begins with a header."""
    try:
        return CsvFile.open(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError, LongRowError):
        kind = "CSV file in UTF-8, with commas and a header"
        raise refused(path, f"is empty, or not a {kind}") from None


def csv_batches(csv: CsvFile, columns: list[str], label: str) -> Iterator[pa.RecordBatch]:
    """``CsvFile.batches``, whose errors are DataErrors."""
    try:
        yield from csv.batches(columns, label)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        reason = "a row has another length, or another column text that is no UTF-8"
        raise refused(csv.path, f"{_DAMAGED}: {reason}") from None
    except LongRowError:
        raise refused(csv.path, f"has a row of more than {MAX_ROW_BYTES:,} bytes") from None


def _open_parquet(path: Path) -> pq.ParquetFile:
    """The file, read in small pieces: with pre_buffer, whole row groups are kept, and pile up."""
    metadata = pq.read_metadata(path)
    least, most = _PARQUET_BUFFER
    buffer = max(least, min(most, BATCH_BYTES // max(metadata.num_columns, 1)))
    return pq.ParquetFile(path, metadata=metadata, pre_buffer=False, buffer_size=buffer)


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
