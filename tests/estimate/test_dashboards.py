"""Groups of several columns, the long table, and the weights for SQL: attacked as by a stranger."""

import json

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_runtime import Randomizer

from labeldp_compile import estimate
from labeldp_compile.estimates.aggregates import COLUMNS
from tests.estimate.test_command import TEXT_SPEC, artifact, labeldp
from tests.fixtures.compiled import INTEGER_SPEC

N = 4_000
HOSTILE = ["=1+1", "+cmd|' /C calc'!A0", "@SUM(1)", "\t=2", "\x1b[31mred", "a\nb", 'c"d', "'e"]
HOSTILE += ["-3", "＝1", " =2", "\ufeff=3", "\xa0=4", "\x00\v=5"]


@pytest.fixture
def private(tmp_path):
    """Two columns of groups whose combinations do not all occur."""
    path, written = artifact(tmp_path), tmp_path / "private.parquet"
    labels = np.arange(N) % 3
    month = pa.array((np.arange(N) % 4).astype(np.int32))
    region = pa.array(["a", None, "a", "b"] * (N // 4)).dictionary_encode()
    columns = {"y": Randomizer.load(path)(labels), "month": month, "region": region}
    pq.write_table(pa.table(columns), written)
    return path, written


def test_groups_are_the_combinations_that_occur(private):
    document = json.loads(
        labeldp("estimate", *private, "--by", "region", "--by", "month", "--json").stdout
    )
    assert document["by"] == ["region", "month"]
    names = [group["group"] for group in document["groups"]]
    assert names == ["all rows", ["a", 0], ["a", 2], ["b", 3], [None, 1]]
    assert [group["rows"] for group in document["groups"]] == [N, *[N // 4] * 4]
    found = estimate(*private, by=("region", "month"))
    assert [group.cell for group in found.groups] == [(), ("a", 0), ("a", 2), ("b", 3), (None, 1)]
    # One column is the case of one: the same rows have the same numbers.
    (one,) = (g for g in estimate(*private, by="month").groups if g.cell == (2,))
    assert one.name == 2 and one.mean.at(0) == found.groups[2].mean.at(0)


def test_the_long_table_is_read_by_pandas_and_duckdb(private, tmp_path):
    csv, parquet = tmp_path / "t.csv", tmp_path / "t.parquet"
    by = ["--by", "region", "--by", "month", "--simultaneous"]
    done = labeldp("estimate", *private, *by, "--csv", csv, "--parquet", parquet)
    assert done.exit_code == 0 and f"{parquet}: 80 rows" in done.stderr
    document = json.loads(labeldp("estimate", *private, *by, "--json").stdout)
    frame = pd.read_parquet(parquet)
    assert list(frame.columns) == ["region", "month", *COLUMNS.names]
    assert len(frame) == len(document["groups"]) * (1 + 10 + 5)
    assert set(frame["simultaneous"]) == {document["simultaneous"]} == {80}
    schema = pq.read_schema(parquet)
    assert schema.field("month").type == pa.int32() and schema.field("region").type == pa.string()
    total = frame[frame["all_rows"]]
    (mean,) = total[total["statistic"] == "mean"].to_dict("records")
    assert {end: mean[end] for end in ("estimate", "low", "high")} == document["groups"][0]["mean"]
    shares = total[total["statistic"] == "share"].sort_values("position")
    expected = [share["projected"] for share in document["groups"][0]["histogram"]]
    assert shares["projected"].tolist() == expected
    assert shares["label"].tolist() == [str(y) for y in range(10)]
    middle = total[(total["statistic"] == "quantile") & (total["quantile"] == 0.5)]
    assert middle["estimate"].tolist() == document["groups"][0]["quantiles"][2]["estimate"][:1]
    # CSV holds the same rows; a null and an empty cell are one.
    same = duckdb.sql(
        f"SELECT count(*) FROM '{csv}' AS c JOIN '{parquet}' AS p ON c.estimate = p.estimate AND "
        "c.statistic = p.statistic AND c.month IS NOT DISTINCT FROM p.month AND c.low = p.low AND "
        "c.high = p.high AND c.position IS NOT DISTINCT FROM p.position AND c.rows = p.rows AND "
        "c.quantile IS NOT DISTINCT FROM p.quantile"
    ).fetchall()
    assert same == [(80,)]


def test_no_text_is_run_by_a_spreadsheet_or_a_terminal(tmp_path):
    path, written = artifact(tmp_path, TEXT_SPEC.replace("green", "=HYPERLINK(1)")), "=x\x1b[2J"
    table, out = tmp_path / "p.parquet", tmp_path / "t.csv"
    labels = Randomizer.load(path)(["red"] * 10 * len(HOSTILE))
    pq.write_table(pa.table({"y": labels, written: HOSTILE * 10}), table)
    done = labeldp("estimate", path, table, "--by", written, "--csv", out, "--verbose")
    assert done.exit_code == 0 and "\x1b" not in done.output
    frame = pd.read_csv(out, dtype=str, keep_default_na=False)
    texts = {*frame.columns, *frame.to_numpy().ravel().tolist()}
    # A number may have a sign.
    seen = {text.lstrip(" \ufeff\xa0\x00\v") for text in texts}
    assert not [text for text in seen if text.startswith(tuple("=＝@\t\r\n"))]
    assert all(float(text) for text in texts if text.startswith(("+", "-")))
    # Every text comes back: one apostrophe is taken away.
    back = {text.removeprefix("'") for text in frame[f"'{written}"]}
    assert back == {*HOSTILE, ""} and "'=HYPERLINK(1)" in set(frame["label"])
    parquet = tmp_path / "t.parquet"
    assert labeldp("estimate", path, table, "--by", written, "--parquet", parquet).exit_code == 0
    assert set(pq.read_table(parquet)[written].to_pylist()) == {*HOSTILE, None}


TYPES = {
    "date": pa.array([0, None], pa.date32()),
    "decimal": pa.array(["1.50", None]).cast(pa.decimal128(9, 2)),
    "real": pa.array([float("nan"), float("inf")]),
    "bytes": pa.array([b"=1+1", b"\xff"]),
    "nothing": pa.nulls(2),
    "view": pa.array(["=1", "b"], pa.string_view()),
}


@pytest.mark.parametrize(
    "kind", ["rr_on_bins", "randomized_response", "optimal_unbiased", "laplace"]
)
def test_weights_give_the_same_numbers_elsewhere(tmp_path, kind):
    path = artifact(tmp_path, INTEGER_SPEC.replace("rr_on_bins", kind).replace("1.0", "3.0"))
    table, weights, out = (tmp_path / f"{name}.parquet" for name in ("p", "w", "t"))
    labels = Randomizer.load(path)(np.arange(N) % 10)
    pq.write_table(pa.table({"y": labels, "g": np.arange(N) % 3}), table)
    assert labeldp("report", path, "--weights", weights).exit_code == 0
    assert labeldp("estimate", path, table, "--by", "g", "--parquet", out).exit_code == 0
    found = duckdb.sql(
        f"SELECT g, statistic, position, avg(weight), sqrt(greatest(avg(noise), 0) / count(*)) "
        f"FROM '{table}' JOIN '{weights}' ON y = output GROUP BY ALL"
    ).fetchall()
    wanted = duckdb.sql(
        f"SELECT g, statistic, position, estimate, standard_error FROM '{out}' "
        "WHERE NOT all_rows AND statistic <> 'quantile'"
    ).fetchall()
    wanted = {row[:3]: row[3:] for row in wanted}
    assert {row[:3] for row in found} == set(wanted)
    for *key, value, error in found:
        assert (value, error) == pytest.approx(wanted[tuple(key)], rel=1e-6, abs=1e-9)
