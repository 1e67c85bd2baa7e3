"""Mass, mean and spread of any run of labels, in constant time and without cancellation.

Differences of prefix sums are accurate enough only for small ε. At large ε, an optimal bin costs
about e^−ε of the terms that such differences subtract, so at ε = 30 thirteen digits would be lost.
A disjoint sparse table only adds non-negative terms, so its numbers have full relative accuracy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.solve.losses import Divergence, Floats, Ints


class Moments(NamedTuple):
    """Moments of several runs of labels.

    Attributes:
        mass: [...] sum of the weights.
        mean: [...] weighted mean of the labels; 0 where the mass is 0.
        spread: [...] weighted sum of divergence(label, mean).
    """

    mass: Floats
    mean: Floats
    spread: Floats

    def take(self, where: Ints | NDArray[np.bool_]) -> Moments:
        """Pick entries by index."""
        return Moments(self.mass[where], self.mean[where], self.spread[where])


def _join(a: Moments, b: Moments, divergence: Divergence) -> Moments:
    """Moments of the union of disjoint runs: a Bregman spread is a sum of non-negative parts.

    The parallel variance formula of Chan, Golub and LeVeque (1979), for any Bregman divergence.
    """
    mass = a.mass + b.mass
    share = b.mass / np.where(mass > 0, mass, 1.0)
    mean = a.mean + share * (b.mean - a.mean)
    between = a.mass * divergence(a.mean, mean) + b.mass * divergence(b.mean, mean)
    return Moments(mass, mean, a.spread + b.spread + between)


class RangeMoments:
    """Disjoint sparse table over n weighted labels: O(n log n) memory, O(1) a query.

    At level l the positions fall into aligned blocks of 2^l. Row l of `_after` describes the run
    from a position to the end of its block, row l of `_before` the run from the start of the block
    up to the position. A run [first, stop) is cut at the one boundary of blocks inside it at the
    level of the highest bit in which first and stop differ.
    """

    def __init__(self, labels: Floats, weights: Floats, divergence: Divergence) -> None:
        """Build the table.

        Args:
            labels: [n] increasing.
            weights: [n] positive.
            divergence: Bregman divergence D(label, mean), elementwise; D(x, x) = 0.
        """
        size = labels.size
        self._row = size + 1
        positions = np.arange(size + 1)
        nothing = np.zeros(1)
        after = Moments(np.append(weights, nothing), np.append(labels, nothing), np.zeros(size + 1))
        before = Moments(*np.zeros((3, size + 1)))
        rows_after, rows_before = [after], [before]
        for level in range(size.bit_length() - 1):
            width = 1 << level
            right = (positions & width) != 0
            start = positions & -width
            # A block past the end is empty, and so is the run from position `size`.
            following = np.minimum(start + width, size)
            joined_after = _join(after, after.take(following), divergence)
            joined_before = _join(after.take(np.maximum(start - width, 0)), before, divergence)
            after = _select(right, after, joined_after)
            before = _select(right, joined_before, before)
            rows_after.append(after)
            rows_before.append(before)
        self._after, self._before = _stack(rows_after), _stack(rows_before)
        # Highest set bit of every number up to the largest first ^ stop, times the row length.
        reach = np.arange(1 << size.bit_length())
        self._offset = np.maximum(np.frexp(reach.astype(np.float64))[1] - 1, 0) * self._row

    def halves(self, first: Ints, stop: Ints) -> tuple[Moments, Moments]:
        """Moments of two consecutive parts of the runs [first, stop), first < stop; elementwise.

        The second part may be empty (mass 0).
        """
        offset = self._offset[first ^ stop]
        return self._after.take(offset + first), self._before.take(offset + stop)


def _select(condition: NDArray[np.bool_], yes: Moments, no: Moments) -> Moments:
    return Moments(*(np.where(condition, y, n) for y, n in zip(yes, no, strict=True)))


def _stack(rows: list[Moments]) -> Moments:
    return Moments(*map(np.concatenate, zip(*rows, strict=True)))
