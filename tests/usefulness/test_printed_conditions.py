"""An estimate says under which condition it holds, or that it has no interval."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_verify import check_file

from labeldp_compile.cli import main

SPEC = """
version: 1
name: visits
goal: training
label: {column: visits, domain: {kind: integer, min: 0, max: 20}}
loss: squared
privacy: {epsilon: 1, split: SPLIT}
prior: {kind: private, data: visits.parquet}
mechanism: {kind: optimal_unbiased}
"""


def labeldp(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def written(place, split):
    labels = np.minimum(np.random.default_rng(0).poisson(3, 2000), 20)
    pq.write_table(pa.table({"visits": labels}), place / "visits.parquet")
    (place / "spec.yaml").write_text(SPEC.replace("SPLIT", split))
    return place / "spec.yaml"


@pytest.fixture
def compiled(tmp_path):
    spec = written(tmp_path, "{prior: 0.2, label: 0.8}")
    said = labeldp("compile", spec, "-o", tmp_path / "build", "--verbose").stderr
    return tmp_path / "build" / "visits.onnx", said


def test_bars_of_a_noisy_prior_say_how_noisy(compiled):
    path, said = compiled
    (title,) = [line for line in said.splitlines() if line.startswith("the noisy prior")]
    assert "as declared" in title and "2,000" in title
    stated = float(re.search(r"sd of ([0-9.]+) rows", title).group(1))
    # Var = 2q/(1 − q)², with q = e^(−ε₁/2)
    q = np.exp(-0.2 / 2)
    assert stated == pytest.approx(np.sqrt(2 * q) / (1 - q), rel=5e-3)
    assert f"{np.sqrt(2 * q) / (1 - q) / 2000:.2%}" in title
    assert title in labeldp("report", path, "-v").stdout
    assert check_file(path).require().certificate.prior.rows == 2000
