"""The extra line of a window randomizer: integrals over it, and how much of it an output has."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import mul

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms import Segment
from labeldp_verify.forms.exact_numbers import Whole, whole

Points = NDArray[np.int64]


class StepFunction:
    """``numbers[j]`` on the j-th of consecutive segments of a line below 2^63, from 0.

    ``ends`` [L + 1] holds the ends of the segments, 0 first.
    """

    def __init__(self, ends: Points, numbers: Sequence[int]) -> None:
        """``ends`` [L + 1] increasing from 0; ``numbers`` [L] integers of any size."""
        self.ends = ends
        self._numbers = whole(numbers)
        products = map(mul, np.diff(ends).tolist(), self._numbers.tolist())
        self._sums = whole(accumulate(products, initial=0))

    def at(self, points: Points) -> Whole:
        """The numbers at points of the line (the last one after its end)."""
        return self._numbers[self._segments(points)]

    def upto(self, points: Points) -> Whole:
        """The integrals from 0 to points."""
        if not len(self._numbers):
            return whole([0] * len(points))
        j = self._segments(points)
        inside = (points - self.ends[j]).astype(object)
        return self._sums[j] + inside * self._numbers[j]

    def between(self, starts: Points, ends: Points) -> Whole:
        """The integrals from ``starts`` to ``ends``."""
        return self.upto(ends) - self.upto(starts)

    def _segments(self, points: Points) -> NDArray[np.intp]:
        """The segments that hold points of a line that is not empty."""
        return np.minimum(
            np.searchsorted(self.ends, points, side="right") - 1, len(self._numbers) - 1
        )


def ends_of(lengths: Iterable[int]) -> Points:
    """[L + 1] the ends of consecutive segments, from 0; OverflowError at 2^63."""
    return np.array(list(accumulate(lengths, initial=0)), dtype=np.int64)


class Coverage:
    """How many integers of a line from 0 belong to an output, up to any point.

    ``ends`` [L + 1] holds the ends of the segments, 0 first, and ``owners`` [L] their outputs.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        """``segments`` [L] of the line."""
        lengths = [segment.length for segment in segments]
        self.ends = ends_of(lengths)
        self.owners = np.array([segment.output for segment in segments], dtype=np.int64)
        order = np.argsort(self.owners, kind="stable")
        # By output, and from left to right; both in one number, which stays below 2^63.
        self._keys = self.owners[order] * (len(order) + 1) + order
        self._sums = ends_of(lengths[j] for j in order)

    def between(self, outputs: Points, starts: Points, ends: Points) -> Points:
        """[n] how many of the integers starts[i] … ends[i] − 1 belong to outputs[i]."""
        if not len(self.owners):
            return np.zeros_like(starts)
        return self._upto(outputs, ends) - self._upto(outputs, starts)

    def _upto(self, outputs: Points, points: Points) -> Points:
        """[n] those below points[i], and all of smaller outputs."""
        last = len(self.owners) - 1
        j = np.minimum(np.searchsorted(self.ends, points, side="right") - 1, last)
        before = np.searchsorted(self._keys, outputs * (last + 2) + j)
        inside: Points = np.where(self.owners[j] == outputs, points - self.ends[j], 0)
        return self._sums[before] + inside
