"""Score intervals: all values of a functional that the outputs do not contradict.

A functional f of a label's class y has an estimator g of the output with E[g(o) | y] = f(y). There
are two targets: the mean of f over the true labels of *these rows*, where only the noise is random,
and the mean over the *population* that the rows were drawn from.

The outputs contradict a value θ if the estimate is more than 1.96 standard errors away from it. The
standard errors are those that the estimate would have if θ was true (Wilson 1927). Standard errors
that are computed from the outputs (Wald) are too small if a rare output happens to be absent; see
Brown, Cai and DasGupta (2001) for a binomial share.

Intervals that hold at once divide the probability of a miss equally (Bonferroni 1936). This needs
no assumption on how their errors go together. Šidák's division would leave each at most 2.6% more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

Floats = NDArray[np.float64]
Target = Literal["rows", "population"]
CONFIDENCE = 0.95
MIN_ROWS = 10
_FEW, _FEWER = 0.8, 1.0  # with 1.6 jumps or fewer, the size of a jump matters
_TINY = float(np.finfo(float).tiny)


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
        """The same, if the distribution of a count has no set that misses with exactly ``miss``."""
        return self.miss if self.together else 1.5 * self.miss

    @property
    def z(self) -> float:
        """The quantile of a standard normal variable."""
        return -float(ndtri(self.miss / 2))

    def student(self, n: int) -> float:
        """The quantile of Student's t with n − 1 degrees of freedom.

        Below ``MIN_ROWS``, which is a part of a sum of many, it is ``z``.
        """
        if n < MIN_ROWS:
            return self.z
        return -float(stdtrit(max(n - 1, 1), self.miss / 2))


ALONE = Confidence()
Z = ALONE.z


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
        """The same estimates of too few rows."""
        missing = np.full_like(self.value, np.nan)
        return Estimates(self.value, self.error, missing, missing)

    def at(self, index: int) -> dict[str, Any]:
        """One estimate, as JSON."""
        missing = math.isnan(self.low[index])
        return {
            "estimate": float(self.value[index]),
            "low": None if missing else float(self.low[index]),
            "high": None if missing else float(self.high[index]),
        }


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
        """The same variance as a function of the distance from estimate + ``by``."""
        at = self.at_estimate + (self.slope - self.curvature * by) * by
        return Variance(at, self.slope - 2 * self.curvature * by, self.curvature)


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
        end = _end(value, variance, quantile**2 / n, side)
        if jump is not None:
            # One over the root of the number of jumps that give this end's variance.
            most = quantile * jump / n
            rarity = most / np.maximum(np.abs(end - value), 1e-3 * most + _TINY)
            phase = np.clip((rarity - _FEW) / (_FEWER - _FEW), 0.0, 1.0)
            by = side * phase * (quantile**2 - 1) / 6 * jump / n
            end = _end(value + by, variance.around(by), quantile**2 / n, side)
        ends.append(end)
    return Estimates(value, error, *ends)


def _end(value: Floats, variance: Variance, ratio: float, side: int) -> Floats:
    """The smaller or the larger root of (θ − value)² = ratio·variance(θ)."""
    scale, middle = 1 + ratio * variance.curvature, ratio * variance.slope / 2
    reach = np.sqrt(middle**2 + scale * ratio * np.maximum(variance.at_estimate, 0.0))
    return value + (middle + side * reach) / scale
