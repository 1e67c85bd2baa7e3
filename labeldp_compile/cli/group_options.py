"""The option of commands that read a table's columns of groups: where each of them is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def _parse(
    ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    if not given:
        return {}
    from labeldp_compile.tabular.artifact_columns import ONLY  # noqa: PLC0415  # pyarrow

    found = {}
    for text in given:
        name, equals, column = text.partition("=")
        name, column = (name, column) if equals else (ONLY, text)
        if not column or name in found:
            raise click.BadParameter(f"{text}: expected COLUMN, or NAME=COLUMN once for each NAME")
        found[name] = column
    return found


def group_column_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--group-column``: the column of the table by the artifact's name of it."""
    return click.option(
        "--group-column",
        "group_columns",
        multiple=True,
        callback=_parse,
        metavar="[NAME=]COLUMN",
        help="Of an artifact with a table for each group: the column of TABLE that has the groups "
        "(default: that of the certificate's name). Of several, each as NAME=COLUMN.",
    )(command)


def group_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--group``: which of the tables by group is shown."""
    return click.option(
        "--group",
        metavar="VALUE[,VALUE…]",
        help="Of an artifact with a table for each group: show that of this group; other: that of "
        "all rows that are not listed.",
    )(command)
