"""Multipliers that prove RR-on-Bins the best of all ε-DP randomizers: squared and absolute loss.

By Theorem 5 of "Regression with Label Differential Privacy" (Ghazi et al., ICLR 2023) and strong
duality there are numbers α [k] whose sum is the loss λ of RR-on-Bins, with

    F(v) = Σ_y h_y(v) + E·Σ_y min(h_y(v), 0) ≥ 0 for all real v,

h_y(v) = p_y·g(v, y) − α_y, E = e^ε − 1. Between the roots of the h_y (for the absolute loss, and
the labels) F is one quadratic or line. Let bin j have the labels S_j, the output v_j and the cost
c_j = Σ_y p_y·(1 + E·1[y ∈ S_j])·g(v_j, y). Complementary slackness says of y in bin j

    p_y·g(v_j, y) ≤ α_y ≤ min over i ≠ j of p_y·g(v_i, y)  and  Σ over S_j of α_y = (c_j − λ)/E.

Two points inside this box have a closed form, and often one is optimal. If not, it is moved until
the negative minima of F are zero, which mostly reaches an optimum within a few steps. Otherwise
linear programs continue: F is concave in α, so each negative minimum gives a cut, a linear
inequality that an optimum satisfies.
"""

import numpy as np
from labeldp_verify.analysis import Loss
from numpy.typing import NDArray
from scipy import sparse

from labeldp_compile.solve.losses import LOSSES, Floats, Ints
from labeldp_compile.solve.optimal_unbiased.dual import price
from labeldp_compile.solve.rr_on_bins import BinsSolution

_TIGHT = 1e-13  # relative gap at which the search ends
_CLOSE = 1e-10  # relative gap at which no cuts are added
_LARGEST = 401  # labels of positive prior; beyond, no linear programs are tried
_HIGHEST = 200.0  # ε; beyond, e^ε is out of range, and a bound of 0 as good as any
_PROJECTIONS = 8  # of each point
_MINIMA = 64  # of F that one projection deals with
_ROW_ENTRIES = 10**6  # of the system of a projection, at most
_ROUNDS = 12  # of cuts, at most
_GAP_OF_SHARE, _FEASIBLE = 1e-6, 1e-9  # asked of the linear programs


def dual_of_rr_on_bins(
    labels: Floats, prior: Floats, epsilon: float, loss: Loss, solution: BinsSolution
) -> NDArray[np.float64]:
    """Find multipliers that prove a bound close to the loss of RR-on-Bins, mostly equal to it.

    Up to 401 labels of positive prior the bound was within 1e-10 of the loss in all cases tried;
    beyond, some are loose. Losses below 1e-16 of the largest are lost in rounding.

    Args:
        labels: [k] increasing. prior: [k] finite, not negative, not all 0; normalized here.
        epsilon: ε ≥ 0 of the randomizer. loss: "squared" ½(v − y)² or "absolute" |v − y|.
        solution: the answer of `solve_rr_on_bins` to the same problem.

    Returns:
        α [k] in units of the loss, 0 where the prior is, with F ≥ 0 up to rounding. Σα bounds the
        loss of every ε-DP randomizer from below, even if ``solution`` is not the best.
    """
    labels, prior = np.asarray(labels, np.float64), np.asarray(prior, np.float64)
    alpha = np.zeros(labels.size)
    held = prior > prior.max() * np.finfo(np.float64).tiny
    bin_of = np.searchsorted(solution.starts, np.arange(labels.size), side="right") - 1
    kept, bins = np.unique(bin_of[held], return_inverse=True)
    # Relative to a label, in units of a power of two near the spread, so that integers stay exact.
    p = prior[held] / prior[held].sum()
    middle = labels[held][p.argmax()]
    y = labels[held] - middle
    if y.size == 1 or epsilon > _HIGHEST:
        return alpha
    unit = 2.0 ** np.ceil(np.log2(np.abs(y).max()))
    values = (solution.values[kept] - middle) / unit
    search = _Search(y / unit, p, epsilon, loss, values, bins)
    alpha[held] = search.run() * (unit**2 if LOSSES[loss].degree == 2 else unit)
    return alpha


def piece_minima(
    loss: Loss, labels: Floats, prior: Floats, epsilon: float, alpha: Floats
) -> tuple[Floats, Floats]:
    """The minimum of F·e^-ε on every piece, and the output where it is taken.

    Args:
        loss: "squared" or "absolute".
        labels: [k] increasing. prior: [k] positive. epsilon: > 0. alpha: [k] multipliers.

    Returns:
        Two arrays [pieces], outputs not decreasing.
    """
    low = float(np.exp(-epsilon))
    if LOSSES[loss].degree == 2:
        found = price(labels, prior, low, alpha, np.zeros_like(alpha))
        return found.minima, found.places
    radius = np.maximum(alpha, 0.0) / prior
    places = np.concatenate([labels, labels - radius, labels + radius])
    # With b = e^-ε, F·b = Σ b·h + (1 − b)·Σ min(h, 0). Here min(h, 0) is zero up to the lower root,
    # turns at the label and is zero again from the upper root on. Without roots the bends cancel.
    p = prior.astype(np.longdouble)
    bends = np.concatenate([2.0 * p, -(1.0 - low) * p, -(1.0 - low) * p])
    order = np.argsort(places, kind="stable")
    places, bends = places[order], bends[order]
    slopes = -low * p.sum() + np.cumsum(bends)
    first = low * (p @ np.abs(places[0] - labels.astype(np.longdouble)) - alpha.sum())
    rises = np.concatenate([np.zeros(1, np.longdouble), np.cumsum(slopes[:-1] * np.diff(places))])
    return (first + rises).astype(np.float64), places


def local_minima(minima: Floats, places: Floats, below: float) -> Floats:
    """Outputs where F has a local minimum under ``below``, given the minima of its pieces."""
    f = np.concatenate([[np.inf], minima, [np.inf]])
    least = (f[1:-1] <= f[:-2]) & (f[1:-1] <= f[2:]) & (minima < below)
    return np.unique(places[least])


class _Search:
    """The best multipliers so far, for labels of positive prior."""

    def __init__(
        self, y: Floats, p: Floats, epsilon: float, loss: Loss, values: Floats, bins: Ints
    ) -> None:
        self._y, self._p, self._epsilon, self._loss = y, p, epsilon, loss
        self._values, self._bins = values, bins
        self._e = float(np.expm1(epsilon))
        own = p * LOSSES[loss].of(values[bins], y)
        every = np.array([p @ LOSSES[loss].of(v, y) for v in values])
        self._own, d = own, values.size
        costs = every + self._e * np.bincount(bins, own, d)
        self._lambda = float(costs.sum() / (d + self._e))
        self._costs = costs
        self._best, self._bound = np.zeros_like(y), 0.0  # F is never negative at α = 0

    def run(self) -> Floats:
        """Multipliers [k] with F ≥ 0 up to rounding."""
        if self._values.size == 1 or self._e == 0.0:
            self._try(self._own)  # the box is a point
            return self._best
        if self._tight():
            return self._best
        self._low, self._high, self._totals = self._box()
        for alpha in self._closed_forms():
            if self._try(alpha) or self._project(alpha):
                return self._best
        if self._y.size <= _LARGEST:
            self._refine(alpha)
        return self._best

    def _tight(self, gap: float = _TIGHT) -> bool:
        return self._bound >= self._lambda * (1.0 - gap)

    def _try(self, alpha: Floats) -> bool:
        """Lower α until F ≥ 0, keep it if it is the best; whether the best is tight."""
        minima, _ = self._minima(alpha)
        # Taking δ from every α adds δ·(k + E) at least to a negative F.
        short = max(0.0, -float(minima.min())) * np.exp(self._epsilon)
        lowered = alpha - short / (alpha.size + self._e)
        bound = float(lowered.sum())
        if bound > self._bound:
            self._best, self._bound = lowered, bound
        return self._tight()

    def _box(self) -> tuple[Floats, Floats, Floats]:
        """Ranges [k] of the multipliers and their sums [d] over bins, by complementary slackness.

        Only the outputs next to a bin's own can bound its multipliers from above.
        """
        last = self._values.size - 1
        left = LOSSES[self._loss].of(self._values[np.maximum(self._bins - 1, 0)], self._y)
        right = LOSSES[self._loss].of(self._values[np.minimum(self._bins + 1, last)], self._y)
        left[self._bins == 0] = np.inf
        right[self._bins == last] = np.inf
        high = np.maximum(self._p * np.minimum(left, right), self._own)
        return self._own, high, (self._costs - self._lambda) / self._e

    def _closed_forms(self) -> list[Floats]:
        """Points of the box with the right sums, between its corners by loss or by radius."""
        d = self._values.size
        room = self._totals - np.bincount(self._bins, self._low, d)
        wide = np.bincount(self._bins, self._high - self._low, d)
        theta = np.divide(room, wide, out=np.zeros(d), where=wide > 0)
        theta = np.clip(theta, 0.0, 1.0)[self._bins]
        points = [self._low + theta * (self._high - self._low)]
        if LOSSES[self._loss].degree == 2:
            # Roots at a distance that θ decides: (r + θ·(R − r))² has the right sum.
            r, far = np.sqrt(self._low), np.sqrt(self._high)
            a = np.bincount(self._bins, (far - r) ** 2, d)
            b = 2.0 * np.bincount(self._bins, r * (far - r), d)
            root = b + np.sqrt(b**2 + 4.0 * a * np.maximum(room, 0.0))
            theta = np.divide(2.0 * room, root, out=np.zeros(d), where=root > 0)
            theta = np.clip(theta, 0.0, 1.0)[self._bins]
            points.append((r + theta * (far - r)) ** 2)
        return points

    def _refine(self, alpha: Floats) -> None:
        """Cutting planes from ``alpha`` on: F where it was negative, for the labels negative there.

        Among all multipliers in the box, a linear program finds those with the largest share of the
        possible F at the outputs of the cuts. An interior-point method finds a point far from the
        faces of the optimal set, which is also good between the outputs.
        """
        y, p = self._y, self._p
        member = (np.arange(self._values.size)[:, None] == self._bins).astype(np.float64)
        rows, most, scale = np.zeros((0, y.size)), np.zeros(0), np.zeros(0)
        outputs = np.union1d(y, 0.5 * (y[:-1] + y[1:]))
        for _ in range(_ROUNDS):
            cost = p * LOSSES[self._loss].of(outputs[:, None], y)
            negative = (cost < alpha).astype(np.float64)
            # F ≥ t·scale·E as a bound on Σ α over the negative ones, where Σ α is λ.
            free = cost.sum(axis=1)
            rows = np.concatenate([rows, negative])
            most = np.append(most, (free - self._lambda) / self._e + (negative * cost).sum(axis=1))
            # From the labels of bin j alone, F is at most what v costs bin j above v_j.
            above = (free[:, None] - self._costs) / self._e + cost @ member.T
            scale = np.append(scale, np.maximum(above.min(axis=1), 0.0))
            alpha = self._largest_share(member, np.column_stack([rows, scale]), most)
            if self._try(alpha) or self._project(alpha):
                return
            outputs = local_minima(*self._minima(alpha), 0.0)
            if outputs.size == 0:
                return

    def _largest_share(self, member: Floats, rows: Floats, most: Floats) -> Floats:
        """[k] α in the box with rows·(α, t) ≤ most and the largest t ≤ 1."""
        import clarabel  # noqa: PLC0415  # rarely needed

        d, k = member.shape
        unit = self._lambda / k
        rows[:, -1] /= unit
        none = sparse.csc_matrix((k, 1))
        each = sparse.hstack([sparse.identity(k), none])
        last = sparse.csc_matrix(([1.0], ([0], [k])), (1, k + 1))
        sums = sparse.hstack([sparse.csc_matrix(member), none[:d]])
        matrix = sparse.vstack([sums, sparse.csc_matrix(rows), each, -each, last], "csc")
        right = np.concatenate([self._totals, most, self._high, -self._low, [unit]]) / unit
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_threads = False, 1
        settings.tol_gap_abs = settings.tol_gap_rel = _GAP_OF_SHARE
        settings.tol_feas = _FEASIBLE
        cones = [clarabel.ZeroConeT(d), clarabel.NonnegativeConeT(right.size - d)]
        objective = np.append(np.zeros(k), -1.0)
        square = sparse.csc_matrix((k + 1, k + 1))
        solver = clarabel.DefaultSolver(square, objective, matrix, right, cones, settings)
        return np.asarray(solver.solve().x)[:k] * unit

    def _minima(self, alpha: Floats) -> tuple[Floats, Floats]:
        return piece_minima(self._loss, self._y, self._p, self._epsilon, alpha)

    def _project(self, alpha: Floats) -> bool:
        """Try nearby points where the minima of F are 0; whether the best is close to tight.

        α moves until F = 0 at its negative minima, given the labels with negative h there. It moves
        as little as possible, relative to how far each multiplier may go. This is the right move if
        no optimal α leaves F positive, because equally good bins exist.
        """
        weight = np.maximum(np.minimum(alpha - self._low, self._high - alpha), 0.0)
        rows = (np.arange(self._values.size)[:, None] == self._bins).astype(np.float64)
        below = -_TIGHT * self._lambda * np.exp(-self._epsilon)
        for _ in range(_PROJECTIONS):
            if self._tight(_CLOSE) or rows.size > _ROW_ENTRIES:
                break
            outputs = local_minima(*self._minima(alpha), below)[:_MINIMA]
            h = self._p * LOSSES[self._loss].of(outputs[:, None], self._y) - alpha
            f = h.sum(axis=1) + self._e * np.minimum(h, 0.0).sum(axis=1)
            lacking = np.concatenate([np.zeros(rows.shape[0]), f / self._e])
            rows = np.concatenate([rows, (h < 0).astype(np.float64)])
            move = np.linalg.lstsq(rows * weight, lacking, rcond=1e-10)[0]
            alpha = alpha + weight * move
            self._try(alpha)
        return self._tight(_CLOSE)
