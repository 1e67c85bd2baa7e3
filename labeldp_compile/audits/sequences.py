"""Do two rows share their random bits? Rows of one label must be independent.

This is tested inside calls, from call to call, and from process to process. A draw becomes a bit:
is the output in a set S? One part of the bits finds the distance at which they agree most, by a
fast Fourier transform over all distances. Another part counts the pairs with both bits set at that
distance. For independent rows their probability is Pr[S]², which Clopper–Pearson bounds of both
sides can refute.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from labeldp_compile.audits.epsilon import lower_bound, upper_bound
from labeldp_compile.audits.processes import drawn_in_children
from labeldp_compile.audits.report import Finding
from labeldp_compile.audits.sampling import Sampler, Tally
from labeldp_compile.audits.target import AuditTarget

Bits = NDArray[np.bool_]
_DISTANCES = 3  # that are tested
_CALLS = 4  # one after the other in a sequence
_PROCESS_ROWS = 1 << 15


@dataclass(frozen=True)
class Shared:
    """Two rows that are not independent.

    Attributes:
        distance: rows between them; of two sequences, the shift of the second.
        together: share of pairs with both bits set.
        independent: the same share if rows were independent.
    """

    distance: int
    together: float
    independent: float


def shared_inside(first: Bits, second: Bits, error: float) -> Shared | None:
    """Dependence inside sequences of rows of one label; ``second`` tests what ``first`` suggests.

    Both [n] hold the rows of several calls, one after the other, so that distances reach from one
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
        for side in (0, 1):
            one = rows[turn == side]
            tests.append((distance, second[one], second[one + distance]))
    return _first_dependent(tests, error)


def shared_between(one: Bits, two: Bits, error: float) -> Shared | None:
    """Dependence of two sequences [n] that were drawn separately, at any shift."""
    n = len(one) // 2
    a, b = one[:n] - one.mean(), two[:n] - two.mean()
    size = next_fast_len(2 * n)
    agreement = irfft(rfft(a, size).conj() * rfft(b, size), size)
    shifts = {0, int(np.abs(agreement).argmax())}
    tests = []
    for shift in {s - size if s > size // 2 else s for s in shifts}:
        rows = np.arange(n, len(one))
        rows = rows[(rows + shift >= n) & (rows + shift < len(two))]
        tests.append((shift, one[rows], two[rows + shift]))
    return _first_dependent(tests, error)


def _first_dependent(tests: Sequence[tuple[int, Bits, Bits]], error: float) -> Shared | None:
    """The first (distance, bits, bits) whose pairs are provably dependent."""
    each = error / (4 * len(tests))
    for distance, a, b in tests:
        n, both, bits = len(a), int((a & b).sum()), int(a.sum()) + int(b.sum())
        if not n:
            continue
        p = float(lower_bound(bits, 2 * n, each)), float(upper_bound(bits, 2 * n, each))
        pairs = float(lower_bound(both, n, each)), float(upper_bound(both, n, each))
        if pairs[0] > p[1] ** 2 or pairs[1] < p[0] ** 2:
            return Shared(distance, both / n, (bits / (2 * n)) ** 2)
    return None


def even_set(screened: Tally) -> tuple[int, Bits]:
    """The label, and the lower part [cells] of the outputs, with a probability closest to ½."""
    shares = screened.counts.cumsum(axis=1) / np.maximum(screened.samples, 1)[:, None]
    label, cell = np.unravel_index(np.abs(shares - 0.5).argmin(), shares.shape)
    return int(label), np.arange(shares.shape[1]) <= cell


def independence(sampler: Sampler, label: int, chosen: Bits, rows: int, error: float) -> Finding:
    """Whether rows, and calls, share their random bits; draws two sequences of ``rows`` rows.

    A row's bit is whether its output lies in the ``chosen`` set [cells].
    """
    call = sampler.rows(label, rows // _CALLS)
    first, second = (
        np.concatenate([chosen[sampler.cells.indices(sampler.draw(call))] for _ in range(_CALLS)])
        for _ in range(2)
    )
    shared = shared_inside(first, second, error)
    if shared is None:
        detail = f"no dependence between rows up to {rows // 2:,} apart"
        return Finding("independence", True, detail)
    return Finding(
        "independence",
        False,
        f"rows of one label that are {shared.distance:,} apart are not independent: both "
        f"outputs are in one set with probability {shared.together:.4f} instead of "
        f"{shared.independent:.4f}",
    )


def processes(
    target: AuditTarget, sampler: Sampler, label: int, chosen: Bits, rows: int, error: float
) -> Finding:
    """Whether a process repeats another's random bits; each draws at most ``rows`` rows."""
    call = sampler.rows(label, min(rows, _PROCESS_ROWS))
    drawn, failures = drawn_in_children(target, sampler.opened, call)
    sampler.count(len(call) * len(drawn))
    bits = {name: chosen[sampler.cells.indices(part)] for name, part in drawn.items()}
    pairs = list(combinations(bits, 2))
    for a, b in pairs:
        if shared_between(bits[a], bits[b], error / len(pairs)):
            return Finding("processes", False, f"{b} repeats the random bits of {a}")
    if failures:
        return Finding("processes", None, f"could not be tried: {failures[0]}")
    return Finding("processes", True, f"no dependence between {', '.join(bits)}")
