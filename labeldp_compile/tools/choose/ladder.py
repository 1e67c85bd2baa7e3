"""Every ε of four significant digits from 0.01 to 20: what is found there needs no rounding."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction

_STEPS = 9_000  # 1.000, 1.001, … 9.999
_FEWEST = 1_000
_EXPONENT = -5  # 1000 · 10^-5 is the first
LAST = 3 * _STEPS + 1_000


def epsilon_at(step: int) -> Fraction:
    """ε of a step, 0 … LAST."""
    decade, within = divmod(step, _STEPS)
    return (_FEWEST + within) * Fraction(10) ** (decade + _EXPONENT)


def step_near(epsilon: float) -> int:
    """The first step whose ε is at least this one, for any number; LAST where none is."""
    exact = Fraction(min(max(epsilon, float(epsilon_at(0))), float(epsilon_at(LAST))))
    return min(bisect_right(range(LAST + 1), exact, key=_just_below), LAST)


def last_step_where(holds: Callable[[Fraction], bool]) -> int | None:
    """The last step whose ε satisfies what only small ones do; None if not even the first does."""
    count = bisect_right(range(LAST + 1), 0, key=lambda step: int(not holds(epsilon_at(step))))
    return count - 1 if count else None


def first_root(excess: Callable[[int], float], last: int, known: dict[int, float]) -> int | None:
    """A step in 0 … last at which ``excess`` is ≤ 0 and below which it is > 0.

    It is the first if excess falls as ε grows. None if it is > 0 at ``last``. ``known`` are values
    that need not be computed again; infinity may be among them. The Illinois form of false
    position on ln ε; after some steps, or without finite values at both ends, bisection.
    """
    values = dict(known)

    def at(step: int) -> float:
        if step not in values:
            values[step] = excess(step)
        return values[step]

    good = [step for step, value in values.items() if step <= last and value <= 0]
    if last < 0 or (not good and at(last) > 0):
        return None
    high = min(good, default=last)
    low = max((step for step, value in values.items() if step < high and value > 0), default=-1)
    if low < 0:
        if at(0) <= 0:
            return 0
        low = 0
    ends = {"low": at(low), "high": at(high)}
    kept = ""
    for turn in range(4 * _TURNS):
        if high - low <= 1:
            break
        step = (low + high) // 2
        if turn < _TURNS and all(map(math.isfinite, ends.values())):
            step = _crossing(low, high, ends["low"], ends["high"])
        moved, stale = ("low", "high") if at(step) > 0 else ("high", "low")
        low, high = (step, high) if moved == "low" else (low, step)
        ends[moved] = at(step)
        if kept == stale:  # twice the same end: its value counts half
            ends[stale] /= 2
        kept = stale
    return high


_TURNS = 10  # of false position; bisection needs at most 15 more


def _crossing(low: int, high: int, above: float, below: float) -> int:
    """Where a straight line over ln ε crosses zero, strictly between the two steps."""
    share = above / (above - below) if above > below else 0.5
    left, right = (math.log(epsilon_at(step)) for step in (low, high))
    return min(max(step_near(math.exp(left + share * (right - left))), low + 1), high - 1)


def _just_below(step: int) -> Fraction:
    """For a search from the right: an ε that is met exactly counts as found."""
    return epsilon_at(step) + Fraction(1, 10**12)
