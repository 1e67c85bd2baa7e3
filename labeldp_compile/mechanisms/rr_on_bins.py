"""RR-on-Bins: randomized response on the optimal intervals (ICLR 2023, Algorithms 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from labeldp_compile.randomizer import CategoricalDomain, Domain, WindowRandomizer
from labeldp_compile.randomizer.randomized_response import randomized_response
from labeldp_compile.randomizer.utility import Loss
from labeldp_compile.solve.rr_on_bins import solve_rr_on_bins


def build(
    domain: Domain,
    weights: Sequence[int],
    epsilon: Fraction,
    loss: Loss,
    word_bits: int | None = None,
) -> WindowRandomizer:
    """Solve for the bins and their outputs, then realise the response in integers."""
    if isinstance(domain, CategoricalDomain) or loss == "zero_one":
        raise ValueError("rr_on_bins needs ordered labels and a loss that grows with distance")
    labels = np.array([float(label) for label in domain.labels()])
    total = sum(weights)
    prior = np.array([weight / total for weight in weights])
    solution = solve_rr_on_bins(labels, prior, float(epsilon), loss)
    values = [float(value) + 0.0 for value in solution.values]  # + 0.0 turns −0.0 into 0.0
    bins = np.searchsorted(solution.starts, np.arange(domain.size), side="right") - 1
    return randomized_response(values, bins.tolist(), epsilon, word_bits)
