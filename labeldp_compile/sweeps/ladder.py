"""Every ε with four significant digits from 0.01 to 20, so that results need no rounding."""

import math
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction

from scipy.optimize import brentq

_STEPS = 9_000  # 1.000, 1.001, … 9.999
_FEWEST = 1_000
_EXPONENT = -5  # 1000 · 10^-5 is the first
_TURNS = 10  # of Brent's method; bisection needs at most 15 more
_MOST = 50.0  # instead of infinity
LAST = 3 * _STEPS + 1_000


def epsilon_at(step: int) -> Fraction:
    """ε of a step, 0 … LAST."""
    decade, within = divmod(step, _STEPS)
    return (_FEWEST + within) * Fraction(10) ** (decade + _EXPONENT)


def step_near(epsilon: float) -> int:
    """The first step whose ε is at least this one, for any number; LAST where none is."""
    # Slightly less, by far less than a step: an ε that became a float must still find its step.
    least = Fraction(min(max(epsilon, 0.0), 100.0)) - Fraction(1, 10**12)
    return min(bisect_left(range(LAST + 1), least, key=epsilon_at), LAST)


def first_root(excess: Callable[[int], float], last: int, known: dict[int, float]) -> int | None:
    """A step in 0 … last at which ``excess`` is ≤ 0 and below which it is > 0.

    It is the first such step if excess falls as ε grows. None if excess is > 0 at ``last``.
    ``known`` are values that need not be computed again; infinity may be among them. Brent's method
    on ln ε comes close, and bisection between the nearest values ends at neighbouring steps.
    """
    values = dict(known)

    def at(step: int) -> float:
        if step not in values:
            values[step] = excess(step)
        return values[step]

    def at_log(log_epsilon: float) -> float:
        return min(at(step_near(math.exp(log_epsilon) * (1 - 1e-12))), _MOST)

    high = min((s for s, value in values.items() if s <= last and value <= 0), default=last)
    if high < 0 or at(high) > 0:
        return None
    low = max((s for s, value in values.items() if s < high and value > 0), default=0)
    if at(low) <= 0:
        return low
    ends = (math.log(epsilon_at(step)) for step in (low, high))
    brentq(at_log, *ends, xtol=1e-4, maxiter=_TURNS, disp=False)
    while high - low > 1:
        high = min(s for s, value in values.items() if s <= high and value <= 0)
        low = max(s for s, value in values.items() if s < high and value > 0)
        at((low + high) // 2)
    return high
