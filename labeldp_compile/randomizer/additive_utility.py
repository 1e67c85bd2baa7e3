"""Exact moments and exact losses of an additive randomizer.

They are those of the lattice values t·unit + origin as exact numbers; how far the float64 output
may lie from them is in ``output_rounding``. Only the 0-1 loss, which rounding could turn over, is
that of the float64 outputs. Everything is whole numbers over 2^(2B) times a common
denominator of ``unit`` and ``origin``; a label costs a few products.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from labeldp_compile.randomizer.additive import AdditiveRandomizer
from labeldp_compile.randomizer.loss import Bounds, Labels, Loss, LossOfLabel, Moments
from labeldp_compile.randomizer.noise_sums import NoiseSums


def additive_moments(randomizer: AdditiveRandomizer) -> Moments:
    """E[ŷ | y] and E[ŷ² | y] by the index of y."""
    outputs = _Outputs(randomizer)
    scale, parts = outputs.scale, outputs.parts
    return (
        lambda i: Fraction(outputs.moments(i)[0], scale * parts),
        lambda i: Fraction(outputs.moments(i)[1], scale * parts * parts),
    )


def additive_loss(randomizer: AdditiveRandomizer, labels: Labels, loss: Loss) -> LossOfLabel:
    """Bounds of E[ℓ(ŷ, y) | y] by the index of y; the two are equal.

    Raises ValueError for the Poisson loss, which outputs below zero do not have.
    """
    if loss not in _LOSSES:
        raise ValueError(f"the {loss} loss needs positive outputs, to which noise does not keep")
    outputs, of_label = _Outputs(randomizer), _LOSSES[loss]

    def expectation(i: int) -> Bounds:
        result = of_label(outputs, i, labels[i])
        return result, result

    return expectation


class _Outputs:
    """Sums over the outputs of a label, weighted with 2^(2B)·Pr.

    An output's value is (t·unit + origin)/parts with the integers ``unit``, ``origin``, ``parts``.
    """

    def __init__(self, randomizer: AdditiveRandomizer) -> None:
        r = self.randomizer = randomizer
        self.noise, self.scale = NoiseSums(r), r.words**2
        unit, origin = Fraction(r.unit), Fraction(r.origin)
        self.parts = math.lcm(unit.denominator, origin.denominator)
        self.unit, self.origin = int(unit * self.parts), int(origin * self.parts)

    def moments(self, i: int) -> tuple[int, int]:
        """Σ parts·ŷ and Σ (parts·ŷ)² of label i."""
        r, p = self.randomizer, i * self.randomizer.spacing
        low, first_low, second_low = self.noise.below(r.low - p)
        up_to, first_up, second_up = self.noise.below(r.high - p)
        inside, first, second = up_to - low, first_up - first_low, second_up - second_low
        above = self.scale - up_to
        points = r.low * low + p * inside + first + r.high * above
        squares = r.low**2 * low + p * (p * inside + 2 * first) + second + r.high**2 * above
        u, o = self.unit, self.origin
        return u * points + o * self.scale, u * (u * squares + 2 * o * points) + o * o * self.scale

    def below(self, i: int, turn: int) -> tuple[int, int]:
        """Σ 1 and Σ parts·ŷ over the outputs of label i at lattice points below ``turn``."""
        r, p = self.randomizer, i * self.randomizer.spacing
        if turn <= r.low:
            return 0, 0
        if turn > r.high:
            return self.scale, self.moments(i)[0]
        low, first_low, _ = self.noise.below(r.low - p)
        count, first, _ = self.noise.below(turn - p)
        points = r.low * low + p * (count - low) + first - first_low
        return count, self.unit * points + self.origin * count

    def point_of(self, value: Fraction) -> Fraction:
        """Where a value stands on the lattice."""
        return (value * self.parts - self.origin) / self.unit


def _squared(outputs: _Outputs, i: int, y: Fraction) -> Fraction:
    first, second = outputs.moments(i)
    a, b, parts = y.numerator, y.denominator, outputs.parts
    total = second * b * b - 2 * a * b * parts * first + (a * parts) ** 2 * outputs.scale
    return Fraction(total, 2 * outputs.scale * (parts * b) ** 2)


def _absolute(outputs: _Outputs, i: int, y: Fraction) -> Fraction:
    # |v − y| = (v − y) + 2·(y − v) where v < y.
    turn = math.ceil(outputs.point_of(y))
    count, below = outputs.below(i, turn)
    first, _ = outputs.moments(i)
    a, b, parts = y.numerator, y.denominator, outputs.parts
    total = b * (first - 2 * below) + a * parts * (2 * count - outputs.scale)
    return Fraction(total, outputs.scale * parts * b)


def _zero_one(outputs: _Outputs, i: int, y: Fraction) -> Fraction:
    # Equality is of float64 outputs, of which neighbouring lattice points can share one.
    points = outputs.randomizer.points_of(float(y)) if float(y) == y else range(0)
    if not points:
        return Fraction(1)
    hits = outputs.below(i, points.stop)[0] - outputs.below(i, points.start)[0]
    return 1 - Fraction(hits, outputs.scale)


_LOSSES: dict[Loss, Callable[[_Outputs, int, Fraction], Fraction]] = {
    "squared": _squared,
    "absolute": _absolute,
    "zero_one": _zero_one,
}
