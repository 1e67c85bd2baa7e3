"""Add/remove accounting, which some papers use: it is not label DP."""

from __future__ import annotations

import dp_accounting
from dp_accounting import pld
from labeldp_trainer.dp_gradient.accounting import NoisePlan, least_noise


def add_remove_epsilon_for_comparison_only(
    noise_multiplier: float, plan: NoisePlan, delta: float
) -> float:
    """Return the ε of *another* adjacency: adding or removing an example. It is NOT label DP.

    Papers that account for DP-SGD this way state about half of the ε that a substituted label
    costs. Only for tables that stand beside theirs.
    """
    event = dp_accounting.PoissonSampledDpEvent(
        plan.rate, dp_accounting.GaussianDpEvent(noise_multiplier)
    )
    relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    accountant = pld.PLDAccountant(relation, value_discretization_interval=1e-4)
    return float(accountant.compose(event, plan.steps).get_epsilon(delta))


def add_remove_noise_for_comparison_only(
    target_epsilon: float, plan: NoisePlan, delta: float
) -> float:
    """Return the σ that add/remove accounting would choose: too small for label DP."""
    return least_noise(
        lambda sigma: add_remove_epsilon_for_comparison_only(sigma, plan, delta),
        target_epsilon,
        f"ε = {target_epsilon:g} at δ = {delta:g} (add/remove)",
    )
