"""Proportions as whole counts with a given sum, and whole weights of the blocks of additive noise.

A non-increasing sequence is rounded with the small counts up and the largest ones down. Then the
ratio of a large count to a small one never exceeds that of the ideal numbers. Privacy needs exactly
this, so no smaller ε is needed to make room for rounding.

Weights of blocks are geometric, with folded tails. From zero outwards, every block has at least 1/r
of the weight of the one before it, and the folded tail has at least 1/(r − 1) of the last block's.
So shifting the noise by one period changes no probability, and no sum over a tail, by a factor of
more than r (Theorem 6 in docs/privacy.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

_TRIES = 64


def rounded_shape(magnitudes: Sequence[int], total: int) -> list[int]:
    """[n] non-increasing counts ≥ 1 with the sum ``total``, in proportion to the magnitudes.

    ``magnitudes`` [n] are positive and non-increasing. With x = total·magnitude/Σ magnitudes, the
    largest count is at most the largest x, and every count that is below the largest is at least
    its x, unless all counts are equal to within 1. No count is further than n from its x. Raises
    ValueError if n > total.
    """
    n, whole = len(magnitudes), sum(magnitudes)
    if n > total:
        raise ValueError(f"{n:,} points do not fit {total:,} words")
    counts = [-(-total * magnitude // whole) for magnitude in magnitudes]
    # Rounding up has used fewer than n words too many. The largest counts give them back, by being
    # lowered to one level.
    excess = sum(counts) - total
    lowered, their_sum = 1, counts[0]
    while lowered < n and their_sum - lowered * counts[lowered] < excess:
        their_sum += counts[lowered]
        lowered += 1
    level, left = divmod(their_sum - excess, lowered)
    counts[:lowered] = [level] * lowered
    # The remainder goes to the next counts, up to the level.
    for j in range(lowered, n):
        if not left:
            break
        added = min(left, level - counts[j])
        counts[j] += added
        left -= added
    for j in range(left):  # all are equal
        counts[j] += 1
    return counts


def whole_counts(proportions: Sequence[int], total: int) -> list[int]:
    """[m] integers ≥ 1 that sum to ``total``, as near to the proportions as whole numbers can be.

    Every item gets 1, and the rest is divided in proportion. What rounding leaves goes to the
    largest remainders, in order if they are equal. ``proportions`` [m] are integers ≥ 0, not all 0.
    Raises ValueError if total < m.
    """
    m, whole = len(proportions), sum(proportions)
    if total < m:
        raise ValueError(f"{m} outputs do not fit {total} words")
    shares = [divmod((total - m) * p, whole) for p in proportions]
    counts = [share + 1 for share, _ in shares]
    left = total - sum(counts)
    for i in sorted(range(m), key=lambda i: -shares[i][1])[:left]:
        counts[i] += 1
    return counts


@dataclass(frozen=True)
class BelowZero:
    """The weight of block −1 relative to block 0: the ideal one, and the limits for privacy."""

    ideal: Fraction
    least: Fraction
    most: Fraction

    def weight(self, first: int) -> int:
        """The allowed weight nearest to the ideal one; if there is none, one that is too small."""
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
        raise ValueError("no integer weights around zero keep the ratio")  # or hardly any
    first = _largest_first(ratio, reach, below_zero, total, math.floor(about))
    # Whole numbers may leave no allowed weight for block −1. Slightly less in block 0 often helps.
    for candidate in range(first, max(first - _TRIES, 0), -1):
        below = below_zero.weight(candidate)
        if below >= 1 and below_zero.allows(candidate, below):
            weights = _weights(ratio, reach, candidate, below)
            left = total - sum(weights)
            weights[0] += left // 2
            weights[-1] += left - left // 2
            return weights
    raise ValueError("no integer weights around zero keep the ratio")


def _largest_first(
    ratio: Fraction, reach: int, below_zero: BelowZero, total: int, about: int
) -> int:
    """The largest weight of block 0 with which all weights together do not exceed ``total``."""

    def missing(first: int) -> int:
        below = max(below_zero.weight(first), 1)
        return sum(_weights(ratio, reach, first, below)) - total

    # Rounding up adds a part of a word to many blocks; one word of block 0 changes total/about.
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
