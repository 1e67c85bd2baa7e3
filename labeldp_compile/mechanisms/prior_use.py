"""What a mechanism gains from knowing the prior, and what it loses with ε: before a label is read.

``split: auto`` (``prior/split.py``) weighs the two. Shares are of the noisy label loss. The numbers
were set by hand on what ``benchmarks/split.py`` prints, for real tables and (``--landscape``) for
flat, geometric, spiked and two-humped distributions; they choose between private histograms, and
decide nothing about privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class PriorUse:
    """How the noisy label loss depends on prior and ε.

    Attributes:
        gain: by ε, the share of the loss under a uniform prior that the true prior would save.
        noise: the share of the gain that is lost for each standard deviation of a cell's noise, in
            units of the average cell.
        coarse: the share of the gain that is lost if there are so many cells of neighbouring
            labels instead of all labels; None if labels have no neighbours to join.
        slope: by ε, −d log(loss)/d log ε: what a small part of ε costs, relative to that part.
    """

    gain: Callable[[float], float]
    noise: float
    coarse: Callable[[int], float] | None
    slope: Callable[[float], float]


def _slope_unbiased(epsilon: float) -> float:
    """Of the least variance of two outputs that keep the mean, ∝ 1/sinh²(ε/2)."""
    return epsilon / math.tanh(epsilon / 2)


def _slope_biased(epsilon: float) -> float:
    """Of two bins the loss falls as 1 − ρ·tanh²(ε/2) where they explain the share ρ; at ρ ≈ 2/3."""
    return 2 / 3 * epsilon * math.tanh(epsilon / 2)


KEEPS_MEANS = PriorUse(
    gain=lambda epsilon: epsilon**2 / (2 * (epsilon**2 + 8)),
    noise=0.3,
    coarse=lambda cells: 2.5 / cells,
    slope=_slope_unbiased,
)
"""Unbiased: at a small ε all priors need the same outputs, far out on both sides."""
ANSWERS_THE_LIKELY = PriorUse(
    gain=lambda epsilon: 0.5, noise=0.3, coarse=lambda cells: 3 / cells**2, slope=_slope_biased
)
"""Outputs go where the labels are likely to be: without the prior the loss can be many times it."""
PRICES_BIAS = replace(ANSWERS_THE_LIKELY, slope=_slope_unbiased)
"""A penalty on bias, which rare labels hardly pay: gains as the one, loses as the other."""
KEEPS_THE_LIKELIEST = PriorUse(
    gain=lambda epsilon: 0.4, noise=0.25, coarse=None, slope=_slope_biased
)
"""Randomized response over the likeliest labels: each label counts by itself."""
