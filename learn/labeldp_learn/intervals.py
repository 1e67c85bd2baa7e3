"""Intervals: all values of a functional that the outputs do not contradict.

A functional f of a label's class y has an estimator g of the output with E[g(o) | y] = f(y). There
are two targets: the mean of f over the true labels of *these rows*, where only the noise is random,
and the mean over the *population* that the rows were drawn from.

**Scores.** The outputs contradict a value θ if the estimate is more than 1.96 standard errors away
from it. The standard errors are those that the estimate would have if θ was true (Wilson 1927).
Standard errors that are computed from the outputs (Wald) are too small if a rare output happens to
be absent; see Brown, Cai and DasGupta (2001) for a binomial share.

**Hits.** An estimator with two values counts an event, a *hit*. Its probability is a under the
label and b under any other label (in randomized response, the output is the label). If N of n rows
have the label, the number of hits is Bin(N, a) + Bin(n − N, b). For a population in which a share θ
has the label, it is Bin(n, b + θ·(a − b)). A small number of hits is not normally distributed. So
for each N, or θ, a set of numbers of hits is accepted, whose total probability is as close to 95%
as possible and not below 92.5%. The least likely ends are removed in the order of their tails
(Blaker 2000), which include half of a number's own probability (as in mid-P: Lancaster 1961). The
interval is the hull of all N, or θ, that accept the observed count.

Intervals that hold at once divide the probability of a miss equally (Bonferroni 1936). This needs
no assumption on how their errors go together. Šidák's division would leave each at most 2.6% more.
Their sets of hits accept more: they miss with at most their part of the 5%.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from labeldp_learn.inversion import Floats

Target = Literal["rows", "population"]
CONFIDENCE = 0.95
MIN_ROWS = 10
_FEW, _FEWER = 0.8, 1.0  # with 1.6 jumps or fewer, the size of a jump matters
_TINY = float(np.finfo(float).tiny)
_NODES, _FAR, _NEWTON = 100, 15.0, 20  # of Student's t
_BELOW, _WINDOW = 36, 80  # the standard deviation is at most six: six of them below, seven above
SPAN = 2 * _WINDOW
_TWO_VALUES = 1e-9  # equal values may differ by this share of the difference
_RARE = 16.0  # the variance of the hits up to which the distribution is computed
_COARSE, _FINE = 49, 17
_gauss = lru_cache(np.polynomial.legendre.leggauss)
_LOGS = np.concatenate([[0.0], np.log(np.arange(1, 128)).cumsum()])  # ln 0! … ln 127!


@dataclass(frozen=True)
class Confidence:
    """How often an interval may miss.

    Attributes:
        together: the number of intervals that hold at once at ``CONFIDENCE``; 0 if each is for
            itself.
    """

    together: int = 0

    @property
    def miss(self) -> float:
        """The probability that one interval does not cover."""
        return (1 - CONFIDENCE) / max(self.together, 1)

    @property
    def largest_miss(self) -> float:
        """The most that an interval misses if no set of counts misses with exactly ``miss``."""
        return self.miss if self.together else 1.5 * self.miss

    @property
    def z(self) -> float:
        """The quantile of a standard normal variable."""
        return -NormalDist().inv_cdf(self.miss / 2)

    def student(self, n: int) -> float:
        """The quantile of Student's t with n − 1 degrees of freedom.

        Below ``MIN_ROWS``, which is a part of a sum of many, it is ``z``.
        """
        return self.z if n < MIN_ROWS else _student_quantile(n - 1, self.miss)


ALONE = Confidence()
Z = ALONE.z


@lru_cache(maxsize=4096)
def _student_quantile(freedom: int, miss: float) -> float:
    """t with Pr[|T| > t] = miss for Student's T with this many degrees of freedom ν ≥ 9.

    T = √ν·sinh(V/√ν), and the density of V is in proportion to cosh(v/√ν)^−ν. It is smooth and
    falls fast, so that Gauss's rule is as exact as float64.
    """
    root = math.sqrt(freedom)
    nodes, weights = _gauss(_NODES)

    def density(v: Floats) -> Floats:
        # ln cosh x = log1p(2·sinh²(x/2)), which loses no digits near 0
        return np.exp(-freedom * np.log1p(2 * np.sinh(v / (2 * root)) ** 2))

    def area(start: float, end: float) -> float:
        points = start + (nodes + 1) / 2 * (end - start)
        return float(weights @ density(points)) * (end - start) / 2

    v, whole = -NormalDist().inv_cdf(miss / 2), area(0.0, 4.0) + area(4.0, 4.0 + _FAR)
    for _ in range(_NEWTON):  # on the logarithm of the tail, which is concave
        tail = area(v, v + _FAR)
        step = tail * math.log(tail / whole / miss) / float(density(np.array(v)))
        v += step
        if abs(step) < 1e-14 * v:
            break
    return root * math.sinh(v / root)


@dataclass(frozen=True)
class Estimates:
    """Estimates [f] of functionals with their intervals, which are NaN for too few rows in all.

    Attributes:
        value, error, low, high: [f]; ``error`` is the standard error.
    """

    value: Floats
    error: Floats
    low: Floats
    high: Floats

    def without_intervals(self) -> Estimates:
        """These estimates without intervals, for too few rows."""
        missing = np.full_like(self.value, np.nan)
        return Estimates(self.value, self.error, missing, missing)

    def at(self, index: int) -> dict[str, Any]:
        """One estimate, as JSON."""
        low, high = float(self.low[index]), float(self.high[index])
        ends = (None, None) if math.isnan(low) else (low, high)
        return {"estimate": float(self.value[index]), "low": ends[0], "high": ends[1]}


@dataclass(frozen=True)
class Variance:
    """n times the estimator's variance as a function of the functional's value θ.

    At θ = estimate + d it is at_estimate + slope·d − curvature·d².

    Attributes:
        at_estimate, slope: [f].
        curvature: 0, or 1 if a variance between labels falls with θ².
    """

    at_estimate: Floats
    slope: Floats
    curvature: float

    def around(self, by: Floats) -> Variance:
        """This variance as a function of the distance from estimate + ``by``."""
        at = self.at_estimate + (self.slope - self.curvature * by) * by
        return Variance(at, self.slope - 2 * self.curvature * by, self.curvature)

    def end(self, value: Floats, ratio: float, side: int) -> Floats:
        """The smaller or the larger root of (θ − value)² = ratio·variance(θ)."""
        scale, middle = 1 + ratio * self.curvature, ratio * self.slope / 2
        reach = np.sqrt(middle**2 + scale * ratio * np.maximum(self.at_estimate, 0.0))
        return value + (middle + side * reach) / scale


def score_estimates(
    value: Floats, variance: Variance, n: int, quantile: float, jump: Floats | None = None
) -> Estimates:
    """Estimates [f] whose intervals are {θ : n·(θ − value)² ≤ quantile²·variance(θ)}.

    If the variance at an end comes from few rare jumps, the end is computed from a value that is
    (quantile² − 1)/6 jumps further out. That is how far a Poisson number of jumps with one sign
    moves the quantiles of their sum (Cornish and Fisher 1938).

    Args:
        value: [f] unbiased estimates, means over n rows.
        variance: of one row.
        n: rows.
        quantile: of the standardized estimate, as of ``Confidence``.
        jump: [f] of one row, the size of the noise that matters if it is rare.
    """
    error = np.sqrt(np.maximum(variance.at_estimate, 0.0) / n)
    ends = []
    for side in (-1, 1):
        end = variance.end(value, quantile**2 / n, side)
        if jump is not None:
            # One over the root of the number of jumps that give this end's variance.
            most = quantile * jump / n
            rarity = most / np.maximum(np.abs(end - value), 1e-3 * most + _TINY)
            phase = np.clip((rarity - _FEW) / (_FEWER - _FEW), 0.0, 1.0)
            by = side * phase * (quantile**2 - 1) / 6 * jump / n
            end = variance.around(by).end(value + by, quantile**2 / n, side)
        ends.append(end)
    return Estimates(value, error, *ends)


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
        self, normal: Estimates, n: int, target: Target, confidence: Confidence = ALONE
    ) -> Estimates:
        """The estimates ``normal``, with exact intervals where the hits vary little."""
        a, b = self.of_label, self.of_others
        hits = np.rint(n * (b + normal.value * (a - b))).astype(int)
        low, high = normal.low.copy(), normal.high.copy()
        for i in np.flatnonzero(_variance(hits, n, a, b, target) <= _RARE):
            law = _Law(n, round(a[i], 12), round(b[i], 12), target, self.each_tail, confidence)
            ends = _interval(int(hits[i]), law)
            low[i], high[i] = min(ends[0], normal.value[i]), max(ends[1], normal.value[i])
        return Estimates(normal.value, normal.error, low, high)


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
    wider = law.confidence.z / Z
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


def _log_factorial(k: Floats) -> Floats:
    """Of whole numbers from 0 on: a table, and Stirling's series, which is exact from 127 on."""
    large = np.maximum(k, 127.0)
    series = (1 - (1 / 30 - 1 / (105 * large**2)) / large**2) / (12 * large)
    stirling = (large + 0.5) * np.log(large) - large + math.log(2 * math.pi) / 2 + series
    return np.where(k <= 127, _LOGS[np.minimum(k, 127).astype(int)], stirling)


def _window(trials: Floats, probability: Floats) -> tuple[NDArray[np.int64], Floats]:
    """For h binomial laws: the start of a window [h], and the probabilities in it [h, w]."""
    n, p = trials[:, None], probability[:, None]
    starts = np.maximum(np.floor(n * p) - _BELOW, 0.0)
    k = starts + np.arange(_WINDOW)
    inside = np.minimum(k, n)
    ways = _log_factorial(n) - _log_factorial(inside) - _log_factorial(n - inside)
    with np.errstate(divide="ignore", invalid="ignore"):
        hits = np.where(inside > 0, inside * np.log(p), 0.0)
        others = np.where(n > inside, (n - inside) * np.log1p(-p), 0.0)
    return starts[:, 0].astype(np.int64), np.where(k <= n, np.exp(ways + hits + others), 0.0)


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
