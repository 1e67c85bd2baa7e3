"""Coarser problems of merged neighbours, and how their solutions predict finer ones.

A coarse label is at the prior's mean of its labels. Then a coarse solution is a solution for the
labels up to second order in its width, on both sides: windows on its line can be placed for every
label, and its multipliers move along with the label. Every label gets its shifted share
h_y(v) = p_y/p_g·h_g(v − (y − y_g)), which keeps the sign. So
α_y = p_y/p_g·(α_g − (y − y_g)·β_g) and β_y = p_y/p_g·β_g.
"""

from dataclasses import dataclass

import numpy as np

from labeldp_compile.solve.optimal_unbiased.intervals import Floats, Ints
from labeldp_compile.solve.optimal_unbiased.problem import Program

COARSEST = 250
"""Labels up to which cone programs alone are as fast as levels."""
_COSTLY = 32.0  # times the mean spread of a pair; above that, its two labels stay separate


@dataclass(frozen=True, eq=False)
class Level:
    """A coarser problem.

    Attributes:
        problem: the coarse labels.
        parent: [labels of the next finer level] the coarse label of each; nondecreasing.
    """

    problem: Program
    parent: Ints


def coarsen(problem: Program) -> Level:
    """Merge the labels in pairs, except for the two ends and for pairs that matter too much.

    The ends decide how far outputs must reach. A pair matters if distinguishing its labels matters:
    by the part of the prior's variance that lies between them.
    """
    y, p = problem.labels, problem.prior
    left = np.arange(1, problem.k - 2, 2)
    mass = p[left] + p[left + 1]
    between = np.divide(p[left] * p[left + 1], mass, out=np.zeros_like(mass), where=mass > 0)
    spread = between * (y[left + 1] - y[left]) ** 2
    opens = np.ones(problem.k, np.bool_)
    # Not all pairs can be this far above their mean, so every level is coarser than the last one.
    opens[left[~(spread > _COSTLY * spread.mean())] + 1] = False
    parent = np.cumsum(opens) - 1
    prior = np.bincount(parent, p).astype(np.float64)
    at = np.bincount(parent, p * y)
    plain = np.bincount(parent, y) / np.bincount(parent)
    labels = np.divide(at, prior, out=plain, where=prior > 0)
    # A single label is its own mean, without rounding.
    first = np.flatnonzero(opens)
    alone = np.diff(np.append(first, problem.k)) == 1
    labels[alone] = y[first[alone]]
    return Level(Program(labels, prior, problem.low, problem.bias), parent.astype(np.int64))


def predicted_means(coarse: Program, means: Floats, labels: Floats) -> Floats:
    """Return the means of other labels between those of neighbours: the bias is interpolated."""
    return labels + np.interp(labels, coarse.labels, means - coarse.labels)


def moved_along(
    coarse: Program, fine: Program, parent: Ints, alpha: Floats, beta: Floats
) -> tuple[Floats, Floats]:
    """Multipliers of the labels from those of coarse ones.

    Args:
        coarse, fine: the two problems. parent: [fine] the coarse label of each.
        alpha, beta: [coarse] multipliers.
    """
    whole = coarse.prior[parent]
    share = np.divide(fine.prior, whole, out=np.ones(fine.k), where=whole > 0)
    distance = fine.labels - coarse.labels[parent]
    slope = share * beta[parent]
    return share * alpha[parent] - distance * slope, slope
