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


def score_estimates(value: Floats, variance: Variance, n: int, quantile: float) -> Estimates:
    """Estimates [f] whose intervals are {θ : n·(θ − value)² ≤ quantile²·variance(θ)}.

    Args:
        value: [f] unbiased estimates, means over n rows.
        variance: of one row.
        n: rows.
        quantile: of the standardized estimate, 1 − (1 − ``CONFIDENCE``)/2.
    """
    at_estimate = np.maximum(variance.at_estimate, 0.0)
    error = np.sqrt(at_estimate / n)
    if n < MIN_ROWS:
        missing = np.full_like(value, np.nan)
        return Estimates(value, error, missing, missing)
    ratio = quantile**2 / n
    scale, middle = 1 + ratio * variance.curvature, ratio * variance.slope / 2
    reach = np.sqrt(middle**2 + scale * ratio * at_estimate)
    return Estimates(
        value, error, value + (middle - reach) / scale, value + (middle + reach) / scale
    )


def student(n: int) -> float:
    """The quantile of Student's t with n − 1 degrees of freedom."""
    return float(stdtrit(max(n - 1, 1), (1 + CONFIDENCE) / 2))
