"""What papers that account for added and removed examples state, beside label DP."""

import math

import pytest

pytest.importorskip("labeldp_trainer.dp_gradient.accounting")

from labeldp_trainer.dp_gradient.accounting import NoisePlan, epsilon, padded_batch

from benchmarks.training_studies.add_remove import (
    add_remove_epsilon_for_comparison_only,
    add_remove_noise_for_comparison_only,
)


@pytest.mark.slow
def test_add_remove_understates_substitution():
    steps = math.ceil(60_000 / 1024 * 10)
    most = padded_batch(60_000, 1024, steps, 1e-5, 32)
    plan = NoisePlan(60_000, 1024, steps, most, "secret")
    assert epsilon(3.084, plan, 1e-5, interval=1e-3) == pytest.approx(1.0, rel=1e-2)
    assert add_remove_epsilon_for_comparison_only(3.084, plan, 1e-5) == pytest.approx(
        0.495, rel=1e-2
    )
    assert add_remove_noise_for_comparison_only(1.0, plan, 1e-5) < 0.7 * 3.084
