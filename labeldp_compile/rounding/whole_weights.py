"""Whole weights of the blocks of an additive randomizer: geometric, with folded tails.

From zero outwards every block has at least 1/r of the weight of the one before it, and the folded
tail at least 1/(r − 1) of the last block's; so shifting the noise by one period changes no
probability, and no sum over a tail, by a factor of more than r (Theorem 6 in docs/privacy.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

_TRIES = 64


@dataclass(frozen=True)
class BelowZero:
    """The weight of block −1 relative to block 0: what it should be, and what privacy allows."""

    ideal: Fraction
    least: Fraction
    most: Fraction

    def weight(self, first: int) -> int:
        """The allowed weight that is nearest to the ideal one if there is any; else too small."""
        nearest = max(round(first * self.ideal), math.ceil(first * self.least))
        return min(nearest, math.floor(first * self.most))

    def allows(self, first: int, below: int) -> bool:
        """Whether ``below`` may be the weight of block −1 when ``first`` is that of block 0."""
        return first * self.least <= below <= first * self.most


def block_weights(ratio: Fraction, reach: int, below_zero: BelowZero, total: int) -> list[int]:
    """[2·J + 2] weights ≥ 1 of the blocks −J − 1 … J with the sum ``total``; J = ``reach`` ≥ 1.

    ``ratio`` is r > 1. Raises ValueError if no such weights were found.
    """
    about = total * (1 - 1 / ratio) / (1 + below_zero.ideal)  # weight of block 0 if not rounded
    if about * (below_zero.most - below_zero.least) < Fraction(1, _TRIES):
        raise ValueError("no whole weights around zero are private")  # or hardly any
    first = _largest_first(ratio, reach, below_zero, total, math.floor(about))
    # Whole numbers may leave no allowed weight for block −1; a little less in block 0 often does.
    for candidate in range(first, max(first - _TRIES, 0), -1):
        below = below_zero.weight(candidate)
        if below >= 1 and below_zero.allows(candidate, below):
            weights = _weights(ratio, reach, candidate, below)
            left = total - sum(weights)
            weights[0] += left // 2
            weights[-1] += left - left // 2
            return weights
    raise ValueError("no whole weights around zero are private")


def _largest_first(
    ratio: Fraction, reach: int, below_zero: BelowZero, total: int, about: int
) -> int:
    """The largest weight of block 0 with which all weights together do not exceed ``total``."""

    def missing(first: int) -> int:
        below = max(below_zero.weight(first), 1)
        return sum(_weights(ratio, reach, first, below)) - total

    # Rounding up costs many blocks a part of a word each; one word of block 0 is worth total/about.
    about = max(about, 1)
    guess = max(about - max(missing(about), 0) * about // total, 1)
    step, fitting = 1, guess
    while missing(fitting) > 0:
        if fitting == 1:
            raise ValueError(f"{2 * reach + 2:,} blocks do not fit {total:,} words")
        fitting, step = max(fitting - step, 1), 2 * step
    step = 1
    while missing(fitting + step) <= 0:
        fitting, step = fitting + step, 2 * step
    too_large = fitting + step
    while too_large - fitting > 1:
        middle = (fitting + too_large) // 2
        fitting, too_large = (fitting, middle) if missing(middle) > 0 else (middle, too_large)
    return fitting


def _weights(ratio: Fraction, reach: int, first: int, below: int) -> list[int]:
    return [*reversed(_outwards(ratio, reach, below)), *_outwards(ratio, reach, first)]


def _outwards(ratio: Fraction, reach: int, weight: int) -> list[int]:
    """[J + 1] the weights from the block next to zero to the folded tail."""
    p, q = ratio.numerator, ratio.denominator
    weights = [weight]
    for _ in range(reach - 1):
        weight = -(-weight * q // p)
        weights.append(weight)
    return [*weights, -(-weight * q // (p - q))]
