"""The cost of an interval and its dual terms: for each column, one quadratic in the output value.

The dual unknowns are scaled prefix sums of α and of β, x = (a, b) of length 2k. The sum of α in an
interval is then a difference of two of them. So the operator from unknowns to columns has at most
three entries per row (two ends and the total).
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from labeldp_compile.solve.optimal_unbiased.intervals import Floats, Intervals, Ints, Runs
from labeldp_compile.solve.optimal_unbiased.problem import Program


@dataclass(frozen=True, eq=False)
class Quadratics:
    """Data of the columns; S is 1 inside and e^-ε outside, values are relative to ``middle``.

    Attributes:
        operator: [m, k] sparse, from prefix unknowns to Σ_y S(y)·α_y.
        middle: [m] centre of the interval; at large ε a value is very close to it.
        mass, moment, spread: [m] Σ p·S·(1, y − middle, (y − middle)²).
    """

    operator: sparse.csr_matrix
    middle: Floats
    mass: Floats
    moment: Floats
    spread: Floats

    def touch(self, x: Floats) -> tuple[Floats, Floats]:
        """Return [m] ½W₂ − A − (W₁ + B)²/(2W) and the values (W₁ + B)/W at unknowns x [2k]."""
        k = self.operator.shape[1]
        moved = self.operator @ x[k:]
        slope = self.moment + moved
        offset = slope / self.mass
        pay = self.operator @ x[:k] + self.middle * moved
        return 0.5 * self.spread - pay - 0.5 * slope * offset, self.middle + offset


def quadratics(problem: Program, intervals: Intervals, runs: Runs | None = None) -> Quadratics:
    """Collect the data of the columns.

    Args:
        problem: labels, prior and e^-ε. intervals: the columns. runs: more columns, after them.
    """
    k, m = problem.k, len(intervals)
    owner, first, last = np.arange(m), intervals.first, intervals.last
    if runs is not None:
        owner = np.concatenate([owner, runs.owner + m])
        first, last = np.concatenate([first, runs.first]), np.concatenate([last, runs.last])
        m += runs.count
    y, p = problem.labels.astype(np.longdouble), problem.prior.astype(np.longdouble)
    # Prefix sums in the longest float that exists: at large ε the moment of an interval about its
    # middle is a difference of numbers that are ten digits larger.
    sums = np.concatenate([np.zeros((3, 1)), np.cumsum([p, p * y, p * y**2], axis=1)], axis=1)
    inside = np.zeros((m, 3), np.longdouble)
    np.add.at(inside, owner, (sums[:, last + 1] - sums[:, first]).T)
    lowest, highest = np.full(m, k - 1), np.zeros(m, np.int64)
    np.minimum.at(lowest, owner, first)
    np.maximum.at(highest, owner, last)
    middle = (y[lowest] + y[highest]) / 2
    mass, moment, second = problem.low * (sums[:, -1:] - inside.T) + inside.T
    spread = second - middle * (2 * moment - middle * mass)
    return Quadratics(
        operator(owner, first, last, (m, k), problem.low),
        middle.astype(np.float64),
        mass.astype(np.float64),
        (moment - middle * mass).astype(np.float64),
        np.maximum(spread, 0.0).astype(np.float64),
    )


def operator(
    owner: Ints, first: Ints, last: Ints, shape: tuple[int, int], low: float
) -> sparse.csr_matrix:
    """Return the [m, k] map from prefix unknowns to Σ_y S(y)·α_y of every column.

    Unknown j < k − 1 is (1 − e^-ε)·(α_0 + … + α_j), unknown k − 1 is the total Σα.

    Args:
        owner, first, last: [r] the runs of labels and the columns they belong to.
        shape: m and k. low: e^-ε.
    """
    m, k = shape
    left, right = first > 0, last < k - 1
    rows = np.concatenate([owner[right], owner[left], owner[~right], np.arange(m)])
    cols = np.concatenate([last[right], first[left] - 1, last[~right], np.full(m, k - 1)])
    ends = [np.ones(right.sum()), -np.ones(left.sum()), np.full((~right).sum(), 1.0 - low)]
    data = np.concatenate([*ends, np.full(m, low)])
    return sparse.coo_matrix((data, (rows, cols)), shape=shape).tocsr()


def per_label(k: int, low: float) -> sparse.csr_matrix:
    """Return the [k, k] map from prefix unknowns to per-label multipliers."""
    scale = np.full(k, 1.0 / (1.0 - low))
    below = -scale[1:]
    scale[-1] = 1.0
    return sparse.diags([scale, below], [0, -1], format="csr")


def objective(problem: Program) -> Floats:
    """Return the coefficients of Σα + Σβ·y in the prefix unknowns (a, b). [2k]"""
    k = problem.k
    c = np.zeros(2 * k)
    c[k - 1] = 1.0
    c[k : 2 * k - 1] = -np.diff(problem.labels) / (1.0 - problem.low)
    c[2 * k - 1] = problem.labels[-1]
    return c


def from_prefix(x: Floats, low: float) -> Floats:
    """Return per-label multipliers from k prefix unknowns."""
    return np.diff(np.concatenate([[0.0], x[:-1] / (1.0 - low), x[-1:]]))


def to_prefix(multipliers: Floats, low: float) -> Floats:
    """Return the k prefix unknowns of per-label multipliers."""
    sums = np.cumsum(multipliers)
    sums[:-1] *= 1.0 - low
    return sums
