"""A confidence interval for a linear functional of the labels, from the outputs' counts.

A functional f of a label's class y has an estimator g of the output with E[g(o) | y] = f(y). Two
targets: the mean of f over the true labels of *these rows*, of which only the noise is random; or
over the *population* that the rows were drawn from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Floats = NDArray[np.float64]
Target = Literal["rows", "population"]
CONFIDENCE = 0.95
MIN_ROWS = 10
# A row may weigh so many standard errors before the interval is widened, by so many of its weights.
# Of the rows the variance is known from the table; of a population, an unseen label has none.
_NEARLY_NORMAL: dict[Target, float] = {"rows": 0.6, "population": 0.3}
_WIDENED_BY: dict[Target, float] = {"rows": 0.5, "population": 3.0}


@dataclass(frozen=True)
class Estimates:
    """Estimates [f] of functionals, with their intervals, NaN where there are too few rows.

    Attributes:
        value, error, low, high: [f]; ``error`` is the standard error.
        widened: [f] whether the interval is wider than the normal distribution asks, since single
            rows weigh much in it.
    """

    value: Floats
    error: Floats
    low: Floats
    high: Floats
    widened: NDArray[np.bool_]

    def at(self, index: int) -> dict[str, Any]:
        """One of them, as JSON."""
        missing = math.isnan(self.low[index])
        return {
            "estimate": float(self.value[index]),
            "low": None if missing else float(self.low[index]),
            "high": None if missing else float(self.high[index]),
            "widened": bool(self.widened[index]),
        }


@dataclass(frozen=True)
class NoiseBounds:
    """What the table says of the noise of f estimators, whatever the labels are.

    Attributes:
        least, most: [f] of Var[g | y] over all y.
        jump: [f] the size of a rare but heavy contribution: √(E[(g − f)⁴ | y]/Var[g | y]).
        step: of the functionals, if they are indicators of labels: 1, else 0.
    """

    least: Floats
    most: Floats
    jump: Floats
    step: float = 0.0


def estimates(
    g: Floats, noise: Floats, counts: NDArray[np.int64], bounds: NoiseBounds, target: Target
) -> Estimates:
    """Estimates of f functionals from outputs [u] that occur ``counts`` [u] times.

    Args:
        g: [u, f] the estimators' values.
        noise: [u, f] estimators of Var[g | y], or of an upper bound of it.
        counts: [u].
        bounds: of the noise.
        target: whose labels are estimated.
    """
    n = int(counts.sum())
    value = counts @ g / n
    if target == "rows":
        variance = np.clip(counts @ noise / n, bounds.least, bounds.most) / n
    else:
        spread = counts @ (g - value) ** 2 / max(n - 1, 1)
        variance = np.maximum(spread, bounds.least) / n
    error = np.sqrt(variance)
    jump = bounds.jump if target == "rows" else np.maximum(bounds.jump, bounds.step)
    widened = jump / n > _NEARLY_NORMAL[target] * error
    t = stdtrit(max(n - 1, 1), (1 + CONFIDENCE) / 2)
    half = t * error + np.where(widened, _WIDENED_BY[target] * jump / n, 0.0)
    if n < MIN_ROWS:
        half, widened = np.full_like(half, np.nan), np.zeros_like(widened)
    return Estimates(value, error, value - half, value + half, widened)
