"""Randomized response over all labels (Warner 1965; Definition 21 of the unbiased paper)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from labeldp_compile.randomizer import CategoricalDomain, Domain, WindowRandomizer
from labeldp_compile.randomizer.randomized_response import randomized_response
from labeldp_compile.randomizer.utility import Loss
from labeldp_compile.randomizer.window import Output


def build(
    domain: Domain,
    weights: Sequence[int],
    epsilon: Fraction,
    loss: Loss,
    word_bits: int | None = None,
) -> WindowRandomizer:
    """Every label is an output; the prior and the loss play no part."""
    values: list[Output]
    if isinstance(domain, CategoricalDomain):
        values = list(domain.values)
    else:
        values = [float(label) for label in domain.labels()]
    return randomized_response(values, range(domain.size), epsilon, word_bits)
