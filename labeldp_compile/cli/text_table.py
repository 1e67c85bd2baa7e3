"""Aligned tables for a terminal, whatever a label is called."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from labeldp_verify.printable import clipped, printable, width

__all__ = ["clipped", "padded", "printable", "text_table", "width"]


def padded(text: str, columns: int, *, left: bool = False) -> str:
    """The text in so many columns, right-justified unless ``left``."""
    space = " " * (columns - width(text))
    return text + space if left else space + text


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)
) -> list[str]:
    """Lines of a table; the columns in ``left`` are left-justified, the others right-justified."""
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(width, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join(
            padded(cell, columns, left=i in left)
            for i, (cell, columns) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in chain([header], rows)
    ]
