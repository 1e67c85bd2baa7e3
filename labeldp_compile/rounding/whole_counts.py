"""From proportions to whole counts with an exact sum."""

from __future__ import annotations

from collections.abc import Sequence


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
