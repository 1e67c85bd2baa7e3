"""Which labels are mature: times of every type, to the microsecond, and nothing else decides."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_verify.claims import MatureClaims, seconds_of
from labeldp_verify.forms import IntegerDomain

from labeldp_compile.errors import InputError
from labeldp_compile.tabular.maturity import Maturity, time_of
from labeldp_compile.tabular.reader import open_table

AS_OF = dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC)
EDGE = dt.datetime(2024, 2, 1, 12, tzinfo=dt.UTC) - dt.timedelta(days=1)  # 30 days before
MICRO = dt.timedelta(microseconds=1)


def mature(path, column, rule="P30D"):
    """Of each row whether it is mature at ``AS_OF``."""
    table = {"at": column, "y": pa.array(np.zeros(len(column), np.int64))}
    (pa_csv.write_csv if path.suffix == ".csv" else pq.write_table)(pa.table(table), path)
    found = Maturity(MatureClaims(rule, "at"), AS_OF)
    reader = open_table(path, "y", IntegerDomain(0, 3), all_columns=True)
    found.require(reader)
    rows = [found(reader, batch).tolist() for batch in reader.batches()]
    flat = [one for part in rows for one in part]
    assert found.waiting == flat.count(False)
    return flat


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_timestamps_of_every_unit_and_zone(tmp_path, unit, zone):
    step = {"s": 10**6, "ms": 1000}.get(unit, 1) * MICRO
    times = [time if zone else time.replace(tzinfo=None) for time in (EDGE, EDGE + step)]
    column = pa.array(times, pa.timestamp(unit, zone))
    assert mature(tmp_path / "t.parquet", column) == [True, False]
    assert mature(tmp_path / "t.parquet", column.dictionary_encode()) == [True, False]


def test_dates_are_their_first_moment(tmp_path):
    days = [dt.date(2024, 1, 31), dt.date(2024, 2, 1)]
    for kind in (pa.date32(), pa.date64()):
        assert mature(tmp_path / "t.parquet", pa.array(days, kind)) == [True, False]


def test_text_of_iso_8601(tmp_path):
    cells = {
        "2024-01-31T12:00:00Z": True,
        "2024-01-31 12:00:00": True,
        " 2024-01-31T12:00 ": True,
        "2024-01-31T13:00:00.000000+01:00": True,
        "2024-01-31T12:00:00.000001Z": False,
        "2024-01-31T12:00:00-00:30": False,
        "2024-01-31": True,
        "2024-02-01": False,
    }
    for name in ("t.csv", "t.parquet"):
        assert mature(tmp_path / name, pa.array(cells)) == list(cells.values())


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([EDGE, None]), "a time is null"),
        (pa.array(["2024-01-31", ""]), "a time is null"),
        (pa.nulls(2), "a time is null"),
        (pa.array(["31.1.2024", "2024-01-31"]), "holds text that is not a date or time"),
        (pa.array(["2024-02-30", "2024-01-31"]), "holds text that is not a date or time"),
        (pa.array(["2024-W05-3", "2024-01-31"]), "holds text that is not a date or time"),
        (pa.array([1, 2]), "expected a column of dates or times"),
        (pa.array([1.5, 2]), "expected a column of dates or times"),
        (pa.array([2**62, 0], pa.timestamp("ms")), "out of range"),
    ],
)
def test_what_is_no_time_is_refused(tmp_path, column, words):
    with pytest.raises(InputError, match=words):
        mature(tmp_path / "t.parquet", column)


def test_durations():
    given = {"P30D": 30 * 86400, "P4W": 28 * 86400, "PT36H": 36 * 3600, "P1DT1H1M1S": 90061}
    assert {text: seconds_of(text) for text in given} == given
    for text in (
        "",
        "P",
        "PT",
        "P1DT",
        "P1M",
        "P1Y",
        "30D",
        "P-1D",
        "P1.5D",
        "p1d",
        "P1W1D",
        "P1D\n",
    ):
        with pytest.raises(ValueError, match="expected a duration"):
            seconds_of(text)


def test_the_clock_is_fixed_and_never_ahead():
    rule = MatureClaims("P1D", "at")
    assert str(Maturity.of(rule, "2024-01-01")) == "2024-01-01T00:00:00Z"
    assert str(Maturity.of(rule, "2024-01-01T01:00+02:00")) == "2023-12-31T23:00:00Z"
    for text in ("2999-01-01", "yesterday", ""):
        with pytest.raises(InputError, match="--as-of"):
            Maturity.of(rule, text)
    before = dt.datetime.now(dt.UTC)
    assert before <= Maturity.of(rule, None).as_of <= dt.datetime.now(dt.UTC)
    assert time_of("2024-01-01").tzinfo is dt.UTC
