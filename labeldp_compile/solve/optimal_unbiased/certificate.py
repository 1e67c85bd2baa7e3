"""What an approximate solution proves: an exact mechanism above, a dual bound below."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labeldp_compile.solve.optimal_unbiased.intervals import Floats
from labeldp_compile.solve.optimal_unbiased.pricing import price
from labeldp_compile.solve.optimal_unbiased.problem import Program


@dataclass(frozen=True, eq=False)
class Bound:
    """A dual point with F >= 0 and what it proves.

    Attributes:
        value: no mechanism of the problem has a smaller objective.
        alpha, beta: [k] multipliers with F >= 0 up to rounding.
    """

    value: float
    alpha: Floats
    beta: Floats


def prove(problem: Program, alpha: Floats, beta: Floats) -> Bound:
    """Repair a dual point and evaluate its bound.

    Where F >= −η, taking t = η/(k − 1 + e^ε) from every α makes F >= 0: at a v where some
    h_y + t is negative F grows by at least t·(k − 1 + e^ε), and elsewhere it is a sum of
    nonnegative terms. That costs k·t, which at large ε is far less than η.
    """
    k, low = problem.k, problem.low
    beta = clip_beta(problem, beta)
    missing = max(0.0, -price(problem.labels, problem.prior, low, alpha, beta).worst)
    alpha = alpha - missing / (1.0 + low * (k - 1))
    return Bound(dual_value(problem, alpha, beta), alpha, beta)


def clip_beta(problem: Program, beta: Floats) -> Floats:
    """Zero the multipliers that a penalty forces to be zero."""
    penalty = problem.bias.penalty
    if penalty is None:
        return beta
    if penalty == 0.0:
        return np.zeros_like(beta)
    return np.where(problem.prior > 0, beta, 0.0)


def dual_value(problem: Program, alpha: Floats, beta: Floats) -> float:
    """Return Σα + Σβ·y less the term of the bias budget."""
    value = float(alpha.sum() + beta @ problem.labels)
    bias = problem.bias
    if bias.most:
        value -= bias.most * float(np.abs(beta).sum())
    if bias.penalty:
        held = (problem.prior > 0) & (beta != 0)
        value -= float((beta[held] ** 2 / (4.0 * bias.penalty * problem.prior[held])).sum())
    return value
