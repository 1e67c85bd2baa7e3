"""Which rows have labels that no longer change, by a public column of times and a fixed clock.

No label is looked at. Times are compared as whole microseconds: no float decides. A time without a
zone is UTC, and a date is its first moment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_runtime.columns.arrow import is_text
from labeldp_verify.claims import MatureClaims, seconds_of
from numpy.typing import NDArray

from labeldp_compile.errors import InputError, refused
from labeldp_compile.tabular.columns import value_type
from labeldp_compile.tabular.header import require_column
from labeldp_compile.tabular.reader import TableReader

_MICROSECONDS = pa.timestamp("us", "UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
EXPECTED = "a date or time as in 2026-11-26 or 2026-11-26T08:30:00Z"


def time_of(text: str) -> datetime:
    """A time of ISO 8601, of UTC if it names no zone. ValueError for anything else."""
    if not _TIME.fullmatch(text):
        raise ValueError(f"expected {EXPECTED}")
    time = datetime.fromisoformat(text)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


@dataclass
class Maturity:
    """The rule of an artifact at one moment.

    Attributes:
        rule: what the certificate declares.
        as_of: the moment, in UTC.
        waiting: rows that were not mature, so far.
    """

    rule: MatureClaims
    as_of: datetime
    waiting: int = field(default=0, init=False)

    @classmethod
    def of(cls, rule: MatureClaims, as_of: str | None) -> Maturity:
        """At ``--as-of``, which is not in the future, or now. Raises InputError."""
        now = datetime.now(UTC)
        try:
            time = now if as_of is None else time_of(as_of)
        except ValueError as error:
            raise InputError(f"--as-of: {error}, got {as_of!r}") from None
        if time > now:
            raise InputError("--as-of: is in the future, when labels may still change")
        return cls(rule, time)

    def __str__(self) -> str:
        """The moment, to the second, in UTC."""
        return f"{self.as_of:%Y-%m-%dT%H:%M:%SZ}"

    def require(self, table: TableReader) -> None:
        """Raise DataError unless every file has the column, and it can hold times."""
        for file in table.files:
            require_column(file.path, self.rule.by, list(file.schema.names), file.csv)
            if self.rule.by in file.label_columns:
                raise refused(file.path, f"{self.rule.by!r} cannot be both the label and its time")
            if not _holds_times(file.schema.field(self.rule.by).type):
                raise refused(file.path, f"{self.rule.by!r}: expected a column of dates or times")

    def __call__(self, file: TableReader, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which rows [n] are mature. Raises DataError for a null, or for text that is no time."""
        import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

        name = self.rule.by
        values = batch.column(name)
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if is_text(values.type):
            values = _read(file, name, values)
        elif not pa.types.is_null(values.type):
            zone = values.type.tz if pa.types.is_timestamp(values.type) else None
            exact = pc.CastOptions(pa.timestamp("us", zone), allow_time_truncate=True)
            try:
                values = pc.cast(values, options=exact)
            except pa.ArrowInvalid:
                raise refused(file.path, f"{name!r}: holds a time that is out of range") from None
        if values.null_count:
            raise refused(
                file.path,
                f"{name!r}: a time is null, so nobody knows when its label is "
                "mature: the column must be set before the label is known",
            )
        latest = (self.as_of - _EPOCH) // timedelta(microseconds=1)
        latest -= seconds_of(self.rule.after) * 1_000_000
        mature: NDArray[np.bool_] = values.cast(pa.int64()).to_numpy() <= latest
        self.waiting += int(np.count_nonzero(~mature))
        return mature


def _holds_times(kind: pa.DataType) -> bool:
    value = value_type(kind)
    return (
        is_text(value)
        or pa.types.is_date(value)
        or pa.types.is_timestamp(value)
        or pa.types.is_null(value)
    )


def _read(file: TableReader, name: str, cells: pa.Array) -> pa.Array:
    """Cells [n] of text as times; each different text is read once."""
    coded = cells.dictionary_encode()
    times: list[Any] = []
    for text in coded.dictionary.to_pylist():
        try:
            times.append(time_of(text.strip()) if text.strip() else None)
        except ValueError:
            raise refused(file.path, f"{name!r}: holds text that is not {EXPECTED}") from None
    return pa.array(times, _MICROSECONDS).take(coded.indices)
