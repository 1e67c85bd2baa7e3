"""A real cluster loses an executor: nothing is lost with a key, and no loss is silent without."""

import json

import pytest

from runtime.tests.engines.conftest import run_program
from runtime.tests.engines.helpers import RESPONSE

ROWS = 20_000


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What came of a keyed and of an unkeyed job, each of which lost an executor."""
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "x.onnx").write_bytes(RESPONSE)
    lines = run_program("cluster_runs", folder)
    keyed, fresh = map(json.loads, lines[-2:])
    return keyed, fresh


def test_with_a_key_all_rows_come_once_with_the_labels_of_one_process(runs):
    keyed, _ = runs
    assert keyed["killed"] and keyed["computed_again"] > 0
    assert keyed["rows"] == keyed["distinct"] == ROWS
    assert keyed["two_draws"] == 0 and keyed["same"]


def test_without_a_key_the_job_fails_or_nothing_is_lost(runs):
    _, fresh = runs
    assert fresh["killed"] and fresh["computed_again"] > 0
    if "error" in fresh:
        assert "indeterminate output" in fresh["error"]
    else:
        assert fresh["rows"] == fresh["distinct"] == ROWS and fresh["two_draws"] == 0
