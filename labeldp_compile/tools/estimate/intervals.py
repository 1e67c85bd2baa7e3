"""Score intervals: all values of a functional that the outputs do not contradict.

A functional f of a label's class y has an estimator g of the output with E[g(o) | y] = f(y). Two
targets: the mean of f over the true labels of *these rows*, of which only the noise is random; or
over the *population* that the rows were drawn from.

A value θ is contradicted if the estimate lies further from it than 1.96 standard errors, those that
the estimate would have if θ were true (Wilson 1927). Standard errors that the outputs suggest
instead are too small whenever a rare output happens to be absent, and then such an interval (Wald)
misses; see Brown, Cai and DasGupta (2001) for a binomial share.
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
Z = float(ndtri((1 + CONFIDENCE) / 2))
_FEW, _FEWER = 0.8, 1.0  # between 1.6 jumps and one, their size is taken into account
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Estimates:
    """Estimates [f] of functionals, with their intervals, NaN where there are too few rows.

    Attributes:
        value, error, low, high: [f]; ``error`` is the standard error.
    """

    value: Floats
    error: Floats
    low: Floats
    high: Floats

    def at(self, index: int) -> dict[str, Any]:
        """One of them, as JSON."""
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
        curvature: 0, or 1 where a variance between labels falls with θ².
    """

    at_estimate: Floats
    slope: Floats
    curvature: float

    def around(self, by: Floats) -> Variance:
        """The same as a function of the distance from estimate + ``by``."""
        at = self.at_estimate + (self.slope - self.curvature * by) * by
        return Variance(at, self.slope - 2 * self.curvature * by, self.curvature)


def score_estimates(
    value: Floats, variance: Variance, n: int, quantile: float, jump: Floats | None = None
) -> Estimates:
    """Estimates [f] whose intervals are {θ : n·(θ − value)² ≤ quantile²·variance(θ)}.

    Where the variance of an end is that of few rare jumps, the end is one of a value that lies
    (quantile² − 1)/6 jumps further: by so much jumps that come as a Poisson number, if they all
    have one sign, move the quantiles of their sum (Cornish and Fisher 1938).

    Args:
        value: [f] unbiased estimates, means over n rows.
        variance: of one row.
        n: rows.
        quantile: of the standardized estimate, 1 − (1 − ``CONFIDENCE``)/2.
        jump: [f] of one row, the size of the noise that decides where it is rare.
    """
    error = np.sqrt(np.maximum(variance.at_estimate, 0.0) / n)
    if n < MIN_ROWS:
        missing = np.full_like(value, np.nan)
        return Estimates(value, error, missing, missing)
    ends = []
    for side in (-1, 1):
        end = _end(value, variance, quantile**2 / n, side)
        if jump is not None:
            # One by the root of the number of jumps that the variance of this end is worth.
            most = quantile * jump / n
            rarity = most / np.maximum(np.abs(end - value), 1e-3 * most + _TINY)
            phase = np.clip((rarity - _FEW) / (_FEWER - _FEW), 0.0, 1.0)
            by = side * phase * (quantile**2 - 1) / 6 * jump / n
            end = _end(value + by, variance.around(by), quantile**2 / n, side)
        ends.append(end)
    return Estimates(value, error, *ends)


def _end(value: Floats, variance: Variance, ratio: float, side: int) -> Floats:
    """The lesser or the greater root of (θ − value)² = ratio·variance(θ)."""
    scale, middle = 1 + ratio * variance.curvature, ratio * variance.slope / 2
    reach = np.sqrt(middle**2 + scale * ratio * np.maximum(variance.at_estimate, 0.0))
    result: Floats = value + (middle + side * reach) / scale
    return result


def student(n: int) -> float:
    """The quantile of Student's t with n − 1 degrees of freedom."""
    return float(stdtrit(max(n - 1, 1), (1 + CONFIDENCE) / 2))
