"""Multipliers that prove RR-on-Bins the best of all ε-DP randomizers: squared and absolute loss.

By Theorem 5 of "Regression with Label Differential Privacy" (Ghazi et al., ICLR 2023) and strong
duality there are numbers α [k] with F ≥ 0 (see `rr_on_bins_pricing`) whose sum is the loss λ of
RR-on-Bins. Let bin j have the labels S_j, the output v_j and the cost
c_j = Σ_y p_y·(1 + E·1[y ∈ S_j])·g(v_j, y), E = e^ε − 1. Complementary slackness says of y in bin j

    p_y·g(v_j, y) ≤ α_y ≤ min over i ≠ j of p_y·g(v_i, y)  and  Σ over S_j of α_y = (c_j − λ)/E.

Two points inside this box come in closed form, and often one is optimal. If not, it is moved until
the minima of F that are negative are zero, which mostly ends at an optimum within a few steps.
Otherwise grids of outputs are refined where F is least (an exchange method for semi-infinite
programs), each solved by an interior-point method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.solve.range_moments import Floats, Ints
from labeldp_compile.solve.rr_on_bins import BinsSolution
from labeldp_compile.solve.rr_on_bins_interior import GridProgram, solve_grid_program
from labeldp_compile.solve.rr_on_bins_pricing import (
    Loss,
    local_minima,
    loss_of,
    piece_minima,
    projected,
)

_TIGHT = 1e-13  # relative gap at which the search ends
_CLOSE = 1e-10  # relative gap at which no finer grid is tried
_LARGEST = 401  # labels of positive prior; beyond, no grids are tried
_HIGHEST = 200.0  # ε; beyond, e^ε is out of range, and a bound of 0 as good as any
_PROJECTIONS = 8  # of each point
_ROW_ENTRIES = 10**6  # of the system of a projection, at most
_ROUNDS = 12  # refinements of the grid, at most
_BISECTIONS = 80  # from asinh's range to rounding
_FREE = 1e-3  # a multiplier whose range is narrower, in units of λ/k, is fixed
_WORK = 1e8  # multiplications per label in all: about 1 s at 100 labels and 5 s at 401


def dual_of_rr_on_bins(
    labels: Floats, prior: Floats, epsilon: float, loss: Loss, solution: BinsSolution
) -> NDArray[np.float64]:
    """Find multipliers that prove a bound close to the loss of RR-on-Bins, mostly equal to it.

    Up to 401 labels of positive prior the bound was within 1e-10 of the loss in all cases tried;
    beyond, some are loose. Losses below 1e-16 of the largest are lost in rounding.

    Args:
        labels: [k] increasing. prior: [k] finite, not negative, not all 0; normalised here.
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
    # About a label, in units of a power of two near the spread: whole labels stay exact.
    p = prior[held] / prior[held].sum()
    middle = labels[held][p.argmax()]
    y = labels[held] - middle
    if y.size == 1 or epsilon > _HIGHEST:
        return alpha
    unit = 2.0 ** np.ceil(np.log2(np.abs(y).max()))
    values = (solution.values[kept] - middle) / unit
    search = _Search(y / unit, p, epsilon, loss, values, bins)
    alpha[held] = search.run() * (unit**2 if loss == "squared" else unit)
    return alpha


@dataclass(frozen=True, eq=False)
class _Box:
    """Ranges [k] of the multipliers and their sums [d] over bins, by complementary slackness."""

    low: Floats
    high: Floats
    totals: Floats


class _Search:
    """The best multipliers so far, for labels of positive prior."""

    def __init__(
        self, y: Floats, p: Floats, epsilon: float, loss: Loss, values: Floats, bins: Ints
    ) -> None:
        self._y, self._p, self._epsilon, self._loss = y, p, epsilon, loss
        self._values, self._bins = values, bins
        self._e = float(np.expm1(epsilon))
        own = p * loss_of(loss, values[bins], y)
        every = np.array([p @ loss_of(loss, v, y) for v in values])
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
        box = self._box()
        for alpha in self._closed_forms(box):
            if self._try(alpha):
                return self._best
            if self._project(box, alpha):
                return self._best
        if self._y.size <= _LARGEST:
            self._refine(box)
        return self._best

    def _tight(self, gap: float = _TIGHT) -> bool:
        return self._bound >= self._lambda * (1.0 - gap)

    def _try(self, alpha: Floats) -> bool:
        """Lower α until F ≥ 0, keep it if it is the best; whether the best is tight."""
        minima, _ = piece_minima(self._loss, self._y, self._p, self._epsilon, alpha)
        # Taking δ from every α adds δ·(k + E) at least to a negative F.
        short = max(0.0, -float(minima.min())) * np.exp(self._epsilon)
        lowered = alpha - short / (alpha.size + self._e)
        bound = float(lowered.sum())
        if bound > self._bound:
            self._best, self._bound = lowered, bound
        return self._tight()

    def _box(self) -> _Box:
        """Only the outputs next to a bin's own can bound its multipliers from above."""
        last = self._values.size - 1
        left = loss_of(self._loss, self._values[np.maximum(self._bins - 1, 0)], self._y)
        right = loss_of(self._loss, self._values[np.minimum(self._bins + 1, last)], self._y)
        left[self._bins == 0] = np.inf
        right[self._bins == last] = np.inf
        high = np.maximum(self._p * np.minimum(left, right), self._own)
        return _Box(self._own, high, (self._costs - self._lambda) / self._e)

    def _closed_forms(self, box: _Box) -> list[Floats]:
        """Points of the box with the right sums, between its corners in loss or in radius."""
        d = self._values.size
        room = box.totals - np.bincount(self._bins, box.low, d)
        wide = np.bincount(self._bins, box.high - box.low, d)
        theta = np.divide(room, wide, out=np.zeros(d), where=wide > 0)
        theta = np.clip(theta, 0.0, 1.0)[self._bins]
        points = [box.low + theta * (box.high - box.low)]
        if self._loss == "squared":
            # Roots as far from the label as θ says: (r + θ·(R − r))² sums to what it has to.
            r, far = np.sqrt(box.low), np.sqrt(box.high)
            a = np.bincount(self._bins, (far - r) ** 2, d)
            b = 2.0 * np.bincount(self._bins, r * (far - r), d)
            root = b + np.sqrt(b**2 + 4.0 * a * np.maximum(room, 0.0))
            theta = np.divide(2.0 * room, root, out=np.zeros(d), where=root > 0)
            theta = np.clip(theta, 0.0, 1.0)[self._bins]
            points.append((r + theta * (far - r)) ** 2)
        return points

    def _refine(self, box: _Box) -> None:
        """Exchange: solve on a grid of outputs, add those where F is least, repeat."""
        alpha = self._centre(box)
        if self._try(alpha):
            return
        outputs = self._first_grid()
        work = _WORK * self._y.size
        unit = self._lambda / self._y.size

        def spread(a: Floats, free: NDArray[np.bool_]) -> Floats:
            full = alpha.copy()
            full[free] = a * unit
            return full

        for _ in range(_ROUNDS):
            program, free = self._program(box, alpha, outputs)
            if program is None:
                return

            def good(a: Floats, free: NDArray[np.bool_] = free) -> bool:
                return self._try(spread(a, free))

            answer, done = solve_grid_program(program, good, work)
            found = spread(answer, free)
            work -= done
            if self._try(found) or self._project(box, found) or work <= 0.0:
                return
            minima, places = piece_minima(self._loss, self._y, self._p, self._epsilon, found)
            added = np.setdiff1d(local_minima(minima, places, 0.0), outputs)
            if added.size == 0:
                return
            outputs = np.union1d(outputs, added)

    def _project(self, box: _Box, alpha: Floats) -> bool:
        """Try nearby points where the minima of F are 0; whether the best is close to tight."""
        weight = np.maximum(np.minimum(alpha - box.low, box.high - alpha), 0.0)
        rows = (np.arange(self._values.size)[:, None] == self._bins).astype(np.float64)
        below = -_TIGHT * self._lambda * np.exp(-self._epsilon)
        for _ in range(_PROJECTIONS):
            if self._tight(_CLOSE) or rows.size > _ROW_ENTRIES:
                break
            alpha, rows = projected(
                self._loss, self._y, self._p, self._epsilon, alpha, weight, rows, below
            )
            self._try(alpha)
        return self._tight(_CLOSE)

    def _centre(self, box: _Box) -> Floats:
        """The analytic centre of the box at the right sums.

        It is where 1/x − 1/(1 − x) = π·(high − low), x = (α − low)/(high − low), for some π per
        bin, which is found by bisection of asinh(π·λ/k).
        """
        d = self._values.size
        unit = self._lambda / self._y.size
        wide = (box.high - box.low) / unit
        least, most = np.full(d, -80.0), np.full(d, 80.0)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (least + most)
            q = np.sinh(middle)[self._bins] * wide
            x = 2.0 / (np.abs(q) + 2.0 + np.hypot(q, 2.0))
            x = np.where(q < 0.0, 1.0 - x, x)
            above = np.bincount(self._bins, box.low + x * unit * wide, d) > box.totals
            least, most = np.where(above, middle, least), np.where(above, most, middle)
        point: Floats = box.low + x * (box.high - box.low)
        return point

    def _first_grid(self) -> Floats:
        """Labels, outputs, and points evenly between neighbouring outputs or ends."""
        ends = np.unique(np.concatenate([[self._y[0]], self._values, [self._y[-1]]]))
        number = max(6, 4 * self._y.size // ends.size)
        steps = (np.arange(number) + 0.5) / number
        between = (ends[:-1, None] + np.diff(ends)[:, None] * steps).ravel()
        middles = np.concatenate([self._y, 0.5 * (self._y[:-1] + self._y[1:])])
        return np.setdiff1d(np.concatenate([between, middles]), self._values)

    def _program(
        self, box: _Box, alpha: Floats, outputs: Floats
    ) -> tuple[GridProgram | None, NDArray[np.bool_]]:
        """The grid program of the multipliers that are free, in units of λ/k."""
        unit = self._lambda / self._y.size
        gap = np.minimum(alpha - box.low, box.high - alpha)
        free = gap > _FREE * unit
        # A bin with one free label has none: its sum fixes it.
        count = np.bincount(self._bins[free], minlength=self._values.size)
        free &= count[self._bins] > 1
        if not free.any():
            return None, free
        cost = self._p * loss_of(self._loss, outputs[:, None], self._y)
        fixed = np.maximum(alpha - cost, 0.0)[:, ~free].sum(axis=1)
        room = (cost.sum(axis=1) - self._lambda) / self._e - fixed
        # Σ max(α − cost, 0) over a bin is at most its total, as α ≥ 0: many outputs say nothing.
        member = (self._bins[:, None] == np.arange(self._values.size)).astype(np.float64)
        most = np.minimum(np.maximum(box.high - cost, 0.0)[:, free] @ member[free], box.totals)
        told = most.sum(axis=1) > room
        if not told.any():
            return None, free
        cost, room = cost[told], room[told]
        # Near v_j the labels with negative h are S_j: no multipliers in the box leave more than
        # (Σ p·g(v, y)·(1 + E·1[S_j]) − c_j)/E, a scale that vanishes at v_j as the slack does.
        slack = (cost.sum(axis=1)[:, None] - self._costs) / self._e + cost @ member
        scale = slack.min(axis=1)
        scale = np.maximum(scale, 1e-6 * np.abs(scale).mean())
        kept, bins = np.unique(self._bins[free], return_inverse=True)
        totals = np.bincount(bins, alpha[free], kept.size)
        return (
            GridProgram(
                cost[:, free] / unit,
                room / unit,
                scale / unit,
                box.low[free] / unit,
                box.high[free] / unit,
                bins,
                totals / unit,
                alpha[free] / unit,
            ),
            free,
        )
