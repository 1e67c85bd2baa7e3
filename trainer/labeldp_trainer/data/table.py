"""Reads the columns of a Parquet or CSV file that a config names: features, labels and ids.

Parquet files declare types. CSV files do not, and no type is inferred: features are read as the
config declares them, and labels and ids stay ``Cells`` until they are used.
"""

import contextlib
import hashlib
import math
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import singledispatch
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

from labeldp_compile.toolkit import (
    SPACE,
    TextForm,
    files_of,
    folder_columns,
    is_text,
    labels_of_cells,
    read_columns,
    require_format,
    with_decimal_points,
)
from labeldp_trainer.config.data import TableData, features_of
from labeldp_trainer.data.labels import Cells
from labeldp_trainer.errors import DataError

# Dates as numbers: days since 1970-01-01 in UTC, with their fraction, and what the calendar says.
#
# In a Parquet file, dates and timestamps have their own types. A cell of text is a date, or a
# date and a time, by ISO 8601:
#
#     cell = space* date [(T | blank) time [zone]] space*
#     date = YYYY-MM-DD | YYYYMMDD
#     time = hh:mm[:ss[.digits]] | hhmm[ss[.digits]]
#     zone = Z | [+-] hh[[:]mm]                                 UTC if there is none
#
# The calendar is the Gregorian one, also before it was used. A time counts to the millisecond.

_FORM = re.compile(
    rb"[0-9]{4}(-[0-9]{2}-[0-9]{2}|[0-9]{4})([T ][0-9:]{4,8}([.,][0-9]+)?(Z|[+-][0-9:]{2,5})?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
DAY_MS, HOUR_MS = _A_DAY["ms"], 3_600_000
_MOST_DAYS = 2**31  # what a date of 32 bits can hold


def days_of(column: pa.Array | Cells, name: str, path: Path) -> NDArray[np.float64]:
    """The days since 1970-01-01 of a column of dates [n].

    NaN for null and an empty cell; infinite for text that is no date. Raises DataError if the type
    of the column cannot hold dates.
    """
    if isinstance(column, Cells):
        return labels_of_cells(column.values, "float64", math.nan, _day_in)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if is_text(kind):
        return days_of(Cells(column.cast(pa.large_string()).fill_null("")), name, path)
    if pa.types.is_null(kind):
        return np.full(len(column), math.nan)
    if pa.types.is_date32(kind):
        days = column.cast(pa.int32()).cast(pa.float64())
        return np.asarray(days.to_numpy(zero_copy_only=False))
    if not (pa.types.is_date64(kind) or pa.types.is_timestamp(kind)):
        hint = "expected dates, timestamps or text in ISO 8601"
        raise DataError(f"{path}: the date column {name!r} holds {kind}; {hint}")
    a_day = _A_DAY["ms" if pa.types.is_date64(kind) else kind.unit]
    whole, rest = np.divmod(column.cast(pa.int64()).fill_null(0).to_numpy(), a_day)
    found = np.where(np.abs(whole) < _MOST_DAYS, whole + rest / a_day, math.inf)
    found[column.is_null().to_numpy(zero_copy_only=False)] = math.nan
    return found


def _day_in(cell: bytes) -> float | None:
    """The days since 1970-01-01 of one cell. None for an empty cell; infinite for no date."""
    cell = cell.strip(SPACE)
    if not cell:
        return None
    try:
        moment = datetime.fromisoformat(cell.decode()) if _FORM.fullmatch(cell) else None
    except ValueError:
        moment = None
    if moment is None:
        return math.inf
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    return since.days + (since.seconds * 10**6 + since.microseconds) / _A_DAY["us"]


@singledispatch
def date_numbers(days: Float64[Any, " n"]) -> list[Float64[Any, " n"]]:
    """Of each of ``DATE_FEATURES`` the numbers [n]. What is no finite number stays what it is."""
    known = np.isfinite(days)
    dates = calendar(np.rint(np.where(known, days, 0) * DAY_MS).astype(np.int64))
    *others, of_day = [np.where(known, number.astype(np.float64), days) for number in dates]
    return [days, *others, of_day / HOUR_MS]


def calendar(ms: Int64[Any, " n"]) -> tuple[Int64[Any, " n"], ...]:
    """Year, month, day of the month, weekday (Monday is 1) and milliseconds of the day, [n] each.

    ``ms`` are milliseconds since 1970-01-01. Whole numbers of any kind: arrays, and tensors of an
    exported graph. The algorithm is ``civil_from_days`` (Hinnant 2013): years begin in March.
    """
    days = ms // DAY_MS
    era, of_era = (days + 719_468) // 146_097, (days + 719_468) % 146_097  # of 400 years
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (year * 365 + year // 4 - year // 100)
    month = (of_year * 5 + 2) // 153  # 0 is March
    day = of_year - (month * 153 + 2) // 5 + 1
    return (
        era * 400 + year + month // 10,
        (month + 2) % 12 + 1,
        day,
        (days + 3) % 7 + 1,
        ms % DAY_MS,
    )


Floats = NDArray[np.float64]
_EXACT = 2**53  # beyond, a float may have been another integer


@dataclass(frozen=True)
class TableColumns:
    """Rows of a file.

    Attributes:
        source: names the file in messages.
        rows: n.
        numbers: [n, numeric features], those of dates last. NaN for a missing number or date;
            infinite for text that is none.
        texts: [n] for each categorical feature, null for missing text.
        others: [n] labels and ids by name, as Arrow arrays or ``Cells``.
        files: that were read, with the metadata of Parquet schemas.
        factors: [n] exposure and weights by name, with NaN and infinite as in ``numbers``.
        places: [n] of the rows in their table (``row_places``), if it is a whole one.
        owners: [n] numbers of the users, if the rows of each were brought together.
    """

    source: str
    rows: int
    numbers: Floats
    texts: tuple[pa.Array, ...]
    others: Mapping[str, pa.Array | Cells]
    files: tuple[tuple[Path, Mapping[bytes, bytes] | None], ...]
    factors: Mapping[str, Floats]
    places: Int64[np.ndarray, " n"] = field(default_factory=lambda: np.zeros(0, np.int64))
    owners: Int64[np.ndarray, " n"] | None = None

    @property
    def nbytes(self) -> int:
        """About the memory that it takes."""
        columns = (
            column.values if isinstance(column, Cells) else column
            for column in self.others.values()
        )
        return self.numbers.nbytes + sum(column.nbytes for column in (*self.texts, *columns))

    def batches(self) -> Iterator[Self]:
        """Itself, as of a whole table."""
        yield self

    def part(self, rows: slice) -> Self:
        """Only these rows."""
        return replace(
            self,
            rows=len(self.numbers[rows]),
            numbers=self.numbers[rows],
            texts=tuple(text[rows] for text in self.texts),
            others={name: own[rows] for name, own in self.others.items()},
            factors={name: factor[rows] for name, factor in self.factors.items()},
            places=self.places[rows],
        )

    def sample(self, chosen: Int64[np.ndarray, " m"]) -> Self:
        """The features of chosen rows, and no rows of labels and ids."""
        return replace(
            self,
            rows=len(chosen),
            numbers=self.numbers[chosen],
            texts=tuple(text.take(pa.array(chosen)) for text in self.texts),
            others={name: _no_rows_of(own) for name, own in self.others.items()},
            factors={name: factor[chosen] for name, factor in self.factors.items()},
            places=self.places[chosen],
        )


def _no_rows_of(column: pa.Array | Cells) -> pa.Array | Cells:
    """Of the same type; unlike a slice, it keeps no label in memory."""
    if isinstance(column, Cells):
        return Cells(pa.nulls(0, pa.large_string()))
    return pa.nulls(0, column.type)


_OF_FEATURES = ("numeric", "categorical", "dates")
_KEPT_BYTES = 1 << 30  # of batches that are not read again


class TableRows:
    """The rows of a table, batch by batch, as often as they are asked for: of a large table, the
    files are read each time."""

    def __init__(
        self, path: Path, config: TableData, others: Sequence[str], most: int | None = None
    ) -> None:
        """``path`` may be a folder of files; ``others`` are columns besides the features, the
        labels first; ``most`` limits how many rows are read."""
        self._path, self._config, self._others, self._most = path, config, others, most
        self._kept: list[TableColumns] | None = None
        self._rows: int | None = None

    places = owners = None

    @property
    def source(self) -> str:
        """Names the table in messages."""
        return str(self._path)

    @property
    def rows(self) -> int:
        """n. Raises DataError."""
        if self._rows is None:
            deque(self.batches(), maxlen=0)
        assert self._rows is not None
        return self._rows

    def batches(self) -> Iterator[TableColumns]:
        """All rows. Raises DataError, also if there are others than the first time."""
        if self._kept is not None:
            yield from self._kept
            return
        kept, taken, rows = list[TableColumns](), 0, 0
        for batch in self._read():
            rows, taken = rows + batch.rows, taken + batch.nbytes
            if taken <= _KEPT_BYTES:
                kept.append(batch)
            else:
                kept.clear()
            yield batch
        if not rows:
            raise DataError(f"{self._path}: has no rows")
        if self._rows not in (None, rows):
            raise DataError(f"{self._path}: was changed while it was read")
        self._kept, self._rows = kept or None, rows

    def sample(self, step: int) -> TableColumns:
        """About one row in ``step``, in order: those whose place it divides; no rows of labels and
        ids.

        Raises DataError."""
        found = [batch.sample(np.flatnonzero(batch.places % step == 0)) for batch in self.batches()]
        return joined(f"{self.source}: a sample", found)

    def labels(self) -> TableColumns:
        """All rows, without features. Raises DataError."""
        config = self._config.model_copy(update=dict.fromkeys(_OF_FEATURES, ()))
        rows = TableRows(self._path, config, self._others, self._most)
        rows._rows = self.rows
        return joined(self.source, list(rows.batches()))

    def blocks(self, size: int) -> Iterator[TableColumns]:
        """All rows, ``size`` at a time: labels can move the ends of batches, but not of blocks.

        Raises DataError.
        """
        waiting, there, row = list[TableColumns](), 0, 0
        for batch in self.batches():
            waiting.append(batch)
            there += batch.rows
            while there >= size or (there and row + there == self.rows):
                count = min(size, there)
                whole = joined(f"{self.source}: rows {row + 1:,} to {row + count:,}", waiting)
                yield whole.part(slice(count))
                waiting = [whole.part(slice(count, None))]
                row, there = row + count, there - count

    def _read(self) -> Iterator[TableColumns]:
        left = self._most
        for file in files_of(self._path):
            name = str(file.relative_to(self._path if file != self._path else file.parent))
            row = 0
            for _, batch in table_batches(file, self._config, self._others, most=left):
                places = row_places(name, np.arange(row, row := row + batch.rows))
                yield replace(batch, places=places)
                left = None if left is None else left - batch.rows
            if left == 0:
                return


def joined(source: str, parts: Sequence[TableColumns]) -> TableColumns:
    """The rows of all parts. Raises DataError if columns have different types."""
    return TableColumns(
        source=source,
        rows=sum(part.rows for part in parts),
        numbers=np.concatenate([part.numbers for part in parts]),
        texts=tuple(map(pa.concat_arrays, zip(*(part.texts for part in parts), strict=True))),
        others={
            name: whole_column(source, name, [part.others[name] for part in parts])
            for name in parts[0].others
        },
        files=tuple({file: known for part in parts for file, known in part.files}.items()),
        factors={
            name: np.concatenate([part.factors[name] for part in parts])
            for name in parts[0].factors
        },
        places=np.concatenate([part.places for part in parts]),
    )


def row_places(file: str, rows: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
    """A hash of where these rows of a file are.

    ``file`` is its path within the folder of the table. What Spark says of ``xxhash64(number,
    row)`` (the seed is 42), where the number is the first 60 bits of the path's SHA-256.
    """
    number = int(hashlib.sha256(file.encode()).hexdigest()[:15], 16)
    return hashed(rows, int(hashed(np.array(number))))


def hashed(numbers: NDArray[np.int64 | np.uint64], seed: int = 42) -> NDArray[np.int64]:
    """XXH64 of whole numbers: others for other numbers."""
    with np.errstate(over="ignore"):
        found = _xxhash64(numbers.astype(np.uint64), np.int64(seed).astype(np.uint64))
    return np.asarray(found).view(np.int64)


_PRIMES = [
    np.uint64(int(prime, 16))
    for prime in (
        "9E3779B185EBCA87",
        "C2B2AE3D27D4EB4F",
        "165667B19E3779F9",
        "85EBCA77C2B2AE63",
        "27D4EB2F165667C5",
    )
]


def _xxhash64(number: Any, seed: Any) -> Any:
    """XXH64 of the eight bytes of whole numbers (Collet's specification, version 0.1.1)."""
    one, two, three, four, five = _PRIMES
    found = (seed + five + np.uint64(8)) ^ (_turned(number * two, 31) * one)
    found = _turned(found, 27) * one + four
    for shift, prime in ((33, two), (29, three)):
        found = (found ^ (found >> np.uint64(shift))) * prime
    return found ^ (found >> np.uint64(32))


def _turned(bits: Any, left: int) -> Any:
    return (bits << np.uint64(left)) | (bits >> np.uint64(64 - left))


def whole_column(source: object, name: str, columns: Sequence[Any]) -> Any:
    """The column of all files. Raises DataError if they give it different types."""
    if isinstance(columns[0], Cells):
        return Cells(pa.concat_arrays([column.values for column in columns]))
    if isinstance(columns[0], np.ndarray):  # of an archive
        return np.concatenate(columns)
    if len({column.type for column in columns}) > 1:
        raise DataError(f"{source}: {name!r} has different types in different files")
    return pa.chunked_array(columns).combine_chunks()


def table_batches(
    path: Path,
    config: TableData,
    others: Sequence[str] = (),
    *,
    form: TextForm | None = None,
    every: bool = False,
    most: int | None = None,
) -> Iterator[tuple[pa.RecordBatch, TableColumns]]:
    """The rows of one file in batches, with the columns that a config names.

    ``form`` replaces the text form of the config. ``every`` also keeps all other columns in the
    batches. ``most`` limits how many rows are read. Raises DataError.
    """
    is_text = require_format(path).is_text
    names = list(dict.fromkeys((*features_of(config), *others)))
    labels = {*others[:1], config.label}
    form, numbers = form or config.form, set[str]()
    if is_text and form.decimal == ",":
        factors = config.factors.values()
        numbers = {*config.numeric, *factors, *(labels if config.classes is None else ())}
    for batch in read_columns(path, names, form, labels, every=every):
        part = batch if most is None else batch.slice(0, most)
        kept = with_decimal_points(part, numbers) if numbers else part
        yield part, table_columns(kept, config, others, path, is_text=is_text)
        if most is not None and not (most := most - len(part)):
            return


def table_columns(
    batch: pa.RecordBatch, config: TableData, others: Sequence[str], path: Path, *, is_text: bool
) -> TableColumns:
    """The columns of a batch of rows of a file. Raises DataError."""
    in_folders = folder_columns(path, ())

    def column(name: str) -> Any:
        found = batch.column(name)
        is_cells = is_text or (name in in_folders and pa.types.is_string(found.type))
        return Cells(found.cast(pa.large_string())) if is_cells else found

    columns = [feature_numbers(column(name), name, path) for name in config.numeric]
    for name in config.dates:
        columns += date_numbers(days_of(column(name), name, path))
    numbers = np.empty((len(batch), len(columns)))
    for j, found in enumerate(columns):
        numbers[:, j] = found
    texts = tuple(_texts(column(name), name, path) for name in config.categorical)
    files = ((path, None if is_text else batch.schema.metadata),)
    taken = {name: column(name) for name in others}
    factors = {name: feature_numbers(column(name), name, path) for name in config.factors.values()}
    return TableColumns(str(path), len(batch), numbers, texts, taken, files, factors)


def feature_numbers(column: pa.Array | Cells, name: str, path: Path) -> Any:
    """A column of numbers [n].

    CSV cells follow the runtime's grammar. Empty ones and the word ``nan`` are NaN; what
    else is no number is infinite.
    """
    if isinstance(column, Cells):
        with contextlib.suppress(pa.ArrowInvalid):  # Arrow reads most of that grammar faster
            read = pc.cast(column.names(), pa.float64())
            numbers = read.to_numpy(zero_copy_only=False)
            if np.count_nonzero(np.isnan(numbers)) == read.null_count:
                return numbers
        numbers = column.numbers()
        return np.where(np.isnan(numbers) & (column.read(_is_missing) == 0), np.inf, numbers)
    kind = column.type
    usable = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
    if not (usable or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
        is_date = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
        hint = f"list it under {'dates' if is_date else 'categorical'}"
        raise DataError(f"{path}: the numeric column {name!r} holds {kind}; {hint}")
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _is_missing(cell: bytes) -> bool:
    return cell.strip(SPACE).lower() in (b"", b"nan", b"-nan")


def _texts(column: pa.Array | Cells, name: str, path: Path) -> pa.Array:
    """A column of categories [n] as text.

    pandas makes floats of integers among which one is missing: whole numbers are taken as integers.
    """
    if isinstance(column, Cells):
        return column.names()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_floating(kind):
        numbers = np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
        missing = np.isnan(numbers)
        numbers = np.where(missing, 0, numbers)
        if not ((np.abs(numbers) <= _EXACT) & (np.rint(numbers) == numbers)).all():
            raise DataError(
                f"{path}: the categorical column {name!r} holds {kind}, and some are not whole "
                "numbers: list it under numeric, or write integers or text"
            )
        column = pa.array(numbers.astype(np.int64), mask=missing)
    if pa.types.is_nested(kind):
        raise DataError(
            f"{path}: the categorical column {name!r} holds {kind}, which cannot be categories"
        )
    return column.cast(pa.large_string())
