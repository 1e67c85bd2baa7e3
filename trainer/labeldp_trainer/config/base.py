"""What every part of a config is made of."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator

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
