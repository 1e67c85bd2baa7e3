"""The problem in solver units, reduced to the labels that matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labeldp_compile.solve.optimal_unbiased.intervals import Floats, Ints


@dataclass(frozen=True)
class BiasBudget:
    """How far means may be from their labels; by default not at all.

    Attributes:
        most: τ, the largest |E[output | y] − y|, in units of the labels; None for no limit.
        penalty: λ of a penalty λ·Σ p_y·d_y² added to the loss; None for none. With 0 the bias is
            free, which is the RR-on-Bins problem.

    At most one of the two is given. Without both, means must equal the labels.
    """

    most: float | None = None
    penalty: float | None = None

    @property
    def unbiased(self) -> bool:
        """Whether the means must equal the labels."""
        return self.penalty is None and not self.most


@dataclass(frozen=True, eq=False)
class Program:
    """Labels and prior in solver units.

    Attributes:
        labels: [k] strictly increasing, k >= 2.
        prior: [k] >= 0, sums to about 1.
        low: e^-ε, the low entry of a column whose high entry is 1.
        bias: the budget, in the same units.
    """

    labels: Floats
    prior: Floats
    low: float
    bias: BiasBudget

    @property
    def k(self) -> int:
        """The number of labels."""
        return int(self.labels.size)

    def allowed(self, means: Floats) -> Floats:
        """Return the means nearest to the given ones that the budget allows, nondecreasing."""
        if self.bias.unbiased:
            return self.labels
        rising = np.maximum.accumulate(means)
        if self.bias.most is None:
            return rising
        return np.clip(rising, self.labels - self.bias.most, self.labels + self.bias.most)

    def penalty(self, means: Floats) -> float:
        """Return λ·Σ p·d²."""
        return (self.bias.penalty or 0.0) * float(self.prior @ (means - self.labels) ** 2)

    def scaled(self, unit: float) -> Program:
        """Return the problem with labels divided by ``unit``; λ is a pure number and stays."""
        most = None if self.bias.most is None else self.bias.most / unit
        return Program(
            self.labels / unit, self.prior, self.low, BiasBudget(most, self.bias.penalty)
        )


def deciding_labels(problem: Program, negligible: float) -> Ints:
    """Return the indices of the labels that must be kept.

    A label that never occurs constrains nothing unless it is an end: windows reach every mean
    between those of the two ends, and its own row has no cost. So removing it changes neither the
    optimum nor the bound (its multipliers are zero). Very rare labels are treated in the same way;
    the certified gap shows the loss. If bias is only penalized, ends that never occur constrain
    nothing, too.

    Args:
        problem: the whole problem. negligible: prior mass that may be left out in total.
    """
    order = np.argsort(problem.prior, kind="stable")
    keep = np.ones(problem.k, np.bool_)
    keep[order[np.cumsum(problem.prior[order]) <= negligible]] = False
    if problem.bias.penalty is None or keep.sum() < 2:
        keep[[0, -1]] = True
    return np.flatnonzero(keep).astype(np.int64)


def merge_neighbours(problem: Program, n: int) -> Program:
    """Return the problem of ``n`` runs of neighbouring labels: mean label and total prior.

    The two ends stay separate: they decide how far outputs must reach, and may be far from the
    rest.
    """
    if n == problem.k:
        return problem
    inner = np.round(np.linspace(1, problem.k - 1, n - 1)).astype(np.int64)
    edges = np.concatenate([[0], inner, [problem.k]])
    labels = np.add.reduceat(problem.labels, edges[:-1]) / np.diff(edges)
    prior = np.add.reduceat(problem.prior, edges[:-1])
    return Program(labels, prior, problem.low, problem.bias)


def reference_losses(problem: Program) -> tuple[float, float]:
    """Return the losses of two simple unbiased mechanisms, which bound the optimum from above.

    The first mixes two outputs beyond the two ends; it is good at small ε. The second is debiased
    randomized response on all labels (Definition 23), the limit of optima at large ε.
    """
    y, p, low = problem.labels, problem.prior, problem.low
    k = y.size
    centre = 0.5 * (y[0] + y[-1])
    beyond = (y[-1] - y[0]) * low / (1.0 - low)  # of the two outputs, beyond the ends
    ends = 0.5 * float(p @ ((y[-1] - y + beyond) * (y - y[0] + beyond)))
    z = y - centre
    move = (k * z - z.sum()) * low / (1.0 - low)  # output − label
    out = z + move
    low_part = float(out @ out) - 2.0 * z * out.sum() + k * z * z - move**2
    response = 0.5 * float(p @ (low * low_part + move**2)) / (1.0 + low * (k - 1))
    return ends, response
