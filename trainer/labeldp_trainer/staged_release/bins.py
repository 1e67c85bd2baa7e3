"""The bins of histograms of numbers: from the range of a release, which is public.

Bins are disjoint and cover everything, so a replaced label moves one row between two of them,
whichever they are. Where labels lie in the range is not known: equal bins suit labels that fill it,
and bins that double suit those that lie near 0, such as counts, in a range that is far too wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

_EQUAL, _OCTAVES = 16, 12
MOST_BINS = _EQUAL + 4 * _OCTAVES + 2
"""Of a histogram of labels, and more than one of sizes has."""


@dataclass(frozen=True)
class HistogramBins:
    """Bin b holds x with edges[b] ≤ x < edges[b + 1]; the first and the last have no outer end.

    Attributes:
        labels: [b + 1] edges of labels, from one end of the range to the other.
        sizes: [s + 1] edges of sizes of residuals.
    """

    labels: Float64[np.ndarray, " b"]
    sizes: Float64[np.ndarray, " s"]

    @classmethod
    def of(cls, ends: tuple[float, float]) -> HistogramBins:
        """From a range of labels."""
        low, high = ends
        cuts = (high - low) / 2 * 2.0 ** np.linspace(-_OCTAVES, 0.5, 4 * _OCTAVES + 3)
        return cls(_label_edges(low, high), np.r_[0, cuts, high - low])


def _label_edges(low: float, high: float) -> Float64[np.ndarray, " b"]:
    """Equal bins, cut again where distances from the number nearest to 0 double, and halfway."""
    nearest = min(max(low, 0.0), high)
    doubled = max(high - nearest, nearest - low) * 0.5 ** np.arange(_OCTAVES)
    away = np.concatenate([doubled, 0.75 * doubled])
    cuts = np.concatenate([nearest + away, nearest - away])
    equal = np.linspace(low, high, _EQUAL + 1)
    return np.unique(np.concatenate([equal, cuts[(cuts > low) & (cuts < high)]]))
