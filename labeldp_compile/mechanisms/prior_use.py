"""What a mechanism gains from the prior, and what less ε costs it, before a label is read.

``split: auto`` (``prior/split.py``) compares the two. Shares are of the noisy label loss. The
numbers were set by hand from the output of ``benchmarks/split.py``, for real tables and
(``--landscape``) for flat, geometric, spiked and two-humped distributions. They choose between
private histograms, and have no influence on privacy.
"""

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
        coarse: the share of the gain that is lost with this number of cells of neighbouring labels
            instead of all labels; None if labels have no neighbours.
        slope: by ε, −d log(loss)/d log ε: the relative loss per relative decrease of ε.
    """

    gain: Callable[[float], float]
    noise: float
    coarse: Callable[[int], float] | None
    slope: Callable[[float], float]


def _slope_unbiased(epsilon: float) -> float:
    """For the smallest variance of two outputs that keep the mean, ∝ 1/sinh²(ε/2)."""
    return epsilon / math.tanh(epsilon / 2)


def _slope_biased(epsilon: float) -> float:
    """For two bins that explain a share ρ, the loss is 1 − ρ·tanh²(ε/2); here ρ ≈ 2/3."""
    return 2 / 3 * epsilon * math.tanh(epsilon / 2)


KEEPS_MEANS = PriorUse(
    gain=lambda epsilon: epsilon**2 / (2 * (epsilon**2 + 8)),
    noise=0.3,
    coarse=lambda cells: 2.5 / cells,
    slope=_slope_unbiased,
)
"""Unbiased: at a small ε, all priors need the same outputs, far out on both sides."""
ANSWERS_THE_LIKELY = PriorUse(
    gain=lambda epsilon: 0.5, noise=0.3, coarse=lambda cells: 3 / cells**2, slope=_slope_biased
)
"""Outputs are at the likely labels: without the prior the loss can be many times larger."""
PRICES_BIAS = replace(ANSWERS_THE_LIKELY, slope=_slope_unbiased)
"""A penalty on bias, which is small for rare labels: gains like one, and loses like the other."""
KEEPS_THE_LIKELIEST = PriorUse(
    gain=lambda epsilon: 0.4, noise=0.25, coarse=None, slope=_slope_biased
)
"""Randomized response over the likeliest labels: neighbouring labels do not matter."""
