"""RR-on-Bins with a proof that no ε-DP randomizer loses less."""

import pytest
from labeldp_verify import check_bytes

from tests.fixtures.compiled import INTEGER_SPEC, compile_text


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


def test_the_poisson_loss_has_a_bound():
    artifact = compile_text(INTEGER_SPEC.replace("squared", "poisson"))
    utility = artifact.certificate.to_json()["utility"]
    assert check_bytes(artifact.model).ok
    assert 0 <= utility["noisy_label_loss"] - utility["loss_lower_bound"] < 1e-5
