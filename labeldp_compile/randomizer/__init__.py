"""The exact forms: what a label is, and the integers that decide every probability."""

from labeldp_compile.randomizer.additive import AdditiveRandomizer
from labeldp_compile.randomizer.domain import (
    CategoricalDomain,
    Domain,
    IntegerDomain,
    RealDomain,
)
from labeldp_compile.randomizer.table import TableRandomizer
from labeldp_compile.randomizer.window import WindowRandomizer

Randomizer = WindowRandomizer | AdditiveRandomizer | TableRandomizer

__all__ = [
    "AdditiveRandomizer",
    "CategoricalDomain",
    "Domain",
    "IntegerDomain",
    "Randomizer",
    "RealDomain",
    "TableRandomizer",
    "WindowRandomizer",
]
