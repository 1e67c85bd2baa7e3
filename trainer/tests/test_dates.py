"""Columns of dates become numbers of the calendar: in files, runs, predictions and exports."""

import csv
import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import labeldp_trainer.export.onnx.model  # noqa: F401  # what each function is in a graph
import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_trainer import DataError, parse_config, train
from labeldp_trainer.config.data import DATE_FEATURES
from labeldp_trainer.data import load_data
from labeldp_trainer.data.labels import Cells
from labeldp_trainer.data.table import date_numbers, days_of
from labeldp_trainer.export.onnx.model import DOUBLE, ModelGraph

from trainer.tests.command import labeldp
from trainer.tests.trainer_helpers import CONFIG, table

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DATES = CONFIG.replace("categorical: [c]", "categorical: [c]\n  dates: [at]")
MS = timedelta(milliseconds=1)
TIMES = pa.timestamp("ms", "UTC")


def moments(rows, seed=0):
    """Times to the millisecond from 1950 to 2090, as Python's."""
    random = np.random.default_rng(seed)
    return [EPOCH + MS * int(ms) for ms in random.integers(-631e9, 3786e9, rows)]


def days(moment):
    return (moment - EPOCH) / timedelta(days=1)


def with_dates(rows, seed=0, values=None, kind=TIMES):
    """The small table with a column ``at``; the label depends on its month, too."""
    values = moments(rows, seed) if values is None else values
    return table(rows, seed).append_column("at", pa.array(values, kind))


def write(directory, suffix="parquet", rows=300, **changes):
    for seed, part in enumerate(("train", "test")):
        made, path = with_dates(rows, seed, **changes), directory / f"{part}.{suffix}"
        pq.write_table(made, path) if suffix == "parquet" else pa_csv.write_csv(made, path)


def load(directory, text=DATES):
    return load_data(parse_config(text, "t.yaml", directory), ("y",), ("y",))


def in_graph(values):
    """The same numbers by a graph."""
    graph = ModelGraph(["at", *DATE_FEATURES])
    found = date_numbers(graph.input("at", DOUBLE))
    for name, number in zip(DATE_FEATURES, found, strict=True):
        graph.output(name, number, DOUBLE)
    model = graph.to_bytes("dates", {})
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {"at": values})


@pytest.mark.parametrize("calculated", [date_numbers, in_graph])
def test_the_calendar_is_that_of_python(calculated):
    """Every day from 1900 to 2100, 10,000 times, and the first and last days that Python knows."""
    first, last = date(1900, 1, 1).toordinal(), date(2100, 12, 31).toordinal()
    every = [datetime.fromordinal(n).replace(tzinfo=UTC) for n in range(first, last + 1)]
    ends = [datetime.min, datetime(1, 3, 1), datetime(9999, 12, 31, 23, 59, 59, 999000)]
    some = [*every, *moments(10_000), *(end.replace(tzinfo=UTC) for end in ends)]
    given = np.array([days(moment) for moment in some])
    day, year, month, of_month, weekday, hour = calculated(given)
    np.testing.assert_array_equal(day, given)
    assert year.tolist() == [moment.year for moment in some]
    assert month.tolist() == [moment.month for moment in some]
    assert of_month.tolist() == [moment.day for moment in some]
    assert weekday.tolist() == [moment.isoweekday() for moment in some]
    midnight = [moment.replace(hour=0, minute=0, second=0, microsecond=0) for moment in some]
    of_day = [(a - b) // MS for a, b in zip(some, midnight, strict=True)]
    np.testing.assert_array_equal(hour, np.array(of_day) / 3_600_000)


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        (pa.date32(), timedelta(days=1)),
        (pa.timestamp("s"), timedelta(seconds=1)),
        (pa.timestamp("us", "Europe/Berlin"), MS),
        (pa.timestamp("ns", "UTC"), MS),
        (pa.string(), MS),
        (pa.dictionary(pa.int32(), pa.large_string()), MS),
    ],
)
def test_types_of_a_parquet_file(tmp_path, kind, unit):
    rounded = [EPOCH + (moment - EPOCH) // unit * unit for moment in moments(50)]
    expected = np.array([days(moment) for moment in rounded])
    naive = "date" in str(kind) or getattr(kind, "tz", None) is None
    values = [moment.replace(tzinfo=None) if naive else moment for moment in rounded]
    if "string" in str(kind):
        column = pa.array([moment.isoformat() for moment in rounded]).cast(kind)
    else:
        column = pa.array(values, pa.timestamp("us", getattr(kind, "tz", None))).cast(kind)
    found = days_of(column, "at", Path("t"))
    np.testing.assert_array_equal(np.rint(found * 86_400_000), np.rint(expected * 86_400_000))
    missing = days_of(pa.concat_arrays([column[:2], pa.nulls(1, kind)]), "at", Path("t"))
    assert np.isnan(missing).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("2024-02-29", "2024-02-29T00:00:00+00:00"),
        (" 2024-02-29\t", "2024-02-29T00:00:00+00:00"),
        ("20240229", "2024-02-29T00:00:00+00:00"),
        ("2024-02-29 13:45", "2024-02-29T13:45:00+00:00"),
        ("2024-02-29T13:45:10Z", "2024-02-29T13:45:10+00:00"),
        ("20240229T134510", "2024-02-29T13:45:10+00:00"),
        ("2024-02-29 23:45:10.123456789-05:30", "2024-03-01T05:15:10.123456+00:00"),
        ("2024-03-01 01:00:00+02", "2024-02-29T23:00:00+00:00"),
        ("0001-01-01T00:00+10:00", None),
        ("9999-12-31", "9999-12-31T00:00:00+00:00"),
    ],
)
def test_cells_that_are_dates(cell, expected):
    (found,) = days_of(Cells(pa.array([cell], pa.large_string())), "at", Path())
    before_python = -719_162 - 10 / 24
    wanted = before_python if expected is None else days(datetime.fromisoformat(expected))
    assert round(found * 86_400_000) == round(wanted * 86_400_000)


BAD = ["2023-02-29", "31.12.2024", "1717200000", "NaT", "2024-02-29 10:00 secret", "é"]


@pytest.mark.parametrize("cell", ["", *BAD])
def test_a_cell_that_is_no_date_is_refused_without_being_quoted(tmp_path, cell):
    write(tmp_path, "csv", rows=20)
    rows = list(csv.reader((tmp_path / "train.csv").read_text(encoding="utf-8").splitlines()))
    rows[3][rows[0].index("at")] = cell
    with (tmp_path / "train.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    with pytest.raises(DataError) as caught:
        load(tmp_path, DATES.replace("parquet", "csv"))
    message = str(caught.value).removeprefix(str(tmp_path))
    assert message == (
        "/train.csv: 1 of 20 rows have no date in the feature 'at'; expected YYYY-MM-DD, or a "
        "date and a time such as 2026-03-31T17:30:00Z; fill these in, drop the rows, or list the "
        "column under categorical"
    )


def test_a_run_predicts_and_exports(tmp_path):
    write(tmp_path)
    text = DATES.replace("{kind: mlp, hidden: [8], embedding: 2, offset: 4.5}", "{kind: linear}")
    text = text.replace("epochs: 3", "epochs: 1")
    run = tmp_path / "run"
    train(parse_config(text, "t.yaml", tmp_path), run)
    encoder = json.loads((run / "encoder.json").read_text())["features"]
    assert encoder["dates"] == ["at"] and encoder["takes_missing_numbers"] is False
    labeldp("export", "--to", "onnx", run, "-o", tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert {i.name: i.type for i in session.get_inputs()}["at"] == "tensor(double)"

    new = with_dates(40, 9).drop_columns(["y", "colour"])
    new = new.set_column(2, "c", pa.array([None, "unseen", "v", ""] * 10))
    pq.write_table(new, tmp_path / "new.parquet")
    pa_csv.write_csv(new, tmp_path / "new.csv")
    found = []
    for suffix in ("parquet", "csv"):
        labeldp("predict", run, tmp_path / f"new.{suffix}", "-o", tmp_path / f"o.{suffix}")
        read = pq.read_table if suffix == "parquet" else pa_csv.read_csv
        found.append(read(tmp_path / f"o.{suffix}")["prediction"].to_numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    feeds = {name: new[name].to_numpy().astype(np.float64) for name in ("a", "b")}
    feeds["c"] = np.array([c or "" for c in new["c"].to_pylist()], dtype=object)
    feeds["at"] = np.array([days(moment) for moment in new["at"].to_pylist()])
    np.testing.assert_allclose(session.run(None, feeds)[0], found[0], rtol=1e-3, atol=1e-4)

    gap = new.set_column(new.column_names.index("at"), "at", pa.nulls(40, pa.date32()))
    pq.write_table(gap, tmp_path / "gap.parquet")
    said = labeldp("predict", run, tmp_path / "gap.parquet", "-o", tmp_path / "no.csv", code=2)
    assert "40 of 40 rows have no date in the feature 'at'" in said
    assert not (tmp_path / "no.csv").exists()
