"""The distribution of the sum of two binomial numbers that vary little."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

Floats = NDArray[np.float64]
_BELOW, _WINDOW = 36, 80  # of a standard deviation of six or less: six below, seven above
SPAN = 2 * _WINDOW


@dataclass(frozen=True)
class Binomials:
    """h binomial distributions: trials [h], whole numbers, and probabilities [h]."""

    trials: Floats
    probability: Floats

    def windows(self) -> tuple[NDArray[np.int64], Floats]:
        """Where each window begins [h], and the probabilities in it [h, w]."""
        n, p = self.trials[:, None], self.probability[:, None]
        starts = np.maximum(np.floor(n * p) - _BELOW, 0.0)
        k = starts + np.arange(_WINDOW)
        inside = np.minimum(k, n)
        ways = gammaln(n + 1) - gammaln(inside + 1) - gammaln(n - inside + 1)
        found = np.exp(ways + xlogy(inside, p) + xlog1py(n - inside, -p))
        return starts[:, 0].astype(np.int64), np.where(k <= n, found, 0.0)


def sums(first: Binomials, second: Binomials) -> tuple[NDArray[np.int64], Floats]:
    """Where the window of each sum begins [h], and the probabilities in it [h, ``SPAN``]."""
    starts, left = first.windows()
    more, right = second.windows()
    product = np.fft.rfft(left, SPAN, axis=1) * np.fft.rfft(right, SPAN, axis=1)
    return starts + more, np.maximum(np.fft.irfft(product, SPAN, axis=1), 0.0)
