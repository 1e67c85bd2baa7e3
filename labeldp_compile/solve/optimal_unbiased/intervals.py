"""Intervals of neighbouring labels, the columns of an optimal unbiased randomizer.

By Claims 12-14 of the unbiased-randomizer paper, every output of an optimum has the high
probability for a run of neighbouring labels and the low one for all others, and the runs only move
forward. So a column is a pair (first, last) of label indices, both inclusive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Intervals:
    """A set of intervals of label indices.

    Attributes:
        first: [m] int64, index of the first label inside.
        last: [m] int64, index of the last label inside, ``last >= first``.
    """

    first: Ints
    last: Ints

    def __len__(self) -> int:
        """Return the number of intervals."""
        return int(self.first.size)

    def keys(self, k: int) -> Ints:
        """Return a number for each interval of k labels, which sorts them."""
        return self.first * np.int64(k) + self.last

    def take(self, keep: NDArray[np.bool_] | Ints) -> Intervals:
        """Return the intervals picked by a mask or by positions."""
        return Intervals(self.first[keep], self.last[keep])


def unique_intervals(first: Ints, last: Ints, k: int) -> Intervals:
    """Drop pairs that are no interval of ``k`` labels, and duplicates; sort by (first, last)."""
    valid = (first >= 0) & (last < k) & (first <= last)
    keys = np.unique(first[valid] * np.int64(k) + last[valid])
    return Intervals(keys // k, keys % k)


def join(k: int, *parts: Intervals) -> Intervals:
    """Return the intervals of ``k`` labels that are in any of the parts."""
    return unique_intervals(
        np.concatenate([s.first for s in parts]), np.concatenate([s.last for s in parts]), k
    )


def no_intervals() -> Intervals:
    """Return no intervals."""
    nothing = np.zeros(0, np.int64)
    return Intervals(nothing, nothing)


def all_intervals(k: int) -> Intervals:
    """Return all k(k+1)/2 intervals of ``k`` labels."""
    first, last = np.triu_indices(k)
    return Intervals(first.astype(np.int64), last.astype(np.int64))


def prefixes_and_suffixes(k: int) -> Intervals:
    """Return every interval that touches an end.

    They alone make the problem feasible at every ε: mixtures of the smallest and the largest value
    reach every mean between them (Proposition 7).
    """
    index = np.arange(k, dtype=np.int64)
    zero, end = np.zeros(k, np.int64), np.full(k, k - 1, np.int64)
    return unique_intervals(np.concatenate([zero, index]), np.concatenate([index, end]), k)


def singletons(k: int) -> Intervals:
    """Return the one-label intervals, feasible at every ε: debiased randomized response."""
    index = np.arange(k, dtype=np.int64)
    return Intervals(index, index.copy())


def neighbourhood(intervals: Intervals, k: int, radius: int, ends: int = 2) -> Intervals:
    """Return all intervals whose ends are at most ``radius`` from those of a given one.

    With ``ends`` of 1 at least one of the two ends is that of the given one.
    """
    step = np.arange(-radius, radius + 1, dtype=np.int64)
    first, last = (move.ravel() for move in np.meshgrid(step, step))
    near = np.count_nonzero([first, last], axis=0) <= ends
    return unique_intervals(
        (intervals.first[:, None] + first[near]).ravel(),
        (intervals.last[:, None] + last[near]).ravel(),
        k,
    )


@dataclass(frozen=True, eq=False)
class Runs:
    """Columns that are not one interval, each as its runs of neighbouring labels.

    No optimum uses them. But if the multipliers are not unique, their conditions are needed to find
    multipliers that satisfy all conditions.

    Attributes:
        owner: [r] which column a run belongs to, 0 to count − 1.
        first, last: [r] the runs.
        count: number of columns.
    """

    owner: Ints
    first: Ints
    last: Ints
    count: int


def no_runs() -> Runs:
    """Return no columns."""
    nothing = np.zeros(0, np.int64)
    return Runs(nothing, nothing, nothing, 0)


def both_runs(one: Runs, other: Runs) -> Runs:
    """Return the columns of both."""
    return Runs(
        np.concatenate([one.owner, other.owner + one.count]),
        np.concatenate([one.first, other.first]),
        np.concatenate([one.last, other.last]),
        one.count + other.count,
    )
