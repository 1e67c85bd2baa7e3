"""Labels that mature: what a rerun used to spend, and how each label is now drawn once."""

import datetime as dt
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import compile_text
from tests.fixtures.returned import MATURE, RETURNED

N = 20_000
DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=day) for day in range(60)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Artifacts with and without the rule, and the orders before and after some came back."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "early.onnx").write_bytes(compile_text(RETURNED % 3).model)
    (folder / "mature.onnx").write_bytes(compile_text(RETURNED % 3 + MATURE % 30).model)
    assert labeldp("keygen", folder / "k.key").exit_code == 0
    days = np.arange(N) % 60
    came_back = np.random.default_rng(0).random(N) < 0.5
    for name, known in (("before", False), ("after", True)):
        table = pa.table(
            {
                "order_id": np.arange(N),
                "ordered_at": [DAYS[day] for day in days],
                "returned": np.where(came_back & known, "yes", "no"),
            }
        )
        pq.write_table(table, folder / f"{name}.parquet")
        pa_csv.write_csv(table, folder / f"{name}.csv")
    return folder


def randomize(place, artifact, table, output, *options):
    words = ["--key", place / "k.key", "--id-column", "order_id", *options]
    return labeldp("randomize", place / artifact, place / table, "-o", output, *words)


def redrawn(old, new, *options, column="returned"):
    return labeldp("redrawn", old, new, "--id-column", "order_id", "--column", column, *options)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_complaint(place, tmp_path, kind):
    """A rerun under the same key draws every label again that changed; ``redrawn`` counts it."""
    old, new = tmp_path / f"old.{kind}", tmp_path / f"new.{kind}"
    for table, output in (("before", old), ("after", new)):
        assert randomize(place, "early.onnx", f"{table}.{kind}", output).exit_code == 0
    changed = json.loads(redrawn(old, new, "--json").stdout)
    assert changed["both"] == N and changed["differ"] > N // 3
    assert f"at least {changed['differ']:,} labels were drawn twice" in redrawn(old, new).stdout
    # With --append, nothing is drawn again, without the rule, too.
    folder = tmp_path / "private"
    for table in ("before", "after"):
        part = ("--append", "--part", table)
        assert randomize(place, "early.onnx", f"{table}.{kind}", folder, *part).exit_code == 0
    now = json.loads(redrawn(old, folder, "--json").stdout)
    assert now["both"] == now["new"] == N and now["differ"] == 0


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_with_the_rule_a_label_is_drawn_when_it_no_longer_changes(place, tmp_path, kind):
    folder, said = tmp_path / "private", []
    for table, day in (("before", DAYS[29]), ("before", DAYS[39]), ("after", "2024-04-01")):
        part = ("--append", "--part", day, "--as-of", day)
        done = randomize(place, "mature.onnx", f"{table}.{kind}", folder, *part)
        assert done.exit_code == 0, done.output
        said.append(done.stderr)
    assert "20,000 rows wait" in said[0] and "until P30D after 'ordered_at'" in said[0]
    # Of ten days labels were mature already: they did not change any more.
    early = int((np.arange(N) % 60 < 10).sum())
    assert f"{N - early:,} rows wait" in said[1] and f"{early:,} rows, ε = 3" in said[1]
    assert f"{early:,} rows have ids that parts hold already" in said[2]
    assert "0 rows wait" in said[2]
    once = tmp_path / f"once.{kind}"
    done = randomize(place, "mature.onnx", f"after.{kind}", once, "--as-of", "2024-04-01")
    assert done.exit_code == 0
    found = json.loads(redrawn(folder, once, "--json").stdout)
    assert found["both"] == N and found["differ"] < early  # those of the ten days


def test_no_label_decides_which_rows_wait_or_what_is_said(place, tmp_path):
    said = []
    for number, table in enumerate(("before.csv", "after.csv")):
        output = tmp_path / f"{number}" / "out.csv"
        output.parent.mkdir()
        done = randomize(place, "mature.onnx", table, output, "--as-of", "2024-02-10")
        ids = pa_csv.read_csv(output)["order_id"].to_pylist()
        said.append((done.exit_code, done.stderr.replace(str(output), "OUT"), ids))
    assert said[0] == said[1] and 0 < len(said[0][2]) < N


def test_a_table_without_the_times_is_refused_before_anything_is_drawn(place, tmp_path):
    table = pq.read_table(place / "before.parquet")
    for name, changed in (
        ("gone", table.drop_columns("ordered_at")),
        ("null", table.set_column(1, "ordered_at", pa.nulls(N, pa.date32()))),
    ):
        pq.write_table(changed, place / f"{name}.parquet")
        for options in ((), ("--append",)):
            output = tmp_path / ("folder" if options else "out.parquet")
            done = randomize(place, "mature.onnx", f"{name}.parquet", output, *options)
            assert done.exit_code == 2 and "ordered_at" in done.stderr
            assert not output.exists() and not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_what_redrawn_counts(tmp_path, kind):
    def table(name, **columns):
        path = tmp_path / f"{name}.{kind}"
        (pa_csv.write_csv if kind == "csv" else pq.write_table)(pa.table(columns), path)
        return path

    old = table("old", order_id=[1, 2, 3, 4, 5], a=[1.0, 2.0, 3.5, None, None], b=list("xxxxx"))
    new = table("new", order_id=[9, 5, 4, 3, 2], a=[1.0, None, 4.0, 3.5, 7.0], b=list("xxxyx"))
    words = ["redrawn", old, new, "--id-column", "order_id", "--json"]
    one = json.loads(labeldp(*words, "--column", "a").stdout)
    assert (one["old"], one["new"], one["both"], one["differ"]) == (5, 5, 4, 1)
    both = labeldp(*words, "--column", "a", "--column", "b")
    assert json.loads(both.stdout)["differ"] == 2
    assert ("does not note that these labels are private" in both.stderr) == (kind == "parquet")
    twice = table("twice", order_id=[1, 1], a=[1.0, 2.0])
    assert labeldp("redrawn", old, twice, *words[3:], "--column", "a").exit_code == 2
    assert labeldp("redrawn", old, new, *words[3:], "--column", "none").exit_code == 2
