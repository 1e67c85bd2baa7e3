"""Noisy sums of bounded losses, in whole numbers: the mechanism of ``labeldp evaluate --release``.

A loss of a row is a whole number of units from 0 to ``UNITS``, which stands for its bound. The
floats that compute a loss from a prediction and a label decide nothing: the sums that are released
add up these whole numbers, and the sensitivity is computed from the same ones. Each sum gets
discrete Laplace noise of scale Δ/ε (Theorem 19).
"""

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.prior.discrete_laplace import discrete_laplace

Whole = NDArray[np.int64]
UNITS = 1 << 20
"""Of a bound: losses are rounded to this fraction of it."""
MOST_STEPS = 1 << 14
"""Of a row's sensitivity: pairs of labels, or signs of losses, whichever are fewer."""

_CHANCE = 0.05 * (1 - 1e-9)  # rounding of float64 does not make an interval too short


@dataclass(frozen=True)
class BoundedLoss:
    """A loss of a row between 0 and its bound.

    Attributes:
        bound: from the labels [k] and the least probability.
        shares: from labels, predictions [c] or [c, k] and the least probability to [c, k]: the loss
            under each label, over the bound.
        of_numbers: whether labels are numbers; otherwise they are the places of classes.
    """

    bound: Callable[[NDArray[Any], float], float]
    shares: Callable[[NDArray[Any], NDArray[Any], float], NDArray[np.float64]]
    of_numbers: bool

    def units(self, labels: NDArray[Any], predicted: NDArray[Any], least: float) -> Whole:
        """[c, k] whole numbers from 0 to ``UNITS``."""
        shares = self.shares(labels, predicted, least)
        return np.rint(shares * UNITS).clip(0, UNITS).astype(np.int64)


def _span(labels: NDArray[Any], least: float) -> float:
    return float(labels[-1] - labels[0]) or 1.0


def _away(labels: NDArray[Any], predicted: NDArray[Any], least: float) -> NDArray[np.float64]:
    inside = predicted.clip(labels[0], labels[-1])
    return np.asarray(np.abs(inside[:, None] - labels) / _span(labels, least))


def _chosen(labels: NDArray[Any], predicted: NDArray[Any], least: float) -> NDArray[np.float64]:
    chosen = predicted if predicted.ndim == 1 else predicted.argmax(axis=1)
    return np.asarray(chosen[:, None] == np.arange(len(labels)), np.float64)


def _logs(labels: NDArray[Any], predicted: NDArray[Any], least: float) -> NDArray[np.float64]:
    return np.asarray(np.log(predicted.clip(least, 1)) / math.log(least))


BOUNDED: dict[str, BoundedLoss] = {
    "squared error": BoundedLoss(
        lambda labels, least: _span(labels, least) ** 2,
        lambda labels, predicted, least: _away(labels, predicted, least) ** 2,
        of_numbers=True,
    ),
    "absolute error": BoundedLoss(_span, _away, of_numbers=True),
    "log loss": BoundedLoss(lambda labels, least: -math.log(least), _logs, of_numbers=False),
    "accuracy": BoundedLoss(lambda labels, least: 1.0, _chosen, of_numbers=False),
}


def steps(sums: int, labels: int) -> int:
    """How often ``changes`` looks at a row, for this number of sums and of labels."""
    return min(labels * (labels - 1) // 2, 1 << (sums - 1))


def changes(units: Whole) -> Whole:
    """[c] by how much another label changes a row's losses, summed over all losses, at most.

    ``units`` [c, j, k] are j losses under each of k labels. The result is the largest L1 distance
    of two columns. It is found among all pairs of labels; or, as |v|₁ is the largest s·v for signs
    s, among all signs of the losses.
    """
    _, sums, labels = units.shape
    found = np.zeros(len(units), np.int64)
    if labels * (labels - 1) // 2 <= 1 << (sums - 1):
        for one, other in itertools.combinations(range(labels), 2):
            apart = np.abs(units[:, :, one] - units[:, :, other]).sum(axis=1)
            np.maximum(found, apart, out=found)
        return found
    for signs in itertools.product((1, -1), repeat=sums - 1):
        line = np.einsum("j,cjk->ck", np.array([1, *signs]), units)
        np.maximum(found, line.max(axis=1) - line.min(axis=1), out=found)
    return found


def sums_and_changes(
    losses: Sequence[Callable[[slice], Whole]], labels: Whole, rows: int
) -> tuple[Whole, Whole]:
    """[j] the sums of all losses under the true labels [n], and [n] ``changes``.

    Each of ``losses`` gives [c, k] for a slice of the rows; ``rows`` are handled at a time. Both
    results come from the same whole numbers.
    """
    sums, found = np.zeros(len(losses), np.int64), np.zeros(len(labels), np.int64)
    for start in range(0, len(labels), rows):
        part = slice(start, start + rows)
        units = np.stack([loss(part) for loss in losses], axis=1)
        own = labels[part]
        sums += units[np.arange(len(own)), :, own].sum(axis=0)
        found[part] = changes(units)
    return sums, found


def noisy_sums(
    losses: Sequence[Callable[[slice], Whole]],
    labels: Whole,
    persons: Whole | None,
    epsilon: Fraction,
    rows: int = 1 << 22,
) -> dict[str, Any]:
    """``{rows, sums, sensitivity}`` for true labels [n].

    ``losses`` are as of ``sums_and_changes``, and ``persons`` [n] numbers of persons.
    """
    sums, changed = sums_and_changes(losses, labels, rows)
    if persons is not None:
        of_rows, changed = changed, np.zeros(int(persons.max()) + 1, np.int64)
        np.add.at(changed, persons, of_rows)
    sensitivity = max(int(changed.max()), 1)
    noise = discrete_laplace(len(losses), sensitivity / epsilon)
    noisy = [one + other for one, other in zip(sums.tolist(), noise, strict=True)]
    return {"rows": len(labels), "sums": noisy, "sensitivity": sensitivity}


def noise_margin(scale: Fraction, terms: int) -> int:
    """The least t ≥ 0 that the noise exceeds, on either side, with a probability of at most 5%.

    ``terms`` is 1, or 2 for the difference of two independent numbers of this scale.
    """
    high = 1
    while chance_beyond(high, scale, terms) > _CHANCE:
        high *= 2
    return bisect_left(range(high), -_CHANCE, key=lambda t: -chance_beyond(t, scale, terms))


def chance_beyond(t: int, scale: Fraction, terms: int) -> float:
    """Pr[|X| > t] for a whole t ≥ 0, in float64.

    X has P(x) = (1 − q)/(1 + q)·q^|x| with q = e^(−1/scale). The difference of two has
    P(d) = ((1 − q)/(1 + q))²·q^|d|·(|d| + c) with c = (1 + q²)/(1 − q²). Both are summed over
    d ≥ T = t + 1, and doubled.
    """
    step = float(1 / scale)
    q, rest = math.exp(-step), -math.expm1(-step)  # rest is 1 − q
    beyond = t + 1
    tail = math.exp(-step * beyond)
    if terms == 1:
        return 2 * tail / (1 + q)
    c = (1 + q * q) / (rest * (1 + q))
    return 2 * tail * ((beyond + c) * rest + q) / (1 + q) ** 2
