"""Labels of several artifacts together: without bias, covered, and refused if they do not fit."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_learn.estimation import Estimation, GroupCounts

from labeldp_compile import InputError, estimate
from tests.estimate.drawing import Drawn
from tests.estimate.test_command import RESPONSE, TEXT_SPEC, labeldp
from tests.fixtures.compiled import INTEGER_SPEC, compile_text

K, DRAWS = 6, 300
SHARES = np.array([[0.45, 0.25, 0.15, 0.1, 0.05, 0.0], [0.0, 0.05, 0.1, 0.15, 0.25, 0.45]])


@pytest.fixture(scope="module")
def two():
    return Drawn("randomized_response", 1, K), Drawn("optimal_unbiased", 3, K)


@pytest.mark.parametrize("sizes", [(600, 200), (8, 60)])
@pytest.mark.parametrize("target", ["rows", "population"])
def test_estimates_are_right_on_average_and_intervals_cover(two, target, sizes):
    # For these rows, both months may have other labels; a population has one distribution.
    shares = SHARES if target == "rows" else SHARES[[0, 0]]
    generator = np.random.default_rng(4)
    estimation = Estimation.of(*(one.artifact for one in two), tables=[0, 1])
    mean_hits, share_hits, errors = 0, 0, []
    for _ in range(DRAWS):
        strata, labels = {}, np.zeros(K)
        for table, (one, size) in enumerate(zip(two, sizes, strict=True)):
            of_part = one.labels(shares[table], size, target, generator)
            strata[table] = one.outputs(of_part, generator)
            labels += of_part
        truth = labels / sum(sizes) if target == "rows" else shares[0]
        (found,) = estimation([GroupCounts((), strata)], target)
        mean = truth @ np.arange(K)
        mean_hits += found.mean.low[0] <= mean <= found.mean.high[0]
        inside = (found.histogram.low <= truth + 1e-12) & (truth - 1e-12 <= found.histogram.high)
        share_hits += inside.mean()
        errors.append([found.mean.value[0] - mean, *(found.histogram.value - truth)])
    errors = np.array(errors)
    assert (np.abs(errors.mean(axis=0)) < 4.5 * errors.std(axis=0) / np.sqrt(DRAWS)).all()
    assert 0.92 <= mean_hits / DRAWS <= 0.985
    assert 0.92 <= share_hits / DRAWS <= 0.985


RARER = RESPONSE.replace("3.0", "1.5")
UNBIASED = RESPONSE.replace("randomized_response", "optimal_unbiased")


@pytest.fixture
def months(tmp_path):
    """Two artifacts, and a table of each as labeldp randomize wrote it."""
    (tmp_path / "parts").mkdir()
    found = []
    for name, spec, label in (("may", RARER, 2), ("june", UNBIASED, 7)):
        path, table = tmp_path / f"{name}.onnx", tmp_path / f"{name}.parquet"
        path.write_bytes(compile_text(spec).model)
        rows = pa.table({"y": [label] * 3_000, "month": [name] * 3_000, "r": ["a", "b"] * 1_500})
        pq.write_table(rows, tmp_path / "true.parquet")
        done = labeldp("randomize", path, tmp_path / "true.parquet", "-o", table)
        assert done.exit_code == 0, done.output
        os.link(table, tmp_path / "parts" / f"{name}.parquet")
        found += [path, table]
    return found


def test_tables_and_one_folder_give_the_same(months, tmp_path):
    may, of_may, june, of_june = months
    parts = tmp_path / "parts"
    done = labeldp("estimate", *months, "--by", "month", "--by", "r", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["artifacts"] == ["example", "example"] and document["artifact"] == "example"
    assert [g["rows"] for g in document["groups"]] == [6_000, 1_500, 1_500, 1_500, 1_500]
    total = document["groups"][0]["mean"]
    assert abs(total["estimate"] - 4.5) < 6 * (total["high"] - total["low"]) / 4
    folder = labeldp("estimate", may, parts, june, parts, "--by", "month", "--by", "r", "--json")
    assert json.loads(folder.stdout)["groups"] == document["groups"]
    alone = labeldp("estimate", may, parts)
    assert alone.exit_code == 2 and "june.parquet" in alone.stderr  # the types differ, too
    alone = labeldp("estimate", may, of_june)
    assert alone.exit_code == 2 and "another artifact made" in alone.stderr
    found = estimate(may, of_may, more=[(june, of_june)])
    assert found.groups[0].mean.at(0) == total
    words = labeldp("estimate", *months).stdout
    assert "and 1 more, y: 6,000 private labels of example" in words


def test_no_row_counts_twice_and_no_part_is_left_out(months, tmp_path):
    may, of_may, june, of_june = months
    parts = tmp_path / "parts"

    def refused(message, *arguments):
        done = labeldp("estimate", *arguments)
        assert done.exit_code == 2 and message in done.stderr and done.stdout == "", done.output

    refused("is given twice", may, of_may, may, of_may)
    refused("is given twice", may, of_may, may, parts / "may.parquet")
    refused("notes no private labels of", may, of_may, june, of_may)
    refused("an artifact needs its own TABLE", may, of_may, june)
    plain = pq.read_table(of_may).replace_schema_metadata(None)
    pq.write_table(plain, parts / "unknown.parquet")
    refused("does not note that one of these artifacts", may, parts, june, parts)
    (parts / "unknown.parquet").unlink()
    csv = tmp_path / "may.csv"
    pa_csv.write_csv(plain, csv)
    refused("does not note that one of these artifacts", may, csv, june, csv)
    assert labeldp("estimate", may, csv, june, of_june).exit_code == 0


@pytest.mark.parametrize(
    "spec",
    [
        TEXT_SPEC,
        RESPONSE.replace("max: 9", "max: 8").replace(", 0]}", "]}"),
        RESPONSE.replace("column: y", "column: z"),
    ],
)
def test_other_labels_are_refused(months, tmp_path, spec):
    assert spec not in (RESPONSE, INTEGER_SPEC)
    other = tmp_path / "other.onnx"
    other.write_bytes(compile_text(spec).model)
    may, of_may, _, of_june = months
    done = labeldp("estimate", may, of_may, other, of_june)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1
    assert "cannot be combined with" in done.stderr and "different" in done.stderr
    with pytest.raises(InputError, match="cannot be combined"):
        estimate(may, of_may, more=[(other, of_june)])
