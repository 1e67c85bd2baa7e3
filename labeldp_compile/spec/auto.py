"""``mechanism: auto``: the mechanism that serves the loss and the goal, and why."""

from __future__ import annotations

from labeldp_compile.mechanisms import mechanism_class
from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.spec.model import Auto, Spec


def resolve_auto(spec: Spec) -> Spec:
    """The spec with a mechanism by name; the same spec if it names one already."""
    if not isinstance(spec.mechanism, Auto):
        return spec
    loss, goal = spec.loss, spec.mechanism.goal
    mechanism, reason = _choose(loss, goal)
    return spec.with_mechanism(mechanism, f"loss: {loss}, goal: {goal}: {reason}")


def _choose(loss: str, goal: str) -> tuple[Mechanism, str]:
    if loss == "zero_one":
        return mechanism_class("rr_with_prior").named(), (
            "rr_with_prior keeps a label unchanged as often as any ε-DP randomizer can"
        )
    if loss == "squared" and goal == "training":
        return mechanism_class("optimal_unbiased").named(), (
            "optimal_unbiased has the least noise of all ε-DP randomizers that keep the mean of "
            "every label, and a model trained with the squared loss learns the mean"
        )
    reasons = {
        "labels": "",
        "absolute": "a model trained with the absolute loss learns the median, which unbiased "
        "noise does not keep; ",
        "poisson": "unbiased labels would have to be negative, where the poisson loss is not "
        "defined; ",
    }
    return mechanism_class("rr_on_bins").named(), (
        reasons["labels" if goal == "labels" else loss]
        + "rr_on_bins has the least noisy label loss of all ε-DP randomizers"
    )
