"""Private priors from counts that were made elsewhere: the same as from the rows themselves."""

import json
import math

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_verify import check_bytes
from labeldp_verify.forms import CategoricalDomain, IntegerDomain, RealDomain

from labeldp_compile import compile_spec
from labeldp_compile.cli import main
from labeldp_compile.errors import DataError
from labeldp_compile.prior.histogram import count_labels
from labeldp_compile.tabular.reader import TableReader, open_table
from tests.fixtures.specs import spec

SPEC = spec(
    labels=5, split="paper", prior="{kind: private, data: hist.parquet, counts: n}", name="visits"
)
TABLE = pa.table({"y": [0, 1, 4, None, -3, 9], "n": [500, 300, 120, 40, 30, 10]})


def write(tmp_path, table, suffix="parquet"):
    path = tmp_path / f"hist.{suffix}"
    (pa_csv.write_csv if suffix == "csv" else pq.write_table)(table, path)
    return path


def counted(path, domain, column="y"):
    table = open_table(path, column, domain, all_columns=False, count_column="n")
    return count_labels(table)[0].tolist()


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("domain", "labels"),
    [
        (IntegerDomain(0, 4), [0, 4, None, -7, 99, 1, 1]),
        (IntegerDomain(0, 4, default=3), [0, 4, None, -7, 99, 1, 1]),
        (RealDomain(0.0, 1.0, 5), [0.1, 0.13, None, math.nan, 1e300, -0.0, 0.0]),
        (CategoricalDomain(("a", "b"), "b"), ["a", "b", None, "z", "", "a", "a"]),
    ],
    ids=["clamp", "default", "real", "text"],
)
def test_counts_are_those_of_the_rows_that_were_counted(tmp_path, domain, labels, suffix):
    times = [3, 0, 70_000, 2, 1, 5, 8]
    path = write(tmp_path, pa.table({"n": times, "other": times, "y": labels}), suffix)
    rows = [label for label, n in zip(labels, times, strict=True) for _ in range(n)]
    flat = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"y": pa.array(rows, pa.array(labels).type)}), flat)
    expected = count_labels(open_table(flat, "y", domain, all_columns=False))[0].tolist()
    assert counted(path, domain) == expected and sum(expected) == sum(times)


def test_each_counted_row_is_rounded_at_random_on_its_own(tmp_path):
    domain = RealDomain(0.0, 1.0, 2, "unbiased")
    path = write(tmp_path, pa.table({"y": [0.3, 1.0, 0.0], "n": [150_000, 7, 0]}))
    draws = [counted(path, domain)[1] for _ in range(6)]
    assert len(set(draws)) > 1
    for ones in draws:
        assert abs(ones - 7 - 45_000) < 7 * math.sqrt(150_000 * 0.21)


def test_counts_are_exact_up_to_2_to_the_53(tmp_path):
    path = write(tmp_path, pa.table({"y": [1, 2, 1], "n": [2**52, 2**52 - 1, 1]}))
    assert counted(path, IntegerDomain(0, 2)) == [0, 2**52 + 1, 2**52 - 1]
    path = write(tmp_path, pa.table({"y": [1, 2], "n": [2**53, 1]}))
    with pytest.raises(DataError, match=r"more than 2\^53 rows"):
        counted(path, IntegerDomain(0, 2))


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("bad", [-17, None, 17.5, 2**53 + 2, 1e300, math.nan, -math.inf])
def test_what_is_no_count_is_refused_without_quoting_it(tmp_path, bad, suffix):
    path = write(tmp_path, pa.table({"y": [1, 2], "n": [5, bad]}), suffix)
    with pytest.raises(DataError, match="whole number from 0") as error:
        counted(path, IntegerDomain(0, 4))
    assert "17" not in str(error.value).replace(str(tmp_path), "")


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_compile_spends_on_the_number_of_rows_that_were_counted(tmp_path, suffix):
    write(tmp_path, TABLE, suffix)
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("parquet", suffix))
    artifact = compile_spec(path)
    prior = artifact.certificate.to_json()["prior"]
    assert prior["rows"] == 1000 and sum(prior["weights"]) > 0
    check_bytes(artifact.model).require()
    path.write_text(SPEC.replace("parquet", suffix).replace("counts: n", "counts: n, rows: 6"))
    with pytest.raises(DataError, match=r"1,000 rows, but the spec says rows: 6"):
        compile_spec(path)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_plan_reads_no_count(tmp_path, monkeypatch, suffix):
    write(tmp_path, TABLE, suffix)
    monkeypatch.setattr(TableReader, "batches", None)
    path = tmp_path / "spec.yaml"
    text = SPEC.replace("parquet", suffix)
    path.write_text(text)
    result = CliRunner().invoke(main, ["plan", str(path)])
    assert result.exit_code == 2 and "`rows: N` under `data: " in result.stderr
    path.write_text(text.replace("counts: n", "counts: n, rows: 1000"))
    plan = json.loads(CliRunner().invoke(main, ["plan", str(path), "--json"]).stdout)
    assert plan["prior"]["rows"] == 1000
    assert plan["privacy"]["epsilon_prior"] == pytest.approx(math.sqrt(5 / 1000), rel=1e-5)
