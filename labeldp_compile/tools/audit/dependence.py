"""Do two rows share their words? Rows of one label must be independent.

Draws become bits (is the output in a set S?). One part of the bits finds the distance at which they
agree most, by the fast Fourier transform over all distances; another part counts, at that
distance, the pairs with both bits set. For independent rows their probability is Pr[S]², which
Clopper–Pearson bounds of both sides can refute.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from labeldp_compile.tools.audit.binomial import lower_bound, upper_bound

Bits = NDArray[np.bool_]
_DISTANCES = 3  # that are tested


@dataclass(frozen=True)
class Shared:
    """Two rows that are not independent.

    Attributes:
        distance: rows between them; of two sequences, the shift of the second.
        together: share of pairs with both bits set.
        independent: what it would be without dependence.
    """

    distance: int
    together: float
    independent: float


def shared_inside(first: Bits, second: Bits, error: float) -> Shared | None:
    """Dependence inside sequences of rows of one label; ``second`` tests what ``first`` shows.

    Both [n] hold the rows of several calls, one behind the other, so that distances reach from one
    call into the next.
    """
    n, x = len(first), first - first.mean()
    size = next_fast_len(2 * n)
    agreement = irfft(np.abs(rfft(x, size)) ** 2, size)[: n // 2 + 1]
    strength = np.abs(agreement) / np.sqrt(np.arange(n, n - n // 2 - 1, -1))
    strength[0] = 0
    distances = {1, *map(int, np.argsort(-strength)[:_DISTANCES])} - {0}
    tests = []
    for distance in distances:
        rows = np.arange(n - distance)
        turn = rows // distance % 2
        # The pairs of one turn have no row in common.
        tests += [(distance, rows[turn == side]) for side in (0, 1)]
    for distance, rows in tests:
        if len(rows):
            found = _refuted(second[rows], second[rows + distance], error / len(tests))
            if found:
                return Shared(distance, *found)
    return None


def shared_between(one: Bits, two: Bits, error: float) -> Shared | None:
    """Dependence of two sequences [n] that were drawn apart, at any shift."""
    n = len(one) // 2
    a, b = one[:n] - one.mean(), two[:n] - two.mean()
    size = next_fast_len(2 * n)
    agreement = irfft(rfft(a, size).conj() * rfft(b, size), size)
    shifts = {0, int(np.abs(agreement).argmax())}
    for shift in {s - size if s > size // 2 else s for s in shifts}:
        rows = np.arange(n, len(one))
        rows = rows[(rows + shift >= n) & (rows + shift < len(two))]
        if len(rows):
            found = _refuted(one[rows], two[rows + shift], error / len(shifts))
            if found:
                return Shared(shift, *found)
    return None


def _refuted(a: Bits, b: Bits, error: float) -> tuple[float, float] | None:
    """(share of pairs with both bits, Pr[S]²) if pairs of equal bits are provably dependent."""
    n, share = len(a), error / 4
    both, bits = int((a & b).sum()), int(a.sum()) + int(b.sum())
    p = float(lower_bound(bits, 2 * n, share)), float(upper_bound(bits, 2 * n, share))
    joint = float(lower_bound(both, n, share)), float(upper_bound(both, n, share))
    if joint[0] > p[1] ** 2 or joint[1] < p[0] ** 2:
        return both / n, (bits / (2 * n)) ** 2
    return None
