"""Exact pricing: the worst output for a dual point, over every subset of labels and real value.

With h_y(v) = ½p_y(v − y)² − α_y − β_y·v, a column with high entries on the set N and value v has
reduced cost proportional to Σ_y h_y(v) + (e^ε − 1)·Σ_{y ∈ N} h_y(v), which the set of negative
h_y minimises. So

    F(v) = Σ_y h_y(v) + (e^ε − 1)·Σ_y min(h_y(v), 0)

prices every subset at once. Between neighbouring roots of the h_y (at most 2k of them), F is one
quadratic, so finding its global minimum over the reals takes O(k log k). F is multiplied by e^-ε
here, so that the high entry is 1 and F has the size of the loss at every ε.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.solve.optimal_unbiased.intervals import (
    Floats,
    Intervals,
    Runs,
    unique_intervals,
)


@dataclass(frozen=True, eq=False)
class Pricing:
    """F·e^-ε minimised on every piece between roots.

    Attributes:
        worst: the smallest of ``minima``, the global minimum.
        minima: [pieces] smallest value of F·e^-ε on each piece.
        places: [pieces] where it is taken.
    """

    worst: float
    minima: Floats
    places: Floats


def price(labels: Floats, prior: Floats, low: float, alpha: Floats, beta: Floats) -> Pricing:
    """Minimise F·e^-ε over the reals, exactly up to rounding.

    Args:
        labels: [k] increasing. prior: [k], zeros allowed (their h_y is a line). low: e^-ε.
        alpha: [k] multipliers of normalization. beta: [k] multipliers of the means.

    Returns:
        The minimum on every piece.
    """
    enter, leave, always = _negative_ranges(labels, prior, alpha, beta)
    # Quadratic coefficients of the h_y about v = 0. At large ε many digits cancel, so the running
    # sums use the longest float that exists (float64 only makes the bound looser).
    p, y = prior.astype(np.longdouble), labels.astype(np.longdouble)
    terms = np.stack([p / 2, -(p * y + beta), p * y**2 / 2 - alpha])
    places = np.concatenate([enter, leave])
    finite = np.isfinite(places)
    steps = np.concatenate([terms, -terms], axis=1)[:, finite]
    start = low * terms.sum(axis=1) + (1.0 - low) * terms[:, always].sum(axis=1)
    order = np.argsort(places[finite], kind="stable")
    knots = places[finite][order]
    square, slope, constant = np.concatenate(
        [start[:, None], start[:, None] + (1.0 - low) * np.cumsum(steps[:, order], axis=1)], axis=1
    )
    left = np.concatenate([[-np.inf], knots])
    right = np.concatenate([knots, [np.inf]])
    bottom = np.divide(-slope, 2 * square, out=np.zeros_like(slope), where=square > 0)
    v = np.clip(bottom, left, right)
    with np.errstate(over="ignore", invalid="ignore"):
        minima = ((square * v + slope) * v + constant).astype(np.float64)
    # Multipliers that overflow prove nothing.
    minima = np.where(np.isnan(minima), -np.inf, minima)
    return Pricing(float(minima.min()), minima, v.astype(np.float64))


def priced_out(
    labels: Floats,
    prior: Floats,
    low: float,
    alpha: Floats,
    beta: Floats,
    threshold: float,
    every: bool,
) -> tuple[Intervals, Runs]:
    """Return the columns at which F·e^-ε is below −``threshold``.

    They are the local minima over the pieces, or without ``every`` only the worst place of each
    stretch of them; at most the worst k are returned. If the negative h_y are not one run of
    labels, the hull and every run are returned as intervals, and also the subset itself. At an
    optimum they are one run.
    """
    found = price(labels, prior, low, alpha, beta)
    below = np.concatenate([[False], found.minima < -threshold, [False]])
    if every:
        f = np.concatenate([[np.inf], found.minima, [np.inf]])
        picked = np.flatnonzero(below[1:-1] & (f[1:-1] <= f[:-2]) & (f[1:-1] <= f[2:]))
    else:
        begins, ends = np.flatnonzero(np.diff(below.astype(np.int8))).reshape(-1, 2).T
        stretches = zip(begins, ends, strict=True)
        picked = np.array([i + int(found.minima[i:j].argmin()) for i, j in stretches], np.int64)
    picked = picked[np.argsort(found.minima[picked], kind="stable")[: labels.size]]
    none = np.zeros(0, np.int64)
    first, last = [none], [none]
    for v in found.places[picked]:
        negative = 0.5 * prior * (v - labels) ** 2 - alpha - beta * v < 0
        edge = np.diff(negative.astype(np.int8), prepend=0, append=0)
        first.append(np.flatnonzero(edge == 1))
        last.append(np.flatnonzero(edge == -1) - 1)
    starts = np.concatenate([*first, *(run[:1] for run in first)])
    ends = np.concatenate([*last, *(run[-1:] for run in last)])
    uneven = [i for i, run in enumerate(first) if run.size > 1]
    owner = [np.full(first[i].size, place) for place, i in enumerate(uneven)]
    runs = Runs(
        np.concatenate([none, *owner]),
        np.concatenate([none, *(first[i] for i in uneven)]),
        np.concatenate([none, *(last[i] for i in uneven)]),
        len(uneven),
    )
    return unique_intervals(starts, ends, labels.size), runs


def _negative_ranges(
    labels: Floats, prior: Floats, alpha: Floats, beta: Floats
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return for each label the ends of {v : h_y(v) < 0}, and whether it reaches −inf.

    The set is an open interval, a half-line (p_y = 0), everything or empty. Ends that do not exist
    are infinite.
    """
    k = labels.size
    enter, leave = np.full(k, np.inf), np.full(k, np.inf)
    curved = prior > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # h = ½p·u² − β·u − (α + β·y) in u = v − y: the stable form of the quadratic formula.
        constant = alpha + beta * labels
        root = np.sqrt(np.maximum(beta**2 + 2.0 * prior * constant, 0.0))
        big = beta + np.copysign(root, beta)
        far, near = big / prior, -2.0 * constant / big
        real = curved & (root > 0)
        enter = np.where(real, labels + np.minimum(far, near), enter)
        leave = np.where(real, labels + np.maximum(far, near), leave)
        line = ~curved & (beta != 0)
        crossing = labels - constant / beta
    # −α − βv < 0 to the right of the crossing if β > 0, to the left of it if β < 0.
    enter = np.where(line, np.where(beta > 0, crossing, -np.inf), enter)
    leave = np.where(line, np.where(beta > 0, np.inf, crossing), leave)
    everywhere = ~curved & (beta == 0) & (alpha > 0)
    return enter, leave, everywhere | (enter == -np.inf)
