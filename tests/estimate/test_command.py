"""``labeldp estimate``: tables in, aggregates out, and refusals in words."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_runtime import Randomizer

from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.fixtures.specs import spec

TEXT_SPEC = spec(values=["red", "green", "blue"], epsilon="3.0", name="words")
RESPONSE = INTEGER_SPEC.replace("rr_on_bins", "randomized_response").replace("1.0", "3.0")
N = 4000


def artifact(directory, text=RESPONSE):
    path = directory / "x.onnx"
    path.write_bytes(compile_text(text).model)
    return path


def table(path, labels, **columns):
    private = Randomizer.load(path)(labels)
    return pa.table({"y": private, **columns})


@pytest.fixture
def private(tmp_path):
    """Labels whose mean is 2 in region north, 6 in region south and in no region."""
    path = artifact(tmp_path)
    labels = np.where(np.arange(N) % 2, 2, 6)
    regions = ["north" if i % 2 else "south" if i % 4 else None for i in range(N)]
    written = tmp_path / "private.parquet"
    pq.write_table(table(path, labels, region=regions), written, row_group_size=700)
    return path, written


def test_groups_and_histogram(private):
    result = labeldp("estimate", *private, "--by", "region", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["format_version"] == "1.0" and found["refused"] == {}
    assert found["classes"] == [[y] for y in range(10)]
    assert [g["group"] for g in found["groups"]] == ["all rows", "north", "south", None]
    assert [g["rows"] for g in found["groups"]] == [N, N // 2, N // 4, N // 4]
    for group, mean in zip(found["groups"], [4, 2, 6, 6], strict=True):
        # At least seven standard deviations: a quarter of the rows has one of 0.1.
        assert group["mean"]["low"] - 0.5 < mean < group["mean"]["high"] + 0.5
        assert abs(sum(entry["estimate"] for entry in group["histogram"]) - 1) < 1e-9
        assert abs(sum(entry["projected"] for entry in group["histogram"]) - 1) < 1e-9
    north = found["groups"][1]
    assert north["histogram"][2]["estimate"] > 0.85
    middle = next(q for q in north["quantiles"] if q["share"] == 0.5)
    assert middle["estimate"] == [2, 2] and middle["interval"] == [2, 2]


def test_text_labels(tmp_path):
    path = artifact(tmp_path, TEXT_SPEC)
    labels = ["red"] * 1500 + ["blue"] * 500
    for column in (lambda c: c, lambda c: c.dictionary_encode()):
        written = tmp_path / "private.parquet"
        private = table(path, labels)
        pq.write_table(pa.table({"y": column(private["y"].combine_chunks())}), written)
        found = json.loads(labeldp("estimate", path, written, "--json").stdout)
        assert found["classes"] == [["red"], ["green"], ["blue"]]
        shares = [entry["estimate"] for entry in found["groups"][0]["histogram"]]
        assert shares == pytest.approx([0.75, 0, 0.25], abs=0.08)
        assert set(found["refused"]) == {"mean", "quantiles"}


def column(values):
    return {"y": values}


@pytest.mark.parametrize(
    ("columns", "arguments", "message"),
    [
        (column([1.0, None]), [], "has nulls"),
        (column([1.0, 2.5]), [], "not outputs of"),
        (column([1.0, float("nan")]), [], "not outputs of"),
        (column([1.0, 10.0]), [], "not outputs of"),
        (column(pa.array([], pa.float64())), [], "has no rows"),
        (column([1.0]), ["--by", "yy"], "did you mean 'y'"),
        (column([1.0]), ["--column", "z"], "has no column 'z'"),
        ({"y": [1.0], "g": [[1]]}, ["--by", "g"], "cannot group by 'g'"),
        (column([1.0]), ["--csv", "x.png"], "ends in .csv"),
        (column(["a"]), [], "needs numbers"),
    ],
)
def test_wrong_input_is_explained(tmp_path, columns, arguments, message):
    path, written = artifact(tmp_path), tmp_path / "private.parquet"
    pq.write_table(pa.table(columns), written)
    result = labeldp("estimate", path, written, *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "2.5" not in result.stderr  # it may be a true label
    assert result.stdout == ""
