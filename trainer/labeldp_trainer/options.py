"""The common base of the parts of a config: numbers, and rules of their own."""

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, model_validator

from labeldp_compile.toolkit import Strict


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("expected a number")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("expected a finite number")
    return number


Number = Annotated[float, BeforeValidator(_number)]


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
