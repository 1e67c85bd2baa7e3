"""The option of commands that verify a file first: what that may take."""

from __future__ import annotations

from typing import Any

import click
from labeldp_verify.budget import DEFAULT_BUDGET, Budget

from labeldp_compile.errors import InputError


def _parse(ctx: click.Context, parameter: click.Parameter, text: str | None) -> Budget:
    try:
        return DEFAULT_BUDGET if text is None else Budget.parse(text)
    except InputError as error:
        raise click.BadParameter(str(error).removeprefix("--budget: ")) from None


def budget_option(command: Any) -> Any:
    """Adds ``--budget``."""
    return click.option(
        "--budget",
        metavar="SECONDS,BYTES",
        callback=_parse,
        help=f"What verifying FILE may take, as in 60,8GB (default: {DEFAULT_BUDGET}).",
    )(command)
