"""Exact bias, variance and noisy label loss of a randomizer of any form."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from labeldp_compile.randomizer import (
    AdditiveRandomizer,
    Randomizer,
    TableRandomizer,
)
from labeldp_compile.randomizer.additive_utility import additive_loss, additive_moments
from labeldp_compile.randomizer.loss import Labels, Loss, LossOfLabel, Moments
from labeldp_compile.randomizer.strays import Strays, mixed
from labeldp_compile.randomizer.table_utility import table_loss, table_moments
from labeldp_compile.randomizer.window_utility import window_loss, window_moments


def biases(
    randomizer: Randomizer, labels: Sequence[Fraction], strays: Strays | None = None
) -> list[Fraction]:
    """[k] E[output | y] − y, exact; a label reaches its own row, except for ``strays``."""
    mean, _ = _moments(randomizer)
    return [mixed(strays or {}, i, mean) - y for i, y in enumerate(labels)]


def variances(randomizer: Randomizer) -> list[Fraction]:
    """[k] Var[output | y], exact; for outputs that are numbers."""
    mean, square = _moments(randomizer)
    return [square(i) - mean(i) ** 2 for i in range(number_of_labels(randomizer))]


def noisy_label_loss(
    randomizer: Randomizer,
    labels: Labels,
    weights: Sequence[int],
    loss: Loss,
    strays: Strays | None = None,
) -> tuple[Fraction, Fraction]:
    """Bounds of E ℓ(ŷ, y) with y drawn in proportion to ``weights`` [k] (integers ≥ 0).

    ``squared`` is ½(ŷ − y)², ``absolute`` |ŷ − y|, ``poisson`` ŷ − y·ln ŷ (whose logarithms make
    the two bounds differ, by less than 2^-200 of the terms), ``zero_one`` 1[ŷ ≠ y] and the only one
    for categories. A label reaches its own row, except for ``strays``. Definition 4 of the optimal
    unbiased randomizers paper (2023).
    """
    own = _loss(randomizer, labels, loss)
    low = high = Fraction(0)
    for i, weight in enumerate(weights):
        if weight:
            lo, hi = own(i)
            low, high = low + weight * lo, high + weight * hi
    for step in (-1, 1):  # what changes where a label takes the row of a neighbour
        astray = {i: p for i, (row, p) in (strays or {}).items() if row == i + step and weights[i]}
        if astray:
            seen = [labels[min(max(row - step, 0), len(labels) - 1)] for row in range(len(labels))]
            other = _loss(randomizer, seen, loss)
            for i, share in astray.items():
                (lo, hi), (own_lo, own_hi) = other(i + step), own(i)
                low += weights[i] * share * (lo - own_lo)
                high += weights[i] * share * (hi - own_hi)
    total = sum(weights)
    return low / total, high / total


def number_of_labels(randomizer: Randomizer) -> int:
    """k."""
    if isinstance(randomizer, AdditiveRandomizer):
        return randomizer.labels
    rows = randomizer.counts if isinstance(randomizer, TableRandomizer) else randomizer.offsets
    return len(rows)


def _loss(randomizer: Randomizer, labels: Labels, loss: Loss) -> LossOfLabel:
    if isinstance(randomizer, AdditiveRandomizer):
        return additive_loss(randomizer, labels, loss)
    if isinstance(randomizer, TableRandomizer):
        return table_loss(randomizer, labels, loss)
    return window_loss(randomizer, labels, loss)


def _moments(randomizer: Randomizer) -> Moments:
    if isinstance(randomizer, AdditiveRandomizer):
        return additive_moments(randomizer)
    if isinstance(randomizer, TableRandomizer):
        return table_moments(randomizer)
    return window_moments(randomizer)
