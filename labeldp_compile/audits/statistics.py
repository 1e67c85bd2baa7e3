"""Tests of counts of outputs: a bound on ε, wrong probabilities, rows that are not independent.

**ε.** Pr[S | y] ≥ e^ε·Pr[S | y'] for the best pair and set found. Some draws are used to search for
events, and other, unused draws to bound them. So only the few bounds of the last step share the
error. The ratio of a set is never larger than that of its best single output. But its probability
is known more precisely.

**Probabilities.** There are two tests per label. The first is Pearson's chi-square with small cells
pooled. Its p-value is asymptotic, so it decides only far below its share of the error. The second
is exact: one half of the draws chooses the set of outputs that occurred too often, and the other
half counts that set. The Clopper–Pearson bound of its probability is compared with the certified
probability.

**Rows.** Do two rows share their random bits? Rows of one label must be independent, inside calls,
from call to call, and from process to process. A draw becomes a bit: is the output in a set S? One
part of the bits finds the distance at which they agree most, by a fast Fourier transform over all
distances. Another part counts the pairs with both bits set at that distance. For independent rows
their probability is Pr[S]², which Clopper–Pearson bounds of both sides can refute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import betaincinv, chdtrc

from labeldp_compile.audits.randomizer import Tally

Bits = NDArray[np.bool_]
Floats = NDArray[np.float64]
Proposal = tuple[int, int, Bits]  # label, other label, set of cells
_CAUTION = 3.0  # standard deviations by which the search lowers a promising ratio
_PROPOSALS = 512


def lower_bound(successes: Any, trials: Any, error: float) -> Floats:
    """A bound that is above the true probability with probability at most ``error``.

    The exact binomial bound (Clopper and Pearson 1934): the largest p at which
    Pr[X ≥ c] = I_p(c, n − c + 1) is at most the error.

    Args:
        successes: counts c, of any shape.
        trials: how often each was tried, n ≥ 1; its shape broadcasts.
        error: one-sided, for each bound.
    """
    c, n = np.broadcast_arrays(np.asarray(successes, float), np.asarray(trials, float))
    return np.where(c > 0, betaincinv(np.maximum(c, 0.5), n - c + 1, error), 0.0)


def upper_bound(successes: Any, trials: Any, error: float) -> Floats:
    """A bound that is below the true probability with probability at most ``error``.

    The arguments are those of ``lower_bound``.
    """
    return 1.0 - lower_bound(np.subtract(trials, successes), trials, error)


@dataclass(frozen=True)
class Event:
    """A set of cells that is more probable under one label than under another.

    Attributes:
        label, other: indices of the two labels.
        cells: [cells] which belong to the set.
        score: a cautious guess of ln(Pr[S | label]/Pr[S | other]).
    """

    label: int
    other: int
    cells: Bits
    score: float


@dataclass(frozen=True)
class EpsilonBound:
    """A lower bound on ε, and the event that shows it.

    Attributes:
        bound: ≥ 0; above the true ε with at most the requested probability.
        event: the event with the largest ratio.
        seen, seen_other: how often it was drawn, and in how many samples, for its two labels.
    """

    bound: float
    event: Event
    seen: tuple[int, int]
    seen_other: tuple[int, int]


def search_events(halves: tuple[Tally, Tally], most_labels: int, most_events: int) -> list[Event]:
    """The most promising events, best first, on at most ``most_labels`` labels with samples.

    All draws propose and rank single outputs and thresholds. The first half proposes unions of
    outputs and the second half ranks them. Otherwise their noise would choose them, and they would
    look better than they are.
    """
    drawn = np.flatnonzero(halves[0].samples)
    first, second, both = (
        Tally(t.counts[drawn], t.samples[drawn]) for t in (*halves, halves[0] + halves[1])
    )
    plain = _plain_events(both)
    pairs = list(dict.fromkeys((label, other) for label, other, _ in plain))
    unions = [(label, other, _union(first, label, other)) for label, other in pairs]
    scored = [(_score(both, proposal), *proposal) for proposal in plain]
    scored += [(_score(second, proposal), *proposal) for proposal in unions]
    events: list[Event] = []
    labels: set[int] = set()
    for score, label, other, cells in sorted(scored, key=lambda proposal: -proposal[0]):
        pair = {label, other}
        if len(labels | pair) > most_labels:
            continue
        labels |= pair
        events.append(Event(int(drawn[label]), int(drawn[other]), cells, score))
        if len(events) == most_events:
            break
    return events


def bound_epsilon(events: list[Event], fresh: Tally, error: float) -> EpsilonBound:
    """The largest Clopper–Pearson bound of the events, from draws that did not choose them.

    All bounds hold together with probability 1 − ``error``.
    """
    share = error / (2 * len(events))
    best: EpsilonBound | None = None
    for event in events:
        seen, other = (fresh.seen(y, event.cells) for y in (event.label, event.other))
        p = float(lower_bound(*seen, share))
        q = float(upper_bound(*other, share))
        bound = math.log(p / q) if p > q else 0.0
        if best is None or bound > best.bound:
            best = EpsilonBound(bound, event, seen, other)
    assert best is not None
    return best


def _plain_events(tally: Tally) -> list[Proposal]:
    """For the best outputs and thresholds: the two labels that they distinguish, and the set."""
    counts, M = tally.counts, tally.counts.shape[1]
    upto, beyond = counts.cumsum(axis=1), counts[:, ::-1].cumsum(axis=1)[:, ::-1]
    tried = np.concatenate([counts, upto[:, :-1], beyond[:, 1:]], axis=1)
    low, high = _cautious(tried, tally.samples[:, None])
    best, worst = low.argmax(axis=0), high.argmin(axis=0)
    columns = np.arange(tried.shape[1])
    with np.errstate(divide="ignore"):
        scores = np.log(low[best, columns]) - np.log(high[worst, columns])
    order = [int(c) for c in np.argsort(-scores, kind="stable") if best[c] != worst[c]]
    proposals = [(int(best[c]), int(worst[c]), _cells_of(c, M)) for c in order[:_PROPOSALS]]
    return proposals or [(0, 1, np.ones(M, dtype=bool))]


def _cells_of(column: int, M: int) -> Bits:
    """The cells of a column of ``tried``: one cell, all up to it, or all from it on."""
    cells = np.zeros(M, dtype=bool)
    if column < M:
        cells[column] = True
    elif column < 2 * M - 1:
        cells[: column - M + 1] = True
    else:
        cells[column - 2 * M + 2 :] = True
    return cells


def _union(tally: Tally, label: int, other: int) -> Bits:
    """The best union of the cells that favour a label most."""
    counts, samples = tally.counts, tally.samples
    low, _ = _cautious(counts[label], samples[label])
    _, high = _cautious(counts[other], samples[other])
    order = np.argsort(-low / high, kind="stable")
    low, _ = _cautious(counts[label][order].cumsum(), samples[label])
    _, high = _cautious(counts[other][order].cumsum(), samples[other])
    cells = np.zeros(counts.shape[1], dtype=bool)
    cells[order[: int((low / high).argmax()) + 1]] = True
    return cells


def _score(tally: Tally, proposal: Proposal) -> float:
    label, other, cells = proposal
    low, _ = _cautious(*tally.seen(label, cells))
    _, high = _cautious(*tally.seen(other, cells))
    return math.log(low / high) if low > 0 else -math.inf


def _cautious(counts: Any, samples: Any) -> tuple[Any, Any]:
    """Probabilities, lowered and raised by ``_CAUTION`` standard deviations of a count."""
    half = _CAUTION**2 / 2
    reach = _CAUTION * np.sqrt(counts + half / 2)
    low = np.maximum(counts + half - reach, 0.0)
    return low / samples, (counts + half + reach) / samples


LEAST_EXPECTED = 100  # a pooled cell's expected count


@dataclass(frozen=True)
class LabelCounts:
    """Pearson's chi-square statistic of one label against its certified probabilities."""

    label: Any
    samples: int
    chi_square: float
    degrees_of_freedom: int
    p_value: float


@dataclass(frozen=True)
class Difference:
    """A set of cells with a wrong probability.

    Attributes:
        label: index of the label.
        cells: [cells] which belong to the set.
        at_least: lower bound of its probability.
        expected: the most that the probability should be.
    """

    label: int
    cells: NDArray[np.bool_]
    at_least: float
    expected: float


def chi_square(label: Any, counts: NDArray[np.int64], probabilities: Floats) -> LabelCounts:
    """Pearson's statistic of a label against its certified probabilities [cells].

    Neighbouring cells are pooled until each is expected 100 times.
    """
    samples = int(counts.sum())
    expected = probabilities * samples
    pools = _pooled(expected)
    size = int(pools[-1]) + 1
    seen = np.bincount(pools, weights=counts, minlength=size)
    wanted = np.bincount(pools, weights=expected, minlength=size)
    used = wanted > 0
    statistic = float(((seen[used] - wanted[used]) ** 2 / wanted[used]).sum())
    degrees = int(used.sum()) - 1
    p_value = float(chdtrc(degrees, statistic)) if degrees > 0 else 1.0
    return LabelCounts(label, samples, statistic, degrees, p_value)


def unlike_expected(
    chosen_on: Tally, tested_on: Tally, probabilities: Floats, error: float
) -> list[Difference]:
    """Labels whose outputs provably differ from their certified probabilities [labels, cells]."""
    labels = np.flatnonzero(tested_on.samples).tolist()
    differences = []
    for y in labels:
        cells = _excess(chosen_on.counts[y], probabilities[y] * chosen_on.samples[y])
        at_least = lower_bound(*tested_on.seen(y, cells), error / len(labels))
        claimed = float(probabilities[y][cells].sum())
        differences.append(Difference(y, cells, float(at_least), claimed))
    return [each for each in differences if each.at_least > each.expected]


def unlike_each_other(
    chosen_on: tuple[Tally, Tally], tested_on: tuple[Tally, Tally], error: float
) -> list[Difference]:
    """Labels whose outputs provably have other probabilities in the first kind of call."""
    one, both = chosen_on[0], chosen_on[0] + chosen_on[1]
    labels = np.flatnonzero((tested_on[0].samples > 0) & (tested_on[1].samples > 0)).tolist()
    differences = []
    for y in labels:
        share = one.samples[y] / max(both.samples[y], 1)
        cells = _excess(one.counts[y], both.counts[y] * share)
        each, (seen, other) = error / (2 * len(labels)), (t.seen(y, cells) for t in tested_on)
        low, high = float(lower_bound(*seen, each)), float(upper_bound(*other, each))
        differences.append(Difference(y, cells, low, high))
    return [each for each in differences if each.at_least > each.expected]


def _pooled(expected: Floats) -> NDArray[np.int64]:
    """[cells] non-decreasing pool of each cell; each pool has a large enough expected count."""
    pools = np.empty(len(expected), np.int64)
    pool, mass, left = 0, 0.0, float(expected.sum())
    for cell, count in enumerate(expected):
        pools[cell] = pool
        mass, left = mass + count, left - count
        if mass >= LEAST_EXPECTED and left >= LEAST_EXPECTED:
            pool, mass = pool + 1, 0.0
    return pools


def _excess(counts: NDArray[np.int64], expected: Floats) -> NDArray[np.bool_]:
    """The set of cells whose surplus is largest in standard deviations of its expected count."""
    surplus = counts - expected
    order = np.argsort(-surplus / np.sqrt(np.maximum(expected, 0.5)), kind="stable")
    totals = surplus[order].cumsum() / np.sqrt(np.maximum(expected[order].cumsum(), 0.5))
    cells = np.zeros(len(surplus), dtype=bool)
    cells[order[: int(totals.argmax()) + 1]] = True
    return cells


_DISTANCES = 3  # that are tested


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
