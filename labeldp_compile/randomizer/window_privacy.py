"""The exact privacy of a window randomizer, whatever chooses the offsets."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from fractions import Fraction
from itertools import accumulate

from labeldp_compile.randomizer.window import WindowRandomizer


def window_ratio(randomizer: WindowRandomizer) -> Fraction:
    """max over outputs i and all integer offsets s of (bᵢ + overlap of [s, s+X) with i) / bᵢ.

    Every label's count of output i lies between bᵢ and that maximum, so this bounds the ratio of
    any two labels' probabilities of any output, hence e^ε.
    """
    worst = Fraction(1)
    for base, overlap in zip(randomizer.base, max_overlaps(randomizer), strict=True):
        worst = max(worst, Fraction(base + overlap, base))
    return worst


def max_overlaps(randomizer: WindowRandomizer) -> list[int]:
    """[m] largest number of integers of each output that a window can cover.

    With one segment it is min(length, X). With several, the overlap is piecewise linear in the
    offset and can only turn where an end of the window meets an end of a segment.
    """
    X = randomizer.window
    starts = list(accumulate((s.length for s in randomizer.extra), initial=0))
    last = starts[-1] - X
    segments: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for segment, start in zip(randomizer.extra, starts, strict=False):
        segments[segment.output].append((start, start + segment.length))
    result = []
    for output in range(len(randomizer.base)):
        own = segments[output]
        if len(own) == 1:
            result.append(min(own[0][1] - own[0][0], X))
            continue
        covered = _Covered(own)
        turns = {end - shift for pair in own for end in pair for shift in (0, X)} | {0, last}
        result.append(
            max((covered.upto(s + X) - covered.upto(s) for s in turns if 0 <= s <= last), default=0)
        )
    return result


class _Covered:
    """How many integers below a point belong to some disjoint, increasing segments."""

    def __init__(self, segments: list[tuple[int, int]]) -> None:
        self._segments = segments
        self._starts = [start for start, _ in segments]
        self._before = list(accumulate((b - a for a, b in segments), initial=0))

    def upto(self, point: int) -> int:
        j = bisect_right(self._starts, point)
        if j == 0:
            return 0
        start, end = self._segments[j - 1]
        return self._before[j - 1] + min(point, end) - start
