"""The exact privacy of a randomizer, from its integers."""

from __future__ import annotations

from fractions import Fraction

from labeldp_compile.randomizer import (
    AdditiveRandomizer,
    Randomizer,
    TableRandomizer,
)
from labeldp_compile.randomizer.additive_privacy import additive_ratio
from labeldp_compile.randomizer.table_privacy import table_ratio
from labeldp_compile.randomizer.window_privacy import window_ratio


def realised_ratio(randomizer: Randomizer) -> Fraction:
    """The largest Pr[output | label] / Pr[output | other label], or a bound on it; at most e^ε."""
    if isinstance(randomizer, AdditiveRandomizer):
        return additive_ratio(randomizer)
    if isinstance(randomizer, TableRandomizer):
        return table_ratio(randomizer)
    return window_ratio(randomizer)
