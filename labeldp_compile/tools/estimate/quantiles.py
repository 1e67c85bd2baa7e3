"""Quantiles by inverting bounds of the distribution function (Woodruff 1952), point by point.

The quantile of a share q is the least label y with F(y) ≥ q. Label y is excluded if F(y) < q, or
if F just below y is ≥ q, beyond the noise; each happens for the true quantile with probability
2.5 %. The interval is the hull of the labels that are left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.tools.estimate.intervals import Estimates

Floats = NDArray[np.float64]
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Quantile:
    """Indices of classes, and None for the interval where there are too few rows."""

    share: float
    estimate: int
    interval: tuple[int, int] | None


def quantiles(cumulative: Estimates, projected: Floats) -> list[Quantile]:
    """From estimates [c − 1] of Pr[class ≤ j] and the projected histogram [c]."""
    at_most = projected.cumsum()
    found = []
    for share in SHARES:
        estimate = min(int(np.searchsorted(at_most, share - 1e-12)), len(projected) - 1)
        interval = None
        if not np.isnan(cumulative.low).any():
            reached = np.append(cumulative.high >= share, True)
            not_before = np.append(True, cumulative.low < share)
            left = np.flatnonzero(reached & not_before)
            # Bounds that cross leave nothing: then the estimate stands for itself.
            low, high = (left[0], left[-1]) if len(left) else (estimate, estimate)
            interval = (min(int(low), estimate), max(int(high), estimate))
        found.append(Quantile(share, estimate, interval))
    return found
