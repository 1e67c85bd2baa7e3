"""What an approximate solution proves: an exact mechanism above, a dual bound below.

With a bias budget, neighbouring labels may get the same row. The conditions on columns then fix the
sum of their α, but not its split. The bound needs every h_y negative on the outputs of the window
and positive on all others. So each α_y is put at the same fraction of its remaining range.
"""

from dataclasses import dataclass

import numpy as np

from labeldp_compile.solve.optimal_unbiased.intervals import Floats, Ints
from labeldp_compile.solve.optimal_unbiased.pricing import price
from labeldp_compile.solve.optimal_unbiased.problem import Program
from labeldp_compile.solve.optimal_unbiased.windows import Columns


@dataclass(frozen=True, eq=False)
class Bound:
    """A dual point with F >= 0, and the bound that it proves.

    Attributes:
        value: no mechanism of the problem has a smaller objective.
        alpha, beta: [k] multipliers with F >= 0 up to rounding.
    """

    value: float
    alpha: Floats
    beta: Floats


def prove(problem: Program, alpha: Floats, beta: Floats) -> Bound:
    """Repair a dual point and evaluate its bound.

    If F >= −η, subtracting t = η/(k − 1 + e^ε) from every α makes F >= 0. At a v where some h_y + t
    is negative, F grows by at least t·(k − 1 + e^ε); elsewhere it is a sum of nonnegative terms.
    This costs k·t, which at large ε is far less than η.
    """
    k, low = problem.k, problem.low
    beta = clip_beta(problem, beta)
    missing = max(0.0, -price(problem.labels, problem.prior, low, alpha, beta).worst)
    alpha = alpha - missing / (1.0 + low * (k - 1))
    return Bound(dual_value(problem, alpha, beta), alpha, beta)


def clip_beta(problem: Program, beta: Floats) -> Floats:
    """Set the multipliers to zero that a penalty forces to be zero."""
    penalty = problem.bias.penalty
    if penalty is None:
        return beta
    if penalty == 0.0:
        return np.zeros_like(beta)
    return np.where(problem.prior > 0, beta, 0.0)


def dual_value(problem: Program, alpha: Floats, beta: Floats) -> float:
    """Return Σα + Σβ·y minus the term of the bias budget."""
    value = float(alpha.sum() + beta @ problem.labels)
    bias = problem.bias
    if bias.most:
        value -= bias.most * float(np.abs(beta).sum())
    if bias.penalty:
        held = (problem.prior > 0) & (beta != 0)
        value -= float((beta[held] ** 2 / (4.0 * bias.penalty * problem.prior[held])).sum())
    return value


def complete(problem: Program, columns: Columns, alpha: Floats, beta: Floats) -> Floats:
    """Return α with a new split among labels with the same row.

    Args:
        problem: the problem. columns: the mechanism. alpha, beta: [k] multipliers.
    """
    k, m = problem.k, len(columns)
    first, last, values = columns.intervals.first, columns.intervals.last, columns.values
    cuts = np.unique(np.concatenate([[0], first, last + 1]))
    starts = cuts[cuts < k]
    if m == 0 or starts.size == k or any((np.diff(a) < 0).any() for a in (first, last, values)):
        return alpha
    least, most = _range(problem, columns, beta)
    done = alpha.copy()
    stops = np.append(starts[1:], k)
    for i, j in zip(starts[stops - starts > 1], stops[stops - starts > 1], strict=True):
        room = float((most[i:j] - least[i:j]).sum())
        if np.isfinite(room) and room > 0:
            share = float(alpha[i:j].sum() - least[i:j].sum()) / room
            done[i:j] = least[i:j] + share * (most[i:j] - least[i:j])
    return done


def _range(problem: Program, columns: Columns, beta: Floats) -> tuple[Floats, Floats]:
    """[k] the least α_y with h_y <= 0 on the outputs of the window, the largest with >= 0 outside.

    h_y + α_y is convex. Its largest value in a window is at an end of the window; its smallest
    value outside is at the outputs next to the window or to its own minimum.
    """
    v, m, label = columns.values, len(columns), np.arange(problem.k)
    begin = np.searchsorted(columns.intervals.last, label)
    end = np.searchsorted(columns.intervals.first, label, side="right") - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        bottom = np.searchsorted(v, np.nan_to_num(problem.labels + beta / problem.prior))

    def level(output: Ints) -> Floats:
        u = v[np.clip(output, 0, m - 1)]
        return np.asarray(0.5 * problem.prior * (u - problem.labels) ** 2 - beta * u)

    has_some = begin <= end
    least = np.where(has_some, np.maximum(level(begin), level(end)), -np.inf)
    below, above = np.minimum(begin, end + 1) - 1, np.maximum(end, begin - 1) + 1
    most = np.full(problem.k, np.inf)
    for output in (below, above, 0 * below, np.full(problem.k, m - 1), bottom - 1, bottom):
        outside = (output >= 0) & (output < m) & ((output <= below) | (output >= above))
        most = np.where(outside, np.minimum(most, level(output)), most)
    return least, most
