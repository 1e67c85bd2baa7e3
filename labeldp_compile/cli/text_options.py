"""The options of commands that read tables of text: what such a table does not say itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from labeldp_compile.text_form import read_delimiter, read_encoding


def _parsed(
    read: Callable[[str], str],
) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    def parse(ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
        try:
            return None if text is None else read(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return parse


def text_options(command: Any) -> Any:
    """Adds ``--delimiter`` and ``--encoding``."""
    command = click.option(
        "--encoding",
        metavar="NAME",
        callback=_parsed(read_encoding),
        help="CSV: the encoding of TABLE, as in latin-1 (default: utf-8).",
    )(command)
    return click.option(
        "--delimiter",
        metavar="C",
        callback=_parsed(read_delimiter),
        help="CSV: what separates cells, as in ';' (default: a comma; a tab in .tsv).",
    )(command)
