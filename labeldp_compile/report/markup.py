"""The few shapes of HTML that a report is made of. Cells are HTML: ``text`` escapes what is not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from labeldp_verify.forms.window import Output
from labeldp_verify.printable import clipped, printable

from labeldp_compile.report.numbers import data

_NAME_COLUMNS = 40


def text(words: str) -> str:
    """Text of others as HTML: shown, whole, and never obeyed."""
    return escape(printable(words))


def name(item: Output | float, columns: int = _NAME_COLUMNS) -> str:
    """A label or an output as HTML: a number for people and machines, or a clipped category."""
    return escape(clipped(item, columns)) if isinstance(item, str) else data(item, 6)


def section(anchor: str, title: str, body: Iterable[str]) -> list[str]:
    """A section with a heading."""
    return [f'<section id="{anchor}"><h2>{title}</h2>', *body, "</section>"]


def table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    best: int | None = None,
    left: bool = False,
) -> list[str]:
    """A table that scrolls by itself where the page is narrow; ``best`` is the row to point out."""
    plain_caption = re.sub("<[^>]*>", "", caption)
    head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    kind = ' class="left"' if left else ""
    lines = [
        f'<div class="wide" tabindex="0" role="region" aria-label="{plain_caption}">',
        f"<table{kind}><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>",
    ]
    for index, (first, *rest) in enumerate(rows):
        cells = f'<th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest)
        lines.append(f'<tr class="best">{cells}</tr>' if index == best else f"<tr>{cells}</tr>")
    return [*lines, "</tbody></table></div>"]


def figure(svg: str, caption: str) -> list[str]:
    """A picture with its caption."""
    return [
        f'<figure><div class="wide" tabindex="0">{svg}</div>',
        f"<figcaption>{caption}</figcaption></figure>",
    ]


def details(summary: str, body: Iterable[str]) -> list[str]:
    """What few want to see, behind a line that opens it; open on paper."""
    return [f"<details><summary>{summary}</summary>", *body, "</details>"]
