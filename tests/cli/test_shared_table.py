"""Groups that were asked for and share one table keep their names in what commands print."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_verify.forms import Groups

from labeldp_compile.cli import main

SPEC = """
version: 1
name: grouped
label: {column: y, domain: {kind: integer, min: 0, max: 9}}
loss: squared
privacy: {epsilon: 1.0}
prior: {kind: private, data: t.parquet}
groups: {column: region, values: [north, south]}
mechanism: {kind: optimal_unbiased}
"""


def labeldp(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture
def place(here):
    labels, regions = np.arange(20_000) % 10, ["north", "south"] * 10_000
    pq.write_table(pa.table({"y": labels, "region": regions}), "t.parquet")
    (here / "g.yaml").write_text(SPEC)
    return here


def test_names_are_kept(place):
    done = labeldp("compile", "g.yaml", "-o", ".")
    assert done.exit_code == 0, done.output
    assert "all groups (other and 'north'; 'south') share one table" in done.stderr
    assert "other and 'north'; 'south'" in labeldp("report", "grouped.onnx").stdout
    assert labeldp("report", "grouped.onnx", "--group", "north").exit_code == 0
    assert labeldp("randomize", "grouped.onnx", "t.parquet", "-o", "p.parquet").exit_code == 0
    said = labeldp("estimate", "grouped.onnx", "p.parquet").stdout
    names = [line.split()[0] for line in said.splitlines() if "10,000" in line]
    assert names == ["'north'", "'south'"]
    by = labeldp("estimate", "grouped.onnx", "p.parquet", "--by", "region").stdout
    names = [line.split()[0] for line in by.splitlines() if "10,000" in line]
    assert names == ["north", "south"]


def test_at_most_three_names_are_listed():
    columns = Groups.of([f"g{i}" for i in range(6)]).columns
    shared = Groups(columns, (0, 1, 1, 1, 1, 1), 1)
    assert [shared.name(i) for i in range(2)] == ["'g0'", "other and 'g1'; 'g2'; 'g3'; 2 more"]
    assert Groups.of(["a"]).name(1) == "other"
