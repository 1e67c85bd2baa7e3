"""RR-on-Bins with a proof that no ε-DP randomizer loses less."""

import pytest
from labeldp_verify import check_bytes

from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from verifier.tests.files import rebuilt


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("epsilon", ["0.2", "1.0", "3", "7"])
@pytest.mark.parametrize(
    "weights", ["[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]", "[50, 0, 1, 1, 0, 2, 1, 0, 1, 30]"]
)
def test_the_gap_is_certified(loss, epsilon, weights):
    text = INTEGER_SPEC.replace("squared", loss).replace("epsilon: 1.0", f"epsilon: {epsilon}")
    artifact = compile_text(text.replace("[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]", weights))
    assert check_bytes(artifact.model).ok
    assert artifact.certificate.optimality.over == "any"
    assert artifact.certificate.utility.certified_gap < 1e-9


def test_no_bound_is_claimed_for_the_poisson_loss():
    certificate = compile_text(INTEGER_SPEC.replace("squared", "poisson")).certificate.to_json()
    assert certificate["optimality"] is None
    assert certificate["utility"]["loss_lower_bound"] is None


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_a_raised_dual_fails(loss):
    model = compile_text(INTEGER_SPEC.replace("squared", loss)).model

    def raise_one(certificate):
        alpha = certificate["optimality"]["alpha"]
        alpha[3] = repr(float(alpha[3]) + 1e-6)

    report = check_bytes(rebuilt(model, raise_one))
    assert report.checks[-1].name == "optimality" and not report.ok
    # A bound over a class that the randomizer is not in would flatter it.
    unbiased = rebuilt(model, lambda c: c["optimality"].update(over="unbiased"))
    assert "this one is biased" in check_bytes(unbiased).checks[-1].detail
    slopes = rebuilt(model, lambda c: c["optimality"].update(beta=["0.1"] * 10))
    assert not check_bytes(slopes).ok
