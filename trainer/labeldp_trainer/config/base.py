"""Base classes and types of all parts of a config."""

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, StrictInt, StrictStr, model_validator

from labeldp_compile.toolkit import Strict

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
"""The largest ``max_examples_per_user``."""


def may_lack(key: str) -> ConfigDict:
    """For a model with ``key`` that is filled in before validation: its JSON Schema says so."""
    return ConfigDict(json_schema_extra=lambda schema: schema["required"].remove(key))


class Checked(Strict):
    """A part of a config with its own rules."""

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Each rule: whether it is broken, and the message. The first broken one is reported."""
        yield from ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        for broken, reason in self.rules():
            if broken:
                raise ValueError(reason)
        return self


class UserLevel(Checked):
    """The keys of all methods that can protect users."""

    user_column: StrictStr | None = Field(
        None, description="public column with the user of each row"
    )
    max_examples_per_user: StrictInt | None = Field(
        None,
        ge=1,
        le=MOST_EXAMPLES,
        description="most rows of a user that are used; they are chosen without reading labels",
    )

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Both keys, or neither."""
        apart = (self.user_column is None) != (self.max_examples_per_user is None)
        yield apart, "user_column and max_examples_per_user: give both or neither"


class TrueLabels(UserLevel):
    """The keys of all private methods that read true labels, and refuse none of them."""

    default: StrictInt | StrictStr | Number | None = Field(
        None,
        description="what missing and unknown labels count as; default: the first class, the "
        "middle of label_range, 0 without one, or (in a staged release) nothing",
    )


SMALLEST_DELTA = 1e-300
"""The smallest δ that accounting supports, near the end of float64."""
LabelRange = tuple[Number, Number]


class Approximate(TrueLabels):
    """The keys of all methods that promise (ε, δ)."""

    delta: Annotated[Number, Field(gt=0, lt=1)]

    def rules(self) -> Iterator[tuple[bool, str]]:
        """δ is not below the smallest one."""
        yield from super().rules()
        reason = f"delta: must be at least {SMALLEST_DELTA:g}"
        yield self.delta < SMALLEST_DELTA, reason


class NoisySum(Approximate):
    """The keys of all methods that add noise to sums over labels."""

    label_range: LabelRange | None = Field(
        None, description="smallest and largest label of a regression"
    )

    def rules(self) -> Iterator[tuple[bool, str]]:
        """The range is not empty."""
        yield from super().rules()
        low, high = self.label_range or (0, 1)
        yield not low < high, "label_range: the first number must be smaller than the second"
