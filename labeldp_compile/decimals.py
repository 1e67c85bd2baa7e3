"""Numbers of a spec: exact decimals of bounded length."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

MAX_DIGITS = 100
MAX_EXPONENT = 100


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("expected a number")
    number = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise ValueError("expected a finite number")
    digits = number.as_tuple()
    if len(digits.digits) > MAX_DIGITS or (number and abs(number.adjusted()) > MAX_EXPONENT):
        raise ValueError(f"expected a number between 1e-{MAX_EXPONENT} and 1e{MAX_EXPONENT}")
    return number


Number = Annotated[Decimal, BeforeValidator(_number), WithJsonSchema({"type": "number"})]
