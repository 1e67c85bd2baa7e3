"""Post-processing of a noisy histogram: the nearest one with the public number of rows.

Clipping negative counts at zero alone adds weight to every rare label: half of the noise survives
and none of it cancels. The number of rows n is public, so the Euclidean projection onto
{c ≥ 0, Σ c = n} removes that excess at no cost in privacy (benchmarks/prior.py measures by how
much the loss falls).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate


def project_to_total(counts: Sequence[int], total: int) -> list[int]:
    """Integer weights [k] in proportion to the projection of integer counts [k]; total ≥ 1.

    The projection is max(c − τ, 0) for the τ that makes the sum ``total``; τ = (S_r − total)/r for
    the largest r whose r-th largest count exceeds it, S_r being the sum of the r largest. Times r,
    all of this is in integers.
    """
    descending = sorted(counts, reverse=True)
    sums = list(accumulate(descending))
    support = max(
        r for r in range(1, len(counts) + 1) if r * descending[r - 1] > sums[r - 1] - total
    )
    shift = sums[support - 1] - total
    weights = [max(support * count - shift, 0) for count in counts]
    common = math.gcd(*weights)
    return [weight // common for weight in weights]
