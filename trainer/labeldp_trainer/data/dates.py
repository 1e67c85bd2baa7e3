"""Dates as numbers: days since 1970-01-01 in UTC, with their fraction, and what the calendar says.

In a Parquet file, dates and timestamps have their own types. A cell of text is a date, or a date
and a time, by ISO 8601:

    cell = space* date [(T | blank) time [zone]] space*
    date = YYYY-MM-DD | YYYYMMDD
    time = hh:mm[:ss[.digits]] | hhmm[ss[.digits]]
    zone = Z | [+-] hh[[:]mm]                                 UTC if there is none

The calendar is the Gregorian one, also before it was used. A time counts to the millisecond.
"""

import math
import re
from datetime import UTC, datetime
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

from labeldp_compile.toolkit import SPACE, is_text, labels_of_cells
from labeldp_trainer.data.labels import Cells
from labeldp_trainer.errors import DataError

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
