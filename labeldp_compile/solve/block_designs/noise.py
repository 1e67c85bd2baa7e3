"""The noise of a private set of classes: what the choice between designs goes by.

A label draws block Z with probability proportional to E if its class c is in Z, and to 1 otherwise.
If every class is in r of the b blocks and every pair of classes in λ, the weights of each label add
up to D = r·E + b − r. Its own class is in the drawn block with probability p = r·E/D, any other
class with q = (λ·E + r − λ)/D, so that (1[c ∈ Z] − q)/(p − q) is an unbiased one-hot label. The
variances of its k parts add up to V = (p(1 − p) + (k − 1)·q(1 − q))/(p − q)², the noise.

Ye and Barg (2018) have this with all blocks of one size.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def noise(classes: int, blocks: int, replication: int, pairs: int, ratio: Fraction) -> Fraction:
    """The noise V of a design with b ``blocks``, exactly.

    ``ratio`` is E > 1. Raises ValueError if there is no such design, or if its blocks tell nothing.
    """
    _check(classes, ratio)
    if not 0 <= pairs < replication <= blocks:
        raise ValueError("a design has b blocks, r of them with a class, λ < r ≤ b with a pair")
    n, m = ratio.numerator, ratio.denominator
    weight = replication * n + (blocks - replication) * m  # D·m
    own = replication * n  # p·D·m
    other = pairs * n + (replication - pairs) * m  # q·D·m
    variances = own * (weight - own) + (classes - 1) * other * (weight - other)
    return Fraction(variances, (own - other) ** 2)


def half(classes: int) -> range:
    """The sizes 1 … ⌊k/2⌋ of blocks that are worth trying."""
    return range(1, classes // 2 + 1)


def relative(
    classes: int, blocks: Floats, replication: Floats, pairs: Floats, ratio: Fraction
) -> Floats:
    """[n] the noise of n designs times (1 − 1/E)², in floats, to 12 digits.

    All terms but r − λ and b − r are sums of numbers that are not negative, and those are
    differences of integers, so nothing cancels.

    The product of the last two factors is what becomes larger by taking complements, by
    (r − λ)(b − 2r)(E² − 1) in its numerator: a design with 2r ≤ b never gains by it.
    """
    w = float(1 / ratio)
    apart = replication - pairs  # blocks with the one of two classes and not with the other
    neither = blocks - 2 * replication + pairs
    own = replication * (blocks - replication) * w
    other = (pairs + apart * w) * (apart + neither * w)
    return np.asarray((own + (classes - 1) * other) / apart**2)


def _check(classes: int, ratio: Fraction) -> None:
    if classes < 2 or ratio <= 1:
        raise ValueError("a private set needs two or more classes, and a ratio above 1")
