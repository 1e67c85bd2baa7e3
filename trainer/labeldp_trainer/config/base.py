"""What every part of a config is made of."""

from __future__ import annotations

import math
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


class UserLevel(Strict):
    """Part of every method that can protect users."""

    user_column: StrictStr | None = Field(None, description="who a row belongs to; public")
    max_examples_per_user: StrictInt | None = Field(
        None,
        ge=1,
        le=MOST_EXAMPLES,
        description="further rows are left out, without a look at labels",
    )

    @model_validator(mode="after")
    def _together(self) -> Self:
        if (self.user_column is None) != (self.max_examples_per_user is None):
            raise ValueError("user_column and max_examples_per_user belong together")
        return self


SMALLEST_DELTA = 1e-300
"""The least δ that accounting resolves: float64 ends there."""
LabelRange = tuple[Number, Number]


class Approximate(UserLevel):
    """Part of every method that promises (ε, δ)."""

    delta: Annotated[Number, Field(gt=0, lt=1)]

    @model_validator(mode="after")
    def _resolved(self) -> Self:
        if self.delta < SMALLEST_DELTA:
            raise ValueError(f"delta: the least that is resolved is {SMALLEST_DELTA:g}; raise it")
        return self


class NoisySum(Approximate):
    """Part of every method that adds noise to sums over labels."""

    label_range: LabelRange | None = Field(None, description="the ends of a regression's labels")

    @model_validator(mode="after")
    def _range(self) -> Self:
        if self.label_range is not None and not self.label_range[0] < self.label_range[1]:
            raise ValueError("label_range: the first end must be less than the second")
        return self
