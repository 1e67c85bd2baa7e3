"""Labels that are rounded to the nearest grid point have a bias, however small it is at the points.

No compiler makes such a file unbiased at its points; a forger can.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.grid_labels import bias_in_range
from labeldp_verify.claims import Declaration
from labeldp_verify.forms import IntegerDomain, RealDomain
from labeldp_verify.graph import write_model
from labeldp_verify.limits import Limits

from labeldp_compile.build.tables import problem_of
from labeldp_compile.mechanisms.optimal_unbiased import least_interval
from labeldp_compile.rounding.windows import place_windows, randomized_response
from labeldp_compile.spec import parse_spec
from tests.fixtures.specs import spec
from tests.fixtures.stated import stated_certificate
from verifier.tests.files import file_of

COARSE = RealDomain(0.0, 1.0, 2, "nearest")
GRIDS = [
    COARSE,
    RealDomain(-3.0, 5.0, 9, "nearest"),
    RealDomain(1000000.0, 1000000.7, 50, "nearest"),
    RealDomain(0.0, 1.0, 50, "unbiased"),
    RealDomain(1e9, 1e9 + 1, 11, "unbiased"),
]


def forged(domain, epsilon=Fraction(1)):
    """Unbiased at the points of the grid."""
    labels = domain.labels()
    low, high = least_interval(labels, float(epsilon))
    placed = place_windows([low, high], [1 / (1 + math.exp(epsilon))] * 2, labels, epsilon)
    return file_of(domain, placed, epsilon, "squared")


def means_at(domain, randomizer, labels):
    """E[output | label] of labels between the points, too."""
    rows = np.array(analyse(randomizer).means().floats())
    if domain.rounding == "nearest":
        return rows[[domain.index(float(y)) for y in labels]]
    below = np.floor(domain.positions(labels)).astype(int)
    share = domain.positions(labels) - below
    return (1 - share) * rows[below] + share * rows[np.minimum(below + 1, domain.size - 1)]


@pytest.mark.parametrize("domain", GRIDS, ids=str)
def test_no_label_in_the_range_is_further_off_than_is_stated(domain):
    report = check_bytes(forged(domain))
    assert report.ok, report.checks[-1]
    found = report.artifact.only
    labels = np.linspace(domain.min, domain.max, 20_001)
    off = np.abs(means_at(domain, found.randomizer, labels) - labels).max()
    step = (domain.max - domain.min) / (domain.points - 1)
    rounding = 1e-15 * max(abs(domain.min), abs(domain.max))  # of these float64 sums
    assert off <= found.bias_in_range + 8 * rounding
    if domain.rounding == "nearest":
        assert off > 0.49 * step and found.bias_in_range < 0.501 * step
        assert found.certificate.utility.largest_bias < 1e-9  # which speaks of the points alone
    else:
        assert found.bias_in_range < 1e-5 * step


def test_a_file_that_rounds_to_the_nearest_is_not_called_unbiased():
    """Beta(2, 5): a mean of 0.286 becomes 0.109."""
    report = check_bytes(forged(COARSE))
    found = report.artifact.only
    words = "\n".join(report.in_words("file", verbose=True))
    assert found.usefulness.unbiased is False and "standard deviation" not in words
    assert "bias              at most 0.51 (proved)" in words
    assert "at most 0.500001 for all labels in the range, which are rounded to the nearest" in words
    labels = np.random.default_rng(1).beta(2, 5, 1000)
    private = means_at(COARSE, found.randomizer, labels)
    assert abs(labels.mean() - 0.286) < 0.02 and private.mean() < 0.15
    for rows in (10, 1000, 10**6):
        assert found.usefulness.margin(rows) > 0.5 > abs(labels.mean() - private.mean())
    assert found.usefulness.more_labels is None  # no number of rows makes up for a bias
    margins = report.to_json()["usefulness"]["margins"]
    assert all(entry["all_labels"] > 0.5 for entry in margins)


def test_a_gate_on_the_bias_counts_the_rounding():
    model = forged(COARSE)
    assert not check_bytes(model, limits=Limits(max_bias=Fraction(49, 100))).ok
    assert check_bytes(model, limits=Limits(max_bias=Fraction(51, 100))).ok
    unbiased = forged(RealDomain(0.0, 1.0, 50, "unbiased"))
    assert check_bytes(unbiased, limits=Limits(max_bias=Fraction(1, 10**12))).ok


@pytest.mark.parametrize("bias", ["", ", bias: {max: 0.05}"])
def test_a_bound_over_unbiased_randomizers_is_refused_of_such_a_file(bias):
    text = spec(
        domain="{kind: real, min: 0, max: 1, points: 8}",
        mechanism=f"{{kind: optimal_unbiased{bias}}}",
    )
    wanted = parse_spec(text)
    weights, epsilon = [1] * 8, Fraction(1)
    solved = wanted.named_mechanism.build(problem_of(wanted, wanted.domain, weights, epsilon))
    prior = {"kind": "uniform", "weights": weights}
    provenance = Declaration(
        "t", "optimal_unbiased", "y", epsilon, Fraction(0), prior, "0" * 64, {}
    )
    for rounding in ("unbiased", "nearest"):
        domain = RealDomain(0.0, 1.0, 8, rounding)
        certificate = stated_certificate(
            domain, solved.randomizer, "squared", provenance, solved.bound
        ).to_json()
        report = check_bytes(write_model(domain, solved.randomizer, certificate))
        assert certificate["optimality"]["over"] in ("unbiased", "max")
        assert report.ok == (rounding == "unbiased"), report.checks[-1]
    assert report.checks[-1].name == "optimality" and "nearest" in report.checks[-1].detail


def test_integers_have_the_bias_of_their_labels():
    numbers = randomized_response([0.0, 1.0, 2.0], range(3), Fraction(3))
    biases = analyse(numbers).biases(IntegerDomain(0, 2).labels())
    assert bias_in_range(IntegerDomain(0, 2), biases.largest()) == biases.largest()
