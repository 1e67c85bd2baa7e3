"""A loss takes one record on each side: those of CONTRIBUTING.md, in a copy of the packages."""

import json
from fractions import Fraction

import pytest

from tests.fixtures.copies import apply, copied, diffs
from tests.fixtures.specs import spec

SIDES = ("verifier/labeldp_verify/analysis/losses.py", "labeldp_compile/solve/losses.py")
WEIGHTS = [1, 5, 2, 0, 3]


@pytest.fixture(scope="module")
def labeldp(tmp_path_factory):
    """Runs the command of a copy to which the loss was added."""
    place = tmp_path_factory.mktemp("copy")
    command = copied(place, "verifier/labeldp_verify", "labeldp_compile")
    for side, diff in zip(SIDES, diffs("Adding a loss"), strict=True):
        apply(diff, place / side)

    def run(name, mechanism, *arguments, code=0):
        asked = spec(name="added", loss="relative", weights=WEIGHTS, mechanism=mechanism)
        (place / "added.yaml").write_text(asked)
        return command(name, *arguments, code=code)

    return run


@pytest.mark.parametrize("mechanism", ["auto", "exponential"])
def test_its_expectation_is_that_of_the_matrix(labeldp, mechanism):
    labeldp("compile", mechanism, "added.yaml", "-o", "build", "--overwrite")
    shown = json.loads(labeldp("report", mechanism, "build/added.onnx", "--json"))
    values = [Fraction(output["value"]) for output in shown["outputs"]]
    rows = zip(WEIGHTS, shown["matrix"]["rows"], strict=True)
    expected = sum(
        weight * Fraction(p) * ((v - y) / max(y, 1)) ** 2 / (2 * sum(WEIGHTS))
        for y, (weight, row) in enumerate(rows)
        for v, p in zip(values, row, strict=True)
    )
    verified = labeldp("verify", mechanism, "build/added.onnx", "--spec", "added.yaml", "--verbose")
    assert f"{float(expected):.12g} (relative)" in verified
    labeldp("report", mechanism, "build/added.onnx", "-o", "page.html", "--overwrite")


def test_its_bins_are_the_best(labeldp):
    points = json.loads(labeldp("sweep", "rr_on_bins", "added.yaml", "--json"))["points"]
    losses = {(point["epsilon"], point["mechanism"]): point["loss"] for point in points}
    assert len({mechanism for _, mechanism in losses}) > 3
    assert all(
        losses[epsilon, "rr_on_bins"] <= 1.001 * loss for (epsilon, _), loss in losses.items()
    )


@pytest.mark.parametrize("mechanism", ["staircase", "optimal_unbiased"])
def test_mechanisms_that_do_not_know_it_refuse_it(labeldp, mechanism):
    assert "relative" in labeldp("plan", mechanism, "added.yaml", code=2)
