"""Who is told how long work goes, and what it spends: given once, and handed on whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labeldp_compile.prior.split import PriorPlan


def _quiet(*arguments: object) -> None:
    """Nobody is told."""


@dataclass(frozen=True)
class Observer:
    """Each function does nothing unless one is given.

    Attributes:
        rows: so many more rows, or labels, are done.
        step: a line of text for each step of a long solve.
        say: a line of text: what was recalled or spent, and warnings before.
        spending: the plan of a prior and n, if it is known, before any noise is drawn; whatever
            it raises stops the work before ε is spent.
    """

    rows: Callable[[int], None] = _quiet
    step: Callable[[str], None] = _quiet
    say: Callable[[str], None] = _quiet
    spending: Callable[[PriorPlan, int | None], None] = _quiet


QUIET = Observer()
