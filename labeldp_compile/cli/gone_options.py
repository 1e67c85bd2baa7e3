"""Options that earlier versions had: whoever still gives one is told what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def gone_option(name: str, reason: str) -> Callable[[Any], Any]:
    """A hidden option that is refused, with its name and ``reason``: exit code 2."""

    def refuse(ctx: click.Context, parameter: click.Parameter, given: Any) -> None:
        if given is not None:
            raise click.UsageError(f"{name} {reason}", ctx)

    return click.option(
        name, hidden=True, expose_value=False, is_flag=False, flag_value="", callback=refuse
    )
