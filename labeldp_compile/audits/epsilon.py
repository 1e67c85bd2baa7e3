"""A lower bound on ε from counts: Pr[S | y] ≥ e^ε·Pr[S | y'] for the best pair and set found.

Some draws are used to search for events, and other, unused draws to bound them. So only the few
bounds of the last step need a share of the error. No set has a larger ratio than its best single
output, but the probability of a union of outputs is known more precisely.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from labeldp_compile.audits.sampling import Tally

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
    found: list[Event] = []
    labels: set[int] = set()
    for score, label, other, cells in sorted(scored, key=lambda proposal: -proposal[0]):
        pair = {label, other}
        if len(labels | pair) > most_labels:
            continue
        labels |= pair
        found.append(Event(int(drawn[label]), int(drawn[other]), cells, score))
        if len(found) == most_events:
            break
    return found


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
    found = [(int(best[c]), int(worst[c]), _cells_of(c, M)) for c in order[:_PROPOSALS]]
    return found or [(0, 1, np.ones(M, dtype=bool))]


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
