"""The losses ℓ(ŷ, y), and what is known of an expectation of one."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

Loss = Literal["squared", "absolute", "poisson", "zero_one"]
Labels = Sequence[Any]  # [k] exact numbers (Fraction), or categories
Bounds = tuple[Fraction, Fraction]  # equal where the expectation is rational
