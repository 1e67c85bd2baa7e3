"""The exact privacy of an additive randomizer."""

from __future__ import annotations

from fractions import Fraction

from labeldp_compile.randomizer.additive import AdditiveRandomizer


def additive_ratio(randomizer: AdditiveRandomizer) -> Fraction:
    """The largest ratio of the probabilities of one output under two labels, or a bound on it."""
    raise NotImplementedError
