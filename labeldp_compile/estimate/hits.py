"""Shares that one count says, with intervals from its exact distribution where it is small.

An estimator of two values counts an event, a *hit*: of probability a under the label, b under any
other (randomized response: the label itself comes out). With N of n labels, the number of hits is
Bin(N, a) + Bin(n − N, b); of a population of which a share θ has the label, Bin(n, b + θ·(a − b)).

Few hits have no normal distribution. So for each N, or θ, those numbers of hits are accepted whose
probability together is nearest to 95 %, though never below 92.5 %: the least likely ends are taken
away, in the order of their tails (Blaker 2000), the half of a number's own probability included (as
in mid-P: Lancaster 1961). The interval is the hull of all N, or θ, that accept what was seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.estimate.binomial_sums import SPAN, Binomials, sums
from labeldp_compile.estimate.intervals import CONFIDENCE, MIN_ROWS, Estimates, Target

Floats = NDArray[np.float64]
_TWO_VALUES = 1e-9  # of their difference, by which equal ones may differ
_RARE = 9.0  # the variance of the hits up to which the distribution is computed
_LARGEST_MISS = 0.075
_COARSE, _FINE = 65, 17


@dataclass(frozen=True)
class Hits:
    """Probabilities [f] of a hit under the labels of a share, and under any other.

    With ``each_tail``, either end of an interval misses with at most 2.5 %, for one-sided use.
    """

    of_label: Floats
    of_others: Floats
    each_tail: bool

    @classmethod
    def of(cls, g: Floats, *, each_tail: bool) -> Hits | None:
        """None unless each column of the unbiased estimators g [m, f] has two values."""
        low, high = g.min(axis=0), g.max(axis=0)
        if (np.minimum(g - low, high - g) > _TWO_VALUES * (high - low)).any():
            return None
        # The expectations are 1 and 0.
        return cls((1 - low) / (high - low), -low / (high - low), each_tail)

    def where_rare(self, found: Estimates, n: int, target: Target) -> Estimates:
        """The same estimates; with the intervals of this module where hits vary little."""
        if n < MIN_ROWS:
            return found
        a, b = self.of_label, self.of_others
        hits = np.rint(n * (b + found.value * (a - b))).astype(int)
        low, high = found.low.copy(), found.high.copy()
        for i in np.flatnonzero(_variance(hits, n, a, b, target) <= _RARE):
            law = _Law(n, round(a[i], 12), round(b[i], 12), target, self.each_tail)
            ends = _interval(int(hits[i]), law)
            low[i], high[i] = min(ends[0], found.value[i]), max(ends[1], found.value[i])
        return Estimates(found.value, found.error, low, high)


@dataclass(frozen=True)
class _Law:
    """Hits in n rows: of probability a under the label, b under others."""

    n: int
    a: float
    b: float
    target: Target
    each_tail: bool

    def accepts(self, hits: int, expected: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Whether expectations [h], increasing, accept the hits.

        Those that whole numbers of labels cannot have are moved to the nearest that they can.
        """
        n, a, b = self.n, self.a, self.b
        labels, inside = np.zeros(len(expected)), np.zeros(len(expected), bool)
        if self.target == "rows":
            # Beyond no label and all of them, where no truth lies, all rows are alike.
            inside = (expected >= n * b) & (expected <= n * a)
            labels = np.clip(np.rint((expected - n * b) / (a - b)), 0, n)
            moved = np.where(inside, labels * a + (n - labels) * b, expected)
            expected, places = np.unique(moved, return_index=True)
            labels, inside = labels[places], inside[places]
        with_label = Binomials(np.where(inside, labels, n), np.where(inside, a, expected / n))
        others = Binomials(np.where(inside, n - labels, 0), np.full(len(expected), b))
        starts, probabilities = sums(with_label, others)
        accepted = _tails(probabilities) if self.each_tail else _nearest(probabilities)
        place = hits - starts
        here = accepted[np.arange(len(expected)), np.clip(place, 0, SPAN - 1)]
        return expected, here & (place >= 0) & (place < SPAN)


def _variance(hits: Any, n: int, a: Any, b: Any, target: Target) -> Any:
    """Of the hits, numbers or vectors, if as many are expected."""
    if target == "population":
        return hits * (n - hits) / n
    return hits * (1 - a - b) + n * a * b


@lru_cache(maxsize=65_536)
def _interval(hits: int, law: _Law) -> tuple[float, float]:
    """The ends of the interval of the share; equal groups have equal ones."""
    n, a, b = law.n, law.a, law.b
    reach = 4 * math.sqrt(_variance(hits, n, a, b, law.target) + 1) + 4
    grid = np.linspace(max(hits - reach, 0.0), min(hits + reach, float(n)), _COARSE)
    grid, accepted = law.accepts(hits, grid)
    # Of a coarse grid the nearest may just not do.
    accepted[np.argmin(np.abs(grid - hits))] = True
    inside = np.flatnonzero(accepted)
    first, last = int(inside[0]), int(inside[-1])
    low, high = float(grid[first]), float(grid[last])
    # Each end lies between the last that is refused and the first that accepts.
    if first > 0:
        finer, accepted = law.accepts(hits, np.linspace(grid[first - 1], low, _FINE))
        at = int(np.argmax(accepted))
        low = float(finer[max(at - 1, 0) : at + 1].mean())
    if last < len(grid) - 1:
        finer, accepted = law.accepts(hits, np.linspace(high, grid[last + 1], _FINE))
        at = len(finer) - 1 - int(np.argmax(accepted[::-1]))
        high = float(finer[at : at + 2].mean())
    return (low / n - b) / (a - b), (high / n - b) / (a - b)


def _tails(probabilities: Floats) -> NDArray[np.bool_]:
    """[h, s] the numbers of hits that each of h distributions accepts, 2.5 % missed either side."""
    up_to = probabilities.cumsum(axis=1)
    from_it = probabilities[:, ::-1].cumsum(axis=1)[:, ::-1]
    result: NDArray[np.bool_] = np.minimum(up_to, from_it) > (1 - CONFIDENCE) / 2
    return result


def _nearest(probabilities: Floats) -> NDArray[np.bool_]:
    """[h, s] the numbers of hits that each of h distributions accepts, about 5 % missed."""
    up_to = probabilities.cumsum(axis=1) - probabilities / 2
    tail = np.minimum(up_to, probabilities.sum(axis=1, keepdims=True) - up_to)
    order = np.argsort(tail, axis=1, kind="stable")
    missed = np.take_along_axis(probabilities, order, axis=1).cumsum(axis=1)
    missed = np.concatenate([np.zeros((len(missed), 1)), missed], axis=1)
    off = np.where(missed <= _LARGEST_MISS, np.abs(missed - (1 - CONFIDENCE)), np.inf)
    # Of equally good ones the last, as numbers that are never seen need not be accepted.
    taken = SPAN - np.argmin(off[:, ::-1], axis=1)
    rank = np.argsort(order, axis=1, kind="stable")
    result: NDArray[np.bool_] = rank >= taken[:, None]
    return result
