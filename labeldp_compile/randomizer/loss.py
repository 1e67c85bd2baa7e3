"""The losses ℓ(ŷ, y), and the types in which expectations over a label's words are handed on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Literal

Loss = Literal["squared", "absolute", "poisson", "zero_one"]
Labels = Sequence[Any]  # [k] exact numbers (Fraction), or categories
Bounds = tuple[Fraction, Fraction]
LossOfLabel = Callable[[int], Bounds]  # bounds of E[ℓ(ŷ, y) | y], by the label's index
OfLabel = Callable[[int], Fraction]  # an expectation given y, by the label's index
Moments = tuple[OfLabel, OfLabel]  # E[ŷ | y] and E[ŷ² | y]
