"""Proportions as whole counts with a given sum.

A non-increasing sequence is rounded with the small counts up and the largest ones down.

A ratio of a large count to a small one then never exceeds that of the ideal numbers, which is
what privacy asks for, and no slack has to be bought with a smaller ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby


def rounded_shape(magnitudes: Sequence[int], total: int) -> list[int]:
    """[n] non-increasing counts ≥ 1 with the sum ``total``, in proportion to the magnitudes.

    ``magnitudes`` [n] are positive and non-increasing. With x = total·magnitude/Σ magnitudes, the
    largest count is at most the largest x, and every count that is below the largest is at least
    its x, unless all counts are equal to within 1. No count is further than n from its x. Raises
    ValueError if n > total.
    """
    n, whole = len(magnitudes), sum(magnitudes)
    if n > total:
        raise ValueError(f"{n:,} points do not fit {total:,} words")
    counts: list[int] = []
    for magnitude, run in groupby(magnitudes):
        counts += [-(-total * magnitude // whole)] * sum(1 for _ in run)
    # Rounding up has given away fewer than n words too many: the largest counts pay, by coming
    # down to one level.
    excess = sum(counts) - total
    lowered, their_sum = 1, counts[0]
    while lowered < n and their_sum - lowered * counts[lowered] < excess:
        their_sum += counts[lowered]
        lowered += 1
    level, left = divmod(their_sum - excess, lowered)
    counts[:lowered] = [level] * lowered
    # What the level could not take goes to the next counts, no higher than the level.
    for j in range(lowered, n):
        if not left:
            break
        added = min(left, level - counts[j])
        counts[j] += added
        left -= added
    for j in range(left):  # all are equal
        counts[j] += 1
    return counts


def whole_counts(proportions: Sequence[int], total: int) -> list[int]:
    """[m] integers ≥ 1 that sum to ``total``, as near to the proportions as whole numbers can be.

    Every item gets 1; the rest is dealt in proportion, and what rounding leaves goes to the largest
    remainders, the first of equal ones first. ``proportions`` [m] are integers ≥ 0, not all 0.
    Raises ValueError if total < m.
    """
    m, whole = len(proportions), sum(proportions)
    if total < m:
        raise ValueError(f"{m} outputs do not fit {total} words")
    shares = [divmod((total - m) * p, whole) for p in proportions]
    counts = [share + 1 for share, _ in shares]
    left = total - sum(counts)
    for i in sorted(range(m), key=lambda i: -shares[i][1])[:left]:
        counts[i] += 1
    return counts
