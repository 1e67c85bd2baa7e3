"""The public solver: reduce, solve, and return the result for all labels in their units."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.solve.optimal_unbiased.certificate import prove
from labeldp_compile.solve.optimal_unbiased.intervals import Floats, Ints
from labeldp_compile.solve.optimal_unbiased.levels import predicted_means
from labeldp_compile.solve.optimal_unbiased.problem import (
    BiasBudget,
    Program,
    deciding_labels,
    reference_losses,
)
from labeldp_compile.solve.optimal_unbiased.refine import refine
from labeldp_compile.solve.optimal_unbiased.windows import (
    ExtraLine,
    extra_line,
    place_windows,
    placed_loss,
    widen,
)


@dataclass(frozen=True, eq=False)
class UnbiasedSolution:
    """An ε-DP randomizer with exact means and a proof of how good it is.

    Attributes:
        values: [m] outputs, strictly increasing, m <= 2k.
        weights: [m] c, the low entry Pr[v | y] of labels whose window does not cover the output.
            If it does, the entry is e^ε·c. A label that never or rarely occurs may have an entry in
            between at the two ends of its window.
        means: [k] E[output | y]; the labels when unbiased.
        starts: [k] where the window of each label begins on the line of extra probability.
        loss: ½E(v̂ − y)² under the prior.
        objective: loss plus the penalty of the bias budget, if any.
        lower_bound: no ε-DP randomizer within the bias budget has a smaller objective, with any
            outputs (weak duality; evaluated in floating point).
        alpha, beta: [k] the multipliers that prove it; F >= 0 up to rounding.
        gap: (objective − lower_bound) / objective, if the objective is not zero.
    """

    values: Floats
    weights: Floats
    means: Floats
    starts: Floats
    loss: float
    objective: float
    lower_bound: float
    alpha: Floats
    beta: Floats
    gap: float


def solve_optimal_unbiased(
    labels: NDArray[np.floating] | Ints,
    prior: NDArray[np.floating],
    epsilon: float,
    *,
    bias: BiasBudget | None = None,
    tolerance: float = 1e-8,
    observer: Observer = QUIET,
) -> UnbiasedSolution:
    """Find the ε-DP randomizer of least squared loss among those with the wanted means.

    Args:
        labels: [k] finite, strictly increasing, k >= 2.
        prior: [k] nonnegative, not all zero, normalized here.
        epsilon: privacy parameter > 0, tested from 0.01 to 20.
        bias: how far means may be from labels; by default, not at all.
        tolerance: relative gap at which to stop.
        observer: gets a line per step.

    Returns:
        The best mechanism and the best bound that were found. ``gap`` is the distance between them.
        It is at most ``tolerance`` unless floating point stopped the search earlier.
    """
    y, p = np.asarray(labels, np.float64), np.asarray(prior, np.float64)
    p = p / p.sum()
    low = float(np.exp(-epsilon))
    # Centred for accuracy; the problem is invariant.
    centre = 0.5 * float(y[0] + y[-1])
    full = Program(y - centre, p, low, bias or BiasBudget())
    # A label left out can cost about range²/8 times its mass.
    span = float(full.labels[-1] - full.labels[0])
    negligible = 0.01 * tolerance * min(reference_losses(full)) / (span**2 / 8.0)
    if not full.bias.unbiased:
        # The optimum may be far below the unbiased one, and the bias of rare labels has a price.
        negligible *= 1e-3 / (1.0 + 2.0 * (full.bias.penalty or 0.0))
    kept = deciding_labels(full, min(negligible, tolerance))
    core = Program(full.labels[kept], p[kept], low, full.bias)
    found = refine(core, tolerance, observer)

    means = full.allowed(predicted_means(core, found.means, full.labels))
    if full.bias.penalty is not None:
        means = np.clip(means, found.means[0], found.means[-1])
    line = widen(_distinct(found.line, low), means[0], means[-1], low)
    starts = place_windows(line, means)
    loss = placed_loss(line, starts, full.labels, p, low)
    objective = loss + full.penalty(means)
    alpha, beta = np.zeros(full.k), np.zeros(full.k)
    alpha[kept], beta[kept] = found.bound.alpha, found.bound.beta
    bound = prove(full, alpha, beta)
    return UnbiasedSolution(
        values=line.values + centre,
        weights=low * line.weights,
        means=line.means(starts) + centre,
        starts=starts,
        loss=loss,
        objective=objective,
        lower_bound=bound.value,
        # α + β·v with v measured from the centre is (α − β·centre) + β·v with v itself.
        alpha=bound.alpha - bound.beta * centre,
        beta=bound.beta,
        gap=(objective - bound.value) / max(objective, 1e-12 * span**2),
    )


def _distinct(line: ExtraLine, low: float) -> ExtraLine:
    """Merge outputs of the same value: they are one output."""
    values, where = np.unique(line.values, return_inverse=True)
    weights = np.zeros(values.size)
    np.add.at(weights, where, line.weights)
    return extra_line(values, weights, low)
