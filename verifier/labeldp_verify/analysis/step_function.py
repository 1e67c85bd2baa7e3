"""A step function on consecutive integer segments, integrated exactly by prefix sums."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate


class StepFunction:
    """``numbers[j]`` on the j-th of consecutive segments, which start at 0.

    ``ends`` [L + 1] holds the ends of the segments, 0 first.
    """

    def __init__(self, lengths: Sequence[int], numbers: Sequence[int]) -> None:
        """``lengths`` [L] of the segments, ≥ 1; ``numbers`` [L], exact."""
        self.ends = list(accumulate(lengths, initial=0))
        self._numbers = numbers
        products = (length * f for length, f in zip(lengths, numbers, strict=True))
        self._sums = list(accumulate(products, initial=0))

    def at(self, point: int) -> int:
        """The number at a point of the line (the last one behind its end)."""
        return self._numbers[self._segment(point)]

    def upto(self, point: int) -> int:
        """The integral from 0 to a point."""
        j = self._segment(point)
        return self._sums[j] + (point - self.ends[j]) * self._numbers[j] if j >= 0 else 0

    def between(self, start: int, end: int) -> int:
        """The integral from ``start`` to ``end``."""
        return self.upto(end) - self.upto(start)

    def _segment(self, point: int) -> int:
        """The segment that holds a point; −1 on an empty line."""
        return min(bisect_right(self.ends, point) - 1, len(self._numbers) - 1)
