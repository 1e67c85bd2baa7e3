"""From the ideal noise inside one period to an additive randomizer in whole counts.

The ideal noise h(0) ≥ h(1) ≥ … ≥ h(D) is given as fixed-point numbers. Both noises are symmetric
and fall by e^ε per period: Pr[n] ∝ e^(−ε·j)·h(m) for |n| = j·D + m, with h(0) = 1 and h(D) = e^−ε.
The numbers are rounded so that h(0)/h(D) never exceeds e^ε.

Inside a period, the counts follow h and are rounded so that no ratio grows. From block to block
they fall by at most r ≤ e^ε (``whole_counts.py``). This implies privacy (Theorem 6 in
docs/privacy.md), which is also computed again from the integers.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, repeat

from labeldp_verify.analysis import analyse, exp_lower, exp_upper
from labeldp_verify.forms import ADDITIVE_WORD_BITS as WORD_BITS
from labeldp_verify.forms import AdditiveRandomizer, check_additive

from labeldp_compile.rounding.whole_counts import BelowZero, block_weights, rounded_shape

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
