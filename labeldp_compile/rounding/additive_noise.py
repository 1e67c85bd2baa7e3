"""Additive noise in whole counts: proportions with a given sum, weights of blocks, randomizers.

A non-increasing sequence is rounded with the small counts up and the largest ones down. Then the
ratio of a large count to a small one never exceeds that of the ideal numbers. Privacy needs exactly
this, so no smaller ε is needed to make room for rounding.

Weights of blocks are geometric, with folded tails. From zero outwards, a block's weight is at least
1/r times that of the block before, and the folded tail's at least 1/(r − 1) times the last block's.
So shifting the noise by one period changes no probability, and no sum over a tail, by a factor of
more than r (Theorem 6 in docs/privacy.md).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, repeat

from labeldp_verify.analysis import analyse, exp_lower, exp_upper
from labeldp_verify.forms import ADDITIVE_WORD_BITS as WORD_BITS
from labeldp_verify.forms import AdditiveRandomizer, check_additive

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


# From the ideal noise inside one period to an additive randomizer in whole counts.
#
# The ideal noise h(0) ≥ h(1) ≥ … ≥ h(D) is given as fixed-point numbers. Both noises are symmetric
# and fall by e^ε per period: Pr[n] ∝ e^(−ε·j)·h(m) for |n| = j·D + m, with h(0) = 1 and h(D) =
# e^−ε. The numbers are rounded so that h(0)/h(D) never exceeds e^ε.
#
# Inside a period, the counts follow h and are rounded so that no ratio grows. From block to block
# they fall by at most r ≤ e^ε (``block_weights``). This implies privacy (Theorem 6 in
# docs/privacy.md), which is also computed again from the integers.


FIXED_POINT_BITS = 128
_ONE = 1 << FIXED_POINT_BITS
Magnitudes = Callable[[Fraction], list[int]]  # from ε to h(0) ≥ … ≥ h(D), positive
MAX_BLOCKS = 1 << 17
MAX_REACH = MAX_BLOCKS // 2 - 1
_FOLDED_BITS = 30  # the folded tails of unclipped noise hold at most 2^-30


def ratio_below(epsilon: Fraction) -> Fraction:
    """A rational at most e^ε whose denominator is 2^128, within 2^-128 of it; ε > 0 exact."""
    return Fraction(math.floor(exp_lower(epsilon) * _ONE), _ONE)


def laplace_magnitudes(epsilon: Fraction, period: int) -> list[int]:
    """[D + 1] 2^128·e^(−ε·m/D), to within D units.

    Definition 17 of the optimal unbiased randomizers paper (2023) with Δ = D. On a fine lattice it
    approximates the continuous Laplace distribution of Definition 18.
    """
    least = _least(epsilon)
    factor = math.floor(_ONE / exp_upper(epsilon / period))
    falling = accumulate(
        repeat(factor, period - 1), lambda h, f: h * f >> FIXED_POINT_BITS, initial=_ONE
    )
    return [*(max(h, least) for h in falling), least]


def staircase_magnitudes(epsilon: Fraction, period: int, width: int) -> list[int]:
    """[D + 1] 2^128 on the first ``width`` points, and 2^128·e^−ε after them; 1 ≤ width ≤ D.

    Definition 19 of the optimal unbiased randomizers paper (2023) with r = width and Δ = D. On a
    fine lattice it approximates Definition 20 with γ = width/D.
    """
    return [_ONE] * width + [_least(epsilon)] * (period + 1 - width)


def _least(epsilon: Fraction) -> int:
    return math.ceil(_ONE / ratio_below(epsilon))


@dataclass(frozen=True)
class LabelLattice:
    """The place of each label: label y is at y·spacing, with the value y·spacing·unit + origin."""

    labels: int
    spacing: int
    origin: float
    unit: float

    @property
    def period(self) -> int:
        """D, the lattice steps from the lowest label to the highest."""
        return (self.labels - 1) * self.spacing


def additive_noise(
    magnitudes: Magnitudes,
    lattice: LabelLattice,
    epsilon: Fraction,
    clip: bool,
    word_bits: int | None = None,
) -> AdditiveRandomizer:
    """The ε-DP additive randomizer whose noise falls like h inside a period and by e^ε per period.

    ``magnitudes`` gives [D + 1] fixed-point numbers with h(0)/h(D) ≤ e^ε for any ε. With ``clip``,
    outputs are clamped to the range of the labels. Otherwise they reach so far that clamping is as
    rare as the words allow. Raises ValueError if ε is too small for that, or if the words are too
    short for the noise.
    """
    bits = WORD_BITS if word_bits is None else word_bits
    reach = 1 if clip else _reach(epsilon, bits)
    for slack in _slacks():
        try:
            randomizer = _rounded(magnitudes(epsilon * (1 - slack)), lattice, epsilon, reach, bits)
        except ValueError:
            continue
        check_additive(randomizer)
        if analyse(randomizer).worst_ratio() <= ratio_below(epsilon):
            return randomizer
    raise ValueError(
        f"words of {bits} bits are too short for noise at ε = {float(epsilon):g} "
        f"on {lattice.period:,} lattice steps"
    )


def require_reachable(epsilon: Fraction) -> None:
    """Raise ValueError if ε is so small that unclipped noise would reach beyond all blocks."""
    least = _FOLDED_BITS * math.log(2) / MAX_REACH
    if epsilon < Fraction(least):
        raise ValueError(
            f"unclipped noise at ε = {float(epsilon):g} reaches too far; use ε ≥ {least:.2g} or "
            "clip: true"
        )


def _reach(epsilon: Fraction, bits: int) -> int:
    """J: periods beyond which the noise is as rare as a few words; at least 2."""
    require_reachable(epsilon)
    wanted = math.ceil((bits - 4) * math.log(2) / float(epsilon))
    return min(max(wanted, 2), MAX_REACH)


def _slacks() -> Iterator[Fraction]:
    """Shares of ε to leave out inside a period, smallest first.

    Around zero, the staircase reaches e^ε in both directions, and whole weights may just exceed it.
    A tiny slack makes room. Only short words need more.
    """
    yield Fraction(0)
    yield from (Fraction(1, 1 << e) for e in range(60, 0, -3))
    yield Fraction(1, 2)


def _rounded(
    h: list[int], lattice: LabelLattice, epsilon: Fraction, reach: int, bits: int
) -> AdditiveRandomizer:
    from_zero = rounded_shape(h[:-1], 1 << bits)
    below = rounded_shape(h[1:], 1 << bits)[::-1]
    ratio = ratio_below(epsilon)
    # Shapes fall with the distance from zero, so these two ratios are the largest (Theorem 6).
    below_zero = BelowZero(
        ideal=Fraction(sum(h[1:]), sum(h[:-1])),
        least=Fraction(from_zero[0], below[0]) / ratio,
        most=Fraction(from_zero[-1], below[-1]) * ratio,
    )
    blocks = block_weights(ratio, reach, below_zero, 1 << bits)
    return AdditiveRandomizer(
        word_bits=bits,
        labels=lattice.labels,
        spacing=lattice.spacing,
        blocks=tuple(blocks),
        shapes=(tuple(below), tuple(from_zero)),
        low=lattice.period * (1 - reach),
        high=lattice.period * reach,
        origin=lattice.origin,
        unit=lattice.unit,
    )
