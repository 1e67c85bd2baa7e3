"""The exact forms: what a label is, and the integers that decide every probability."""

from labeldp_compile.randomizer.domain import (
    CategoricalDomain,
    Domain,
    IntegerDomain,
    RealDomain,
)
from labeldp_compile.randomizer.window import WindowRandomizer

__all__ = ["CategoricalDomain", "Domain", "IntegerDomain", "RealDomain", "WindowRandomizer"]
