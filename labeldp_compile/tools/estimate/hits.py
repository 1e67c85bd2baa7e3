"""Shares that are estimated from one count, with intervals from its exact distribution if small.

An estimator with two values counts an event, a *hit*. Its probability is a under the label and b
under any other label (in randomized response, the output is the label). If N of n rows have the
label, the number of hits is Bin(N, a) + Bin(n − N, b). For a population in which a share θ has the
label, it is Bin(n, b + θ·(a − b)).

A small number of hits is not normally distributed. So for each N, or θ, a set of numbers of hits is
accepted, whose total probability is as close to 95% as possible and not below 92.5%. The least
likely ends are removed in the order of their tails (Blaker 2000), which include half of a number's
own probability (as in mid-P: Lancaster 1961). The interval is the hull of all N, or θ, that accept
the observed count. Intervals that hold at once accept more: their sets miss with at most their part
of the 5%.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from labeldp_compile.tools.estimate.intervals import ALONE, Confidence, Estimates, Target

_BELOW, _WINDOW = 36, 80  # the standard deviation is at most six: six of them below, seven above
SPAN = 2 * _WINDOW


Floats = NDArray[np.float64]
_TWO_VALUES = 1e-9  # equal values may differ by this share of the difference
_RARE = 16.0  # the variance of the hits up to which the distribution is computed
_COARSE, _FINE = 49, 17


@dataclass(frozen=True)
class Hits:
    """Probabilities [f] of a hit under the labels of a share, and under any other.

    With ``each_tail``, each end of an interval misses with at most 2.5%, for one-sided use.
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

    def where_rare(
        self, found: Estimates, n: int, target: Target, confidence: Confidence = ALONE
    ) -> Estimates:
        """The same estimates, with the intervals of this module if the hits vary little."""
        a, b = self.of_label, self.of_others
        hits = np.rint(n * (b + found.value * (a - b))).astype(int)
        low, high = found.low.copy(), found.high.copy()
        for i in np.flatnonzero(_variance(hits, n, a, b, target) <= _RARE):
            law = _Law(n, round(a[i], 12), round(b[i], 12), target, self.each_tail, confidence)
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
    confidence: Confidence

    def accepts(self, hits: int, expected: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Whether expectations [h], increasing, accept the hits.

        Expectations that no whole number of labels has are moved to the nearest possible one.
        """
        n, a, b = self.n, self.a, self.b
        labels, inside = np.zeros(len(expected)), np.zeros(len(expected), bool)
        if self.target == "rows":
            # Outside 0 … n labels, which is impossible, all rows have the same probability.
            inside = (expected >= n * b) & (expected <= n * a)
            labels = np.clip(np.rint((expected - n * b) / (a - b)), 0, n)
            moved = np.where(inside, labels * a + (n - labels) * b, expected)
            expected, places = np.unique(moved, return_index=True)
            labels, inside = labels[places], inside[places]
        first, with_label = _window(np.where(inside, labels, n), np.where(inside, a, expected / n))
        more, others = _window(np.where(inside, n - labels, 0), np.full(len(expected), b))
        product = np.fft.rfft(with_label, SPAN, axis=1) * np.fft.rfft(others, SPAN, axis=1)
        probabilities = np.maximum(np.fft.irfft(product, SPAN, axis=1), 0.0)
        place = hits - first - more
        seen = np.clip(place, 0, SPAN - 1)[:, None]
        accepted = (_tails if self.each_tail else _nearest)(probabilities, seen, self.confidence)
        return expected, accepted & (place >= 0) & (place < SPAN)

    def end(self, accepted: float, refused: float) -> float:
        """An end of the interval: the last whole label that accepts, or close to the boundary."""
        next_label = self.target == "rows" and abs(refused - accepted) < 1.5 * (self.a - self.b)
        return accepted + (1e-6 if next_label else 0.9) * (refused - accepted)


def _variance(hits: Any, n: int, a: Any, b: Any, target: Target) -> Any:
    """The variance of the hits (numbers or vectors), if this many are expected."""
    if target == "population":
        return hits * (n - hits) / n
    return hits * (1 - a - b) + n * a * b


@lru_cache(maxsize=65_536)
def _interval(hits: int, law: _Law) -> tuple[float, float]:
    """The ends of the interval of the share; equal counts have equal intervals."""
    n, a, b = law.n, law.a, law.b
    wider = law.confidence.z / ALONE.z
    reach = 4 * wider * math.sqrt(_variance(hits, n, a, b, law.target) + 1) + 4 * wider**2
    grid = np.linspace(max(hits - reach, 0.0), min(hits + reach, float(n)), _COARSE)
    grid, accepted = law.accepts(hits, grid)
    # On a coarse grid, even the nearest point may not accept.
    accepted[np.argmin(np.abs(grid - hits))] = True
    inside = np.flatnonzero(accepted)
    ends = []
    for end, beyond in ((int(inside[0]), -1), (int(inside[-1]), 1)):
        ends.append(float(grid[end]))
        if 0 <= end + beyond < len(grid):
            low, high = sorted([end, end + beyond])
            finer, accepted = law.accepts(hits, np.linspace(grid[low], grid[high], _FINE))
            inwards = slice(None, None, -beyond)
            finer, accepted = finer[inwards], accepted[inwards]
            at = int(np.argmax(accepted))
            ends[-1] = law.end(finer[at], finer[max(at - 1, 0)])
    return (ends[0] / n - b) / (a - b), (ends[1] / n - b) / (a - b)


def _window(trials: Floats, probability: Floats) -> tuple[NDArray[np.int64], Floats]:
    """For h binomial laws: the start of a window [h], and the probabilities in it [h, w]."""
    n, p = trials[:, None], probability[:, None]
    starts = np.maximum(np.floor(n * p) - _BELOW, 0.0)
    k = starts + np.arange(_WINDOW)
    inside = np.minimum(k, n)
    ways = gammaln(n + 1) - gammaln(inside + 1) - gammaln(n - inside + 1)
    found = np.exp(ways + xlogy(inside, p) + xlog1py(n - inside, -p))
    return starts[:, 0].astype(np.int64), np.where(k <= n, found, 0.0)


def _tails(
    probabilities: Floats, seen: NDArray[np.int64], confidence: Confidence
) -> NDArray[np.bool_]:
    """[h] whether distributions [h, s] accept what is seen [h, 1]: half of a miss on each side."""
    up_to = probabilities.cumsum(axis=1)
    from_it = up_to[:, -1:] - up_to + probabilities
    tail = np.take_along_axis(np.minimum(up_to, from_it), seen, axis=1)[:, 0]
    return tail > confidence.miss / 2


def _nearest(
    probabilities: Floats, seen: NDArray[np.int64], confidence: Confidence
) -> NDArray[np.bool_]:
    """[h] whether distributions [h, s] accept what is seen [h, 1]: about one miss is not."""
    miss = confidence.miss
    up_to = probabilities.cumsum(axis=1) - probabilities / 2
    tail = np.minimum(up_to, up_to[:, -1:] + probabilities[:, -1:] / 2 - up_to)
    mine = np.take_along_axis(tail, seen, axis=1)
    before = (tail < mine) | ((tail == mine) & (np.arange(SPAN) < seen))
    without = np.where(before, probabilities, 0.0).sum(axis=1)
    with_it = without + np.take_along_axis(probabilities, seen, axis=1)[:, 0]
    # The count is accepted if 5% are removed already, or if keeping it is closer to 5%.
    nearer = (with_it > confidence.largest_miss) | (without + with_it > 2 * miss)
    return (without >= miss) | ((with_it > miss) & nearer)
