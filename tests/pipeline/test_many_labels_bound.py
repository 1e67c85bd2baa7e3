"""RR-on-Bins of more labels than a file could hold dual values of: compiled, verified, altered."""

import pytest
from labeldp_verify import check_bytes

from labeldp_compile.mechanisms import rr_on_bins
from tests.fixtures.compiled import CATEGORICAL_SPEC, INTEGER_SPEC, compile_text
from tests.fixtures.specs import spec
from verifier.tests.files import rebuilt

INTEGERS = "{kind: integer, min: -3, max: 20000}"
REALS = "{kind: real, min: -0.7, max: 1.9, points: 20001}"


@pytest.mark.parametrize(
    ("domain", "loss", "epsilon"),
    [(INTEGERS, "squared", 4), (INTEGERS, "absolute", 1), (REALS, "absolute", 2)],
)
def test_more_than_20000_labels_come_with_a_bound(domain, loss, epsilon):
    artifact = compile_text(spec(domain=domain, loss=loss, epsilon=epsilon))
    certificate = artifact.certificate
    assert certificate.utility.certified_gap < 1e-3
    assert len(certificate.optimality.radii) == len(certificate.optimality.knots) < 6000
    report = check_bytes(artifact.model)
    assert report.ok
    assert any("of all ε-DP randomizers" in check.detail for check in report.checks)


@pytest.fixture(params=["squared", "absolute"])
def short(request, limit):
    """A file of few labels whose bound is proved by radii."""
    limit(rr_on_bins, "MAX_CERTIFIED_LABELS", 0)
    return compile_text(INTEGER_SPEC.replace("squared", request.param)).model


def test_a_file_of_few_labels_may_have_radii(short):
    assert check_bytes(short).ok


def test_up_to_20000_labels_there_are_dual_values_as_before():
    certificate = compile_text(INTEGER_SPEC).certificate
    assert len(certificate.optimality.alpha) == 10


@pytest.mark.parametrize(
    "mechanism", ["rr_on_bins", "{kind: optimal_unbiased, bias: {penalty: 0}}"]
)
def test_the_larger_of_two_bounds_is_stated(mechanism):
    """The dual values alone would leave 1.2e-2."""
    weights = [10**9 // (1 + y) for y in range(1000)]
    artifact = compile_text(spec(weights=weights, epsilon=8, mechanism=mechanism))
    assert artifact.certificate.utility.certified_gap < 1e-3
    assert check_bytes(artifact.model).ok


def altered(key, place, change):
    def alter(certificate):
        values = certificate["optimality"][key]
        values[place] = change(values[place])

    return alter


HOSTILE = {
    "a longer radius": (altered("radii", 3, lambda r: 2 * r + 10**6), "prove no lower bound"),
    "a shorter radius": (altered("radii", 3, lambda r: r - 10**6), "is stated as"),
    "a negative radius": (altered("radii", 3, lambda r: -1), "malformed"),
    "an endless radius": (altered("radii", 3, lambda r: 10**4000), "malformed"),
    "a radius of another type": (altered("radii", 0, float), "malformed"),
    "knots that fall": (altered("knots", 3, lambda n: 0), "malformed"),
    "a knot beyond the labels": (altered("knots", -1, lambda n: n + 1), "malformed"),
    "a knot too many": (lambda c: c["optimality"]["knots"].append(10), "malformed"),
    "no knots": (lambda c: c["optimality"].update(knots=[], radii=[]), "malformed"),
    "no unit": (lambda c: c["optimality"].update(unit="0"), "not positive"),
    "a unit below zero": (lambda c: c["optimality"].update(unit="-1/2"), "not positive"),
    "a unit in words": (lambda c: c["optimality"].update(unit="one"), "optimality"),
    "a unit that is a power": (lambda c: c["optimality"].update(unit="1e-3"), "optimality"),
    "a class": (lambda c: c["optimality"].update(over="unbiased"), "this one is biased"),
    "a wide class": (
        lambda c: c["optimality"].update(over="max", amount="99"),
        "over all randomizers",
    ),
    "an amount": (lambda c: c["optimality"].update(amount="1"), "no amount"),
    "both proofs": (lambda c: c["optimality"].update(alpha=["0"] * 10), "another shape"),
    "another bound": (lambda c: c["exact"].update(loss_lower_bound="1/1000"), "is stated as"),
    "the Poisson loss": (lambda c: c["utility"].update(loss="poisson"), ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_altered_radii_are_refused(short, name):
    change, complaint = HOSTILE[name]
    report = check_bytes(rebuilt(short, change))
    assert not report.ok
    assert complaint in report.checks[-1].detail or complaint in report.checks[-1].name


def test_categories_have_no_radii():
    """Whose labels are all at 0: only a bound of 0 could pass, which says nothing."""

    def claim(certificate):
        certificate["optimality"] = {
            "over": "any",
            "amount": "0",
            "unit": "1",
            "knots": [0, 2],
            "radii": [0, 0],
        }
        certificate["utility"].update(loss="squared", loss_lower_bound=0.0, certified_gap=None)
        certificate["exact"].update(loss_lower_bound="0")

    codes = CATEGORICAL_SPEC.replace("red, green, blue", "1, 2, 3").replace("green", "2")
    report = check_bytes(rebuilt(compile_text(codes).model, claim))
    assert not report.ok and "radii need labels that are numbers" in report.checks[-1].detail
