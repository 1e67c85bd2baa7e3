"""Do outputs follow the certified table, and do they depend on their own label only?

There are two tests per label. The first is Pearson's chi-square with small cells pooled. Its
p-value is asymptotic, so it decides only far below its share of the error. The second is exact: one
half of the draws chooses the set of outputs that occurred too often, and the other half counts that
set. The Clopper–Pearson bound of its probability is compared with the certified probability.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from labeldp_compile.audits.epsilon import lower_bound, upper_bound
from labeldp_compile.audits.report import LabelCounts
from labeldp_compile.audits.sampling import Tally

Floats = NDArray[np.float64]
LEAST_EXPECTED = 100  # a pooled cell's expected count


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
    found = []
    for y in labels:
        cells = _excess(chosen_on.counts[y], probabilities[y] * chosen_on.samples[y])
        at_least = lower_bound(*tested_on.seen(y, cells), error / len(labels))
        claimed = float(probabilities[y][cells].sum())
        found.append(Difference(y, cells, float(at_least), claimed))
    return [each for each in found if each.at_least > each.expected]


def unlike_each_other(
    chosen_on: tuple[Tally, Tally], tested_on: tuple[Tally, Tally], error: float
) -> list[Difference]:
    """Labels whose outputs provably have other probabilities in the first kind of call."""
    one, both = chosen_on[0], chosen_on[0] + chosen_on[1]
    labels = np.flatnonzero((tested_on[0].samples > 0) & (tested_on[1].samples > 0)).tolist()
    found = []
    for y in labels:
        share = one.samples[y] / max(both.samples[y], 1)
        cells = _excess(one.counts[y], both.counts[y] * share)
        each, (seen, other) = error / (2 * len(labels)), (t.seen(y, cells) for t in tested_on)
        low, high = float(lower_bound(*seen, each)), float(upper_bound(*other, each))
        found.append(Difference(y, cells, low, high))
    return [each for each in found if each.at_least > each.expected]


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
