"""Callbacks for progress and spending, which are passed on as one object."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def _quiet(*arguments: object) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Observer:
    """Each function does nothing unless one is given.

    Attributes:
        rows: gets the number of rows or labels done since the last call.
        step: gets a line of text for each step of a long solve.
        say: gets a line of text: what was recalled or spent, and warnings before that.
        spending: gets the ``PriorPlan``, and n if it is known, before any noise is drawn. An
            exception from it stops the work before ε is spent.
    """

    rows: Callable[[int], None] = _quiet
    step: Callable[[str], None] = _quiet
    say: Callable[[str], None] = _quiet
    spending: Callable[[Any, int | None], None] = _quiet


QUIET = Observer()


def time_left(began: float, done: int, rest: int) -> str:
    """The words for the time that ``rest`` pieces of work take, each like the ``done`` ones.

    ``began`` is the ``time.monotonic()`` at which the first of those began.
    """
    if not done:
        return "time left unknown"
    return f"about {(time.monotonic() - began) * rest / done:,.0f} s left"
