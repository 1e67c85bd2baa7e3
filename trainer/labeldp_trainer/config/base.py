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


class UserLevel(Strict):
    """Part of every method that can protect users."""

    user_column: StrictStr | None = Field(None, description="who a row belongs to; public")
    max_examples_per_user: StrictInt | None = Field(
        None, ge=1, le=100_000, description="further rows are left out, without a look at labels"
    )

    @model_validator(mode="after")
    def _together(self) -> Self:
        if (self.user_column is None) != (self.max_examples_per_user is None):
            raise ValueError("user_column and max_examples_per_user belong together")
        return self
