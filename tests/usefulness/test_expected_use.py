"""A plan prints a bound only if no prior can break it, and a policy decides by nothing else."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from labeldp_verify import check_file

from labeldp_compile.cli import main

SPEC = {
    "version": 1,
    "name": "visits",
    "goal": "labels",
    "label": {"column": "y", "domain": {"kind": "integer", "min": 0, "max": 20}},
    "loss": "squared",
    "privacy": {"epsilon": 6, "split": {"prior": 0.5, "label": 5.5}},
    "prior": {"kind": "private", "data": "table.parquet"},
}
SETTLED = ["debiased_rr", "laplace", "staircase", "exponential", "randomized_response"]
OPEN = ["optimal_unbiased", "rr_on_bins", "rr_with_prior", "staircase, clip: true"]


def labeldp(*arguments, code=0):
    result = CliRunner().invoke(main, [str(one) for one in arguments])
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.fixture
def planned(tmp_path):
    """From a mechanism: a plan as JSON and in words, and the table of skewed labels."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(2000) < 0.95, 0, rng.integers(0, 21, 2000))
    pq.write_table(pa.table({"y": labels}), tmp_path / "table.parquet")

    def run(mechanism, **changes):
        spec = tmp_path / "spec.yaml"
        spec.write_text(
            yaml.safe_dump(SPEC | {"mechanism": yaml.safe_load(f"{{kind: {mechanism}}}")} | changes)
        )
        plan = json.loads(labeldp("plan", spec, "--json"))["usefulness"]
        words = labeldp("plan", spec)
        labeldp("compile", spec, "-o", tmp_path, "--overwrite")
        return plan, words, check_file(tmp_path / "visits.onnx").verified().table(0)

    return run


@pytest.mark.parametrize("mechanism", SETTLED)
def test_figures_that_no_prior_changes_are_those_of_the_file(mechanism, planned):
    plan, words, table = planned(mechanism)
    compiled = table.use_to_json()
    assert plan["settled"] and "spread evenly" not in words
    for key in ("unbiased", "estimable", "more_labels", "set_sizes", "belief"):
        assert plan[key] == compiled[key]
    for key in ("deviation", "distance", "kept"):
        for end in ("least", "most"):
            assert (plan[key] or {}).get(end) == (compiled[key] or {}).get(end)
    margins = [one["all_labels"] for one in compiled["margins"]]
    assert [one["all_labels"] for one in plan["margins"]] == margins


@pytest.mark.parametrize("mechanism", OPEN)
def test_figures_that_the_prior_decides_are_no_bounds(mechanism, planned):
    plan, words, table = planned(mechanism)
    assert not plan["settled"]
    assert "if labels are spread evenly (estimated)" in words
    for bound in ("for all labels", "rows: at most ±", "assuming a uniform prior"):
        assert bound not in words
    assert all(one["all_labels"] is None for one in plan["margins"])
    for here, there in zip(plan["belief"], table.use_to_json()["belief"], strict=True):
        assert here["after"] >= there["after"]
    if mechanism == "optimal_unbiased":  # which the uniform prior flatters
        assert table.usefulness.margin(1000) > 2 * plan["margins"][0]["under_prior"]


def test_a_stated_prior_settles_the_figures(planned):
    weights = [95, *[1] * 20]
    plan, _, table = planned(
        "optimal_unbiased", prior={"kind": "public", "weights": weights}, privacy={"epsilon": 5}
    )
    assert plan["settled"]
    assert plan == table.use_to_json() | {"settled": True}


DEMANDS = {"max_mean_error": 100, "max_bias": 100, "min_outputs": 2, "no_warnings": True}


@pytest.mark.parametrize("key", DEMANDS)
@pytest.mark.parametrize("mechanism", ["optimal_unbiased", "debiased_rr"])
def test_a_policy_decides_a_plan_only_by_what_the_file_will_have(key, mechanism, planned, tmp_path):
    planned(mechanism)
    policy = tmp_path / "policy.yaml"

    def judged(code, **demand):
        policy.write_text(yaml.safe_dump({"version": 1, "usefulness": demand}))
        words = ("plan", tmp_path / "spec.yaml", "--policy", policy)
        labeldp("check", tmp_path / "visits.onnx", "--policy", policy)
        return labeldp(*words, code=code)

    settled = mechanism == "debiased_rr"
    shown = judged(0 if settled else 1, **{key: DEMANDS[key]})
    assert (f"{key} is open until compiled" in shown) == (not settled)
    shown = judged(0, **{key: DEMANDS[key]}, open="allow")
    assert (f"open   usefulness: {key}" in shown) == (not settled)
