"""Columns that are no private labels of the artifact: said in one line, and never by chance."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_learn.estimation import Estimation, GroupCounts
from labeldp_learn.estimators import OutputCounts
from labeldp_runtime import Randomizer
from labeldp_verify import check_bytes
from labeldp_verify.forms import GroupedWindows, Groups
from scipy.stats import binom

from labeldp_compile import estimate
from labeldp_compile.rounding.windows import randomized_response
from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from verifier.tests.files import DOMAIN, file_of

RESPONSE = INTEGER_SPEC.replace("rr_on_bins", "randomized_response")
WORDS = "can hardly be private labels of this artifact"


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    path = tmp_path_factory.mktemp("response") / "x.onnx"
    path.write_bytes(compile_text(RESPONSE).model)
    return path


def estimation(text):
    return Estimation.of(check_bytes(compile_text(text).model).verified())


def outputs_of(counts):
    counts = np.asarray(counts)
    there = np.flatnonzero(counts)
    return OutputCounts(there, counts[there])


def true_labels(rows=5_000):
    return np.minimum(np.random.default_rng(5).poisson(1.5, rows), 9)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("as_json", [False, True])
def test_true_labels_are_named_and_private_ones_are_not(artifact, tmp_path, kind, as_json):
    write = pa_csv.write_csv if kind == "csv" else pq.write_table
    true, private = tmp_path / f"true.{kind}", tmp_path / f"private.{kind}"
    write(pa.table({"y": true_labels()}), true)
    write(pa.table({"y": Randomizer.load(artifact)(true_labels())}), private)
    more = ["--json"] if as_json else []
    done = labeldp("estimate", artifact, true, *more)
    assert done.exit_code == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"warning: {true}: these {WORDS}") and "is 'y' the private" in line
    assert WORDS not in done.stdout and (not as_json or json.loads(done.stdout))
    done = labeldp("estimate", artifact, private, *more)
    assert done.exit_code == 0 and done.stderr == ""
    assert estimate(artifact, private).warnings == []


def test_the_bound_is_above_the_probability_and_not_far():
    found = estimation(RESPONSE)
    linear = found.estimators[0].estimators["histogram", None]
    table = linear.inverse.table
    other, own = table[1, 0], table[0, 0]
    for rows in (50, 500, 5_000):
        for seen in range(0, int(rows * other), max(rows // 50, 1)):
            rest = np.full(9, (rows - seen) // 9)
            rest[0] += rows - seen - rest.sum()
            group = outputs_of([seen, *rest])
            exact = binom.logcdf(seen, rows, other)  # that an output comes so rarely
            bound = linear.log_chance(group)
            assert bound >= min(exact, 0.0) - 1e-9
            if exact < -30:
                assert bound < 0.8 * exact
    assert own > other and linear.log_chance(outputs_of([1] * 10)) == 0


def test_each_table_of_groups_is_asked():
    window = randomized_response([10.0, 11.0, 12.0, 13.0], range(4), 1, 20)
    randomizer = GroupedWindows(Groups.of(("a",)), (window, window))
    grouped = check_bytes(file_of(DOMAIN, randomizer)).verified()
    found = Estimation.of(grouped, tables=[0, 1])
    true, even = outputs_of([900, 0, 50, 50]), outputs_of([250] * 4)
    assert not found.hardly_private(GroupCounts((), {0: even, 1: even}))
    assert found.hardly_private(GroupCounts((), {0: even, 1: true}))
    assert found.hardly_private(GroupCounts((), {0: true, 1: even}))
