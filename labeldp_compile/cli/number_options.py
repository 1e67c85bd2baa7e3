"""Numbers as options: click's own take "1_0" as 10, and digits of any alphabet."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import click
from labeldp_verify.reading.numerals import read_decimal, read_whole

from labeldp_compile.errors import InputError


class Whole(click.IntRange):
    """A whole number in a range, in ASCII digits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; a usage error for anything else."""
        if isinstance(value, str):
            try:
                value = read_whole(value)
            except ValueError as error:
                self.fail(f"{error}, got {value!r}", param, ctx)
        number: int = super().convert(value, param, ctx)
        return number


def decimal_of(option: str, text: str) -> Decimal:
    """The number of an option, exactly. Raises InputError, which names the option."""
    try:
        return read_decimal(text)
    except ValueError as error:
        raise InputError(f"{option}: {error}, got {text!r}") from None


class Number(click.ParamType[float]):
    """A decimal number in ASCII digits, as the nearest float64."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number; a usage error for anything else."""
        try:
            return float(value if isinstance(value, float) else read_decimal(value))
        except ValueError as error:
            self.fail(f"{error}, got {value!r}", param, ctx)
