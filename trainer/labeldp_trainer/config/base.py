"""What every part of a config is made of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, StrictInt, StrictStr, model_validator

from labeldp_compile.yaml_model import Strict

__all__ = ["Number", "Strict"]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("expected a number")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("expected a finite number")
    return number


Number = Annotated[float, BeforeValidator(_number)]


MOST_EXAMPLES = 100_000
"""Of one user."""


class Checked(Strict):
    """A part with rules of its own."""

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Whether a rule is broken, and what to say then; what comes first is said."""
        yield from ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        for broken, reason in self.rules():
            if broken:
                raise ValueError(reason)
        return self


class UserLevel(Checked):
    """Part of every method that can protect users."""

    user_column: StrictStr | None = Field(None, description="who a row belongs to; public")
    max_examples_per_user: StrictInt | None = Field(
        None,
        ge=1,
        le=MOST_EXAMPLES,
        description="further rows are left out, without a look at labels",
    )

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Both, or none."""
        apart = (self.user_column is None) != (self.max_examples_per_user is None)
        yield apart, "user_column and max_examples_per_user belong together"


SMALLEST_DELTA = 1e-300
"""The least δ that accounting resolves: float64 ends there."""
LabelRange = tuple[Number, Number]


class Approximate(UserLevel):
    """Part of every method that promises (ε, δ)."""

    delta: Annotated[Number, Field(gt=0, lt=1)]

    def rules(self) -> Iterator[tuple[bool, str]]:
        """A δ that float64 has."""
        yield from super().rules()
        reason = f"delta: the least that is resolved is {SMALLEST_DELTA:g}; raise it"
        yield self.delta < SMALLEST_DELTA, reason


class NoisySum(Approximate):
    """Part of every method that adds noise to sums over labels."""

    label_range: LabelRange | None = Field(None, description="the ends of a regression's labels")

    def rules(self) -> Iterator[tuple[bool, str]]:
        """A range has a length."""
        yield from super().rules()
        low, high = self.label_range or (0, 1)
        yield not low < high, "label_range: the first end must be less than the second"
