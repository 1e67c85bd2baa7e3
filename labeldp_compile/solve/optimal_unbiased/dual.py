"""The dual: exact pricing of every column, and the bound that multipliers prove.

Pricing finds the worst output for a dual point, over every subset of labels and real value.

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

from labeldp_compile.solve.optimal_unbiased.problem import (
    Columns,
    Floats,
    Intervals,
    Ints,
    Program,
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


def local_places(values: Floats, below: float) -> Ints:
    """Where values have a local minimum under ``below``."""
    f = np.concatenate([[np.inf], values, [np.inf]])
    return np.flatnonzero((f[1:-1] <= f[:-2]) & (f[1:-1] <= f[2:]) & (values < below))


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
    if every:
        picked = local_places(found.minima, -threshold)
    else:
        below = np.concatenate([[False], found.minima < -threshold, [False]])
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


# What an approximate solution proves: an exact mechanism above, a dual bound below.
#
# With a bias budget, neighbouring labels may get the same row. The conditions on columns then fix
# the sum of their α, but not its split. The bound needs every h_y negative on the outputs of the
# window and positive on all others. So each α_y is put at the same fraction of its remaining range.


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


# The dual values of labels with equal rows, between which ``complete`` cannot always split α.
#
# F is concave in α, so each negative minimum gives a cut, a linear inequality that an optimum
# meets. α moves to the nearest point that meets all cuts and proves nearly the loss; β stays.


_ROOM = 1e-5  # how far this is below the loss, relatively, which leaves F some room
_MOVES, _LOWERINGS = 80, 30
_MINIMA, _CUTS = 150, 400  # of a move, and that are kept
TINY = 1e-16  # F at which it counts as not negative, if the loss is about 1/2
_MORE = 1.02  # times the lack of F: neighbouring outputs may lack a little more


def lowered(problem: Program, alpha: Floats, beta: Floats) -> Floats:
    """α [k] with F ≥ 0 nearly, lowered only for labels with h < 0 where F < 0.

    This costs as much as F lacks, once for each stretch of outputs. What ``prove`` does costs up to
    e^ε times as much: it lowers the α of all labels, most of which do not matter there.
    """
    y, p, low = problem.labels, problem.prior, problem.low
    for _ in range(_LOWERINGS):
        found = price(y, p, low, alpha, beta)
        at = local_places(found.minima, min(-TINY, 1e-3 * found.worst))
        if at.size == 0:
            break
        fall = np.zeros_like(alpha)
        for i in at[np.argsort(found.minima[at], kind="stable")][:_MINIMA]:
            v = found.places[i]
            h = np.minimum(0.5 * p * (v - y) ** 2 - alpha - beta * v, 0.0)
            if h.any() and not fall[h < 0].any():
                fall -= h * min(_MORE * found.minima[i] / h.sum(), 1.0)
        alpha = alpha - fall
    return alpha


def tightened(problem: Program, alpha: Floats, beta: Floats, loss: float) -> Bound:
    """The best bound near these multipliers, of which Σα + Σβ·y is about the ``loss``."""
    y, p, low, beta = problem.labels, problem.prior, problem.low, clip_beta(problem, beta)
    total = (1.0 - _ROOM) * loss - dual_value(problem, 0.0 * alpha, beta)
    reach, ones = np.sqrt(p) + np.finfo(np.float64).eps, np.ones_like(alpha)
    best = prove(problem, lowered(problem, alpha, beta), beta)
    cuts, most = np.zeros((0, problem.k)), np.zeros(0)
    for _ in range(_MOVES):
        found = price(y, p, low, alpha, beta)
        at = local_places(found.minima, -TINY)
        if at.size == 0 or best.value >= (1.0 - 2.0 * _ROOM) * loss:
            break
        v = found.places[at[np.argsort(found.minima[at], kind="stable")][:_MINIMA], None]
        level = 0.5 * p * (v - y) ** 2 - beta * v
        more = low + (1.0 - low) * (level < alpha)
        cuts, most = np.concatenate([cuts, more]), np.append(most, (more * level).sum(axis=1))
        moved = nearest(alpha, reach, (cuts, most), (ones, total), _CUTS)
        if moved is None:
            break
        alpha, used = moved
        cuts, most = cuts[used], most[used]
        bound = prove(problem, lowered(problem, alpha, beta), beta)
        best = max(best, bound, key=lambda b: b.value)
    return best


def nearest(
    start: Floats,
    reach: Floats,
    cuts: tuple[Floats, Floats],
    gain: tuple[Floats, float],
    keep: int,
    least: float = -np.inf,
) -> tuple[Floats, NDArray[np.bool_]] | None:
    """The nearest point that meets all cuts and has the wanted gain; the cuts to keep.

    Least-distance programming (Lawson and Hanson, "Solving least squares problems", 1974).

    Args:
        start: [n]. reach: [n] units of distances.
        cuts: [m, n] rows and [m] their most. gain: [n] row and its least.
        keep: cuts to keep. least: of a coordinate, enforced at the end.
    """
    from scipy.optimize import nnls  # noqa: PLC0415  # a fifth of a second

    (rows, most), (row, total) = cuts, gain
    system = np.concatenate([-rows, row[None]]) * reach
    missing = np.append(rows @ start - most, total - row @ start)
    sizes = np.linalg.norm(system, axis=1)
    system, missing = system / sizes[:, None], missing / sizes
    scale = float(np.abs(missing).max())
    if scale == 0.0:
        return None
    system = np.concatenate([system.T, missing[None] / scale])
    target = np.zeros(system.shape[0])
    target[-1] = 1.0
    try:
        weights, _ = nnls(system, target)
    except RuntimeError:
        return None
    left = system @ weights - target
    if left[-1] > -1e-12:  # no point meets them all
        return None
    moved = np.maximum(start - reach * left[:-1] / left[-1] * scale, least)
    slack = (most - rows @ moved) / sizes[:-1]
    order = np.argsort(np.where(weights[:-1] > 0.0, -np.inf, slack), kind="stable")
    used = np.zeros(most.size, bool)
    used[order[:keep]] = True
    return moved, used


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
    least, most = window_range(problem, columns, beta)
    done = alpha.copy()
    stops = np.append(starts[1:], k)
    for i, j in zip(starts[stops - starts > 1], stops[stops - starts > 1], strict=True):
        room = float((most[i:j] - least[i:j]).sum())
        if np.isfinite(room) and room > 0:
            share = float(alpha[i:j].sum() - least[i:j].sum()) / room
            done[i:j] = least[i:j] + share * (most[i:j] - least[i:j])
    return done


def even_roots(least: Floats, most: Floats, run: Ints, room: Floats) -> Floats:
    """[k] squares between these, whose roots in a run are the same share of the way.

    Args:
        least, most: [k] squares. run: [k]. room: [runs] what their sums are above those of least.
    """
    r, far = np.sqrt(np.maximum(least, 0.0)), np.sqrt(np.maximum(most, 0.0))
    a = np.bincount(run, (far - r) ** 2, room.size)
    b = 2.0 * np.bincount(run, r * (far - r), room.size)
    root = b + np.sqrt(b**2 + 4.0 * a * np.maximum(room, 0.0))
    theta = np.divide(2.0 * room, root, out=np.zeros(room.size), where=root > 0)
    return np.asarray((r + np.clip(theta, 0.0, 1.0)[run] * (far - r)) ** 2)


def window_range(problem: Program, columns: Columns, beta: Floats) -> tuple[Floats, Floats]:
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
