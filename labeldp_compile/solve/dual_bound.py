"""Dual values: what a solver hands on so that its optimality can be proved without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labeldp_verify.analysis.lower_bound import BiasRule


@dataclass(frozen=True)
class DualBound:
    """Dual values α, β [k] of the squared loss, and over which randomizers they bound it."""

    alpha: Sequence[float]
    beta: Sequence[float]
    rule: BiasRule
