"""Bias and loss of an additive randomizer, in exact arithmetic.

Written independently of the compiler's own analysis. They speak of the exact lattice values
t·unit + origin; ``output_rounding`` bounds how far the float64 outputs lie from those. The 0-1 loss
alone asks whether the float64 output is the label.

A label at lattice point x has the output t = x + n clamped to [low, high]. With the sums K_p(n) of
w(m)·m^p over m ≤ n, the noise below low − x counts as low, that above high − x as high, and the
rest by the differences of K_p between these two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from labeldp_compile.randomizer import AdditiveRandomizer
from labeldp_compile.verify.additive.noise_sums import NoiseSums
from labeldp_compile.verify.form import Bounds


def exact_biases(randomizer: AdditiveRandomizer, labels: Sequence[Fraction]) -> list[Fraction]:
    """[k] E[t·unit + origin | y] − y."""
    r = randomizer
    lattice = _Lattice(r, labels)
    clamped = _Clamped(r)
    total, scale = clamped.total, clamped.total * lattice.scale
    return [
        Fraction(clamped.moments(i)[0] * lattice.unit - total * lattice.gaps[i], scale)
        for i in range(r.labels)
    ]


def loss_of_labels(
    randomizer: AdditiveRandomizer, labels: Sequence[Any], weights: Sequence[int], loss: str
) -> list[Bounds]:
    """[k] E[ℓ(t·unit + origin, y) | y], twice; zeros where the weight is 0."""
    of_label = _LOSSES[loss](randomizer, _Lattice(randomizer, labels))
    exact = [of_label(i) if weight else Fraction(0) for i, weight in enumerate(weights)]
    return [(value, value) for value in exact]


def output_rounding(randomizer: AdditiveRandomizer) -> Fraction:
    """A bound on |float64 output − t·unit + origin|, low ≤ t ≤ high.

    If unit and origin are multiples of 2^-d, every product and every sum is one; below 2^(53 − d)
    float64 holds all of them, and nothing is rounded. Otherwise a product and a sum are rounded, by
    half a unit in the last place each. The sum of the rounded product and the origin is less than
    twice as large as the largest exact value, whose binade is therefore raised by one.
    """
    r = randomizer
    unit, origin = Fraction(r.unit), Fraction(r.origin)
    product = max(-r.low, r.high, 0) * unit
    largest = product + abs(origin)
    if largest * math.lcm(unit.denominator, origin.denominator) < 2**53:
        return Fraction(0)
    binades = _binade(product), _binade(largest) + 1
    return sum((Fraction(2) ** (binade - 54) for binade in binades), Fraction(0))


def _binade(size: Fraction) -> int:
    """The least e with size < 2^e, for a size whose denominator is a power of two; 0 for zero."""
    return size.numerator.bit_length() - (size.denominator.bit_length() - 1)


class _Lattice:
    """Values times a common denominator: a lattice step, and each label's height over the origin.

    A distance from output to label is (t·unit − gaps[i])/scale.
    """

    def __init__(self, randomizer: AdditiveRandomizer, labels: Sequence[Fraction]) -> None:
        unit, origin = Fraction(randomizer.unit), Fraction(randomizer.origin)
        self.labels = labels
        gaps = [y - origin for y in labels]
        self.scale = math.lcm(unit.denominator, *{gap.denominator for gap in gaps})
        self.unit = int(unit * self.scale)
        self.gaps = [int(gap * self.scale) for gap in gaps]


class _Clamped:
    """Sums over all outputs t of a label, each with its weight; the weights sum to ``total``."""

    def __init__(self, randomizer: AdditiveRandomizer, cuts: Sequence[int] | None = None) -> None:
        """``cuts`` [k]: the lattice points at which ``until`` splits the outputs."""
        r = self._r = randomizer
        self.total = r.words**2
        self._cuts = cuts
        shifts = range(0, r.period + 1, r.spacing)
        points = {n for x in shifts for n in (r.low - x - 1, r.high - x)}
        if cuts is not None:
            inside = zip(cuts, shifts, strict=True)
            points.update(c - x for c, x in inside if r.low <= c < r.high)
        self._sums = NoiseSums(r, points)

    def moments(self, label: int) -> tuple[int, int]:
        """Σ w·t and Σ w·t²."""
        r, x = self._r, label * self._r.spacing
        a0, a1, a2 = self._sums.up_to(r.low - x - 1)
        z0, z1, z2 = self._sums.up_to(r.high - x)
        n0, n1, n2 = z0 - a0, z1 - a1, z2 - a2
        above = self.total - z0
        first = r.low * a0 + n1 + x * n0 + r.high * above
        second = r.low**2 * a0 + n2 + x * (2 * n1 + x * n0) + r.high**2 * above
        return first, second

    def until(self, label: int) -> tuple[int, int]:
        """Σ w and Σ w·t over the outputs t ≤ the label's cut."""
        assert self._cuts is not None
        r, x, cut = self._r, label * self._r.spacing, self._cuts[label]
        if cut < r.low:
            return 0, 0
        if cut >= r.high:
            return self.total, self.moments(label)[0]
        a0, a1, _ = self._sums.up_to(r.low - x - 1)
        c0, c1, _ = self._sums.up_to(cut - x)
        return c0, r.low * a0 + (c1 - a1) + x * (c0 - a0)


OfLabel = Callable[[int], Fraction]


def _squared(r: AdditiveRandomizer, lattice: _Lattice) -> OfLabel:
    clamped = _Clamped(r)
    unit, scale = lattice.unit, 2 * clamped.total * lattice.scale**2

    def of_label(i: int) -> Fraction:
        first, second = clamped.moments(i)
        gap = lattice.gaps[i]
        return Fraction(unit * (unit * second - 2 * gap * first) + gap**2 * clamped.total, scale)

    return of_label


def _absolute(r: AdditiveRandomizer, lattice: _Lattice) -> OfLabel:
    """All distances with their signs, less twice those up to the label, which are negative."""
    clamped = _Clamped(r, [gap // lattice.unit for gap in lattice.gaps])

    def of_label(i: int) -> Fraction:
        gap = lattice.gaps[i]
        mass, moment = clamped.until(i)
        everything = clamped.moments(i)[0] * lattice.unit - clamped.total * gap
        below = moment * lattice.unit - mass * gap
        return Fraction(everything - 2 * below, clamped.total * lattice.scale)

    return of_label


def _zero_one(r: AdditiveRandomizer, lattice: _Lattice) -> OfLabel:
    """One less the weight of the lattice points whose float64 output is the label.

    Outputs are rounded from values that increase with the lattice point, so that they never fall
    and equal ones are neighbours.
    """
    before = [_points_below(r, lattice.labels[i], False) - 1 for i in range(r.labels)]
    last = [_points_below(r, lattice.labels[i], True) - 1 for i in range(r.labels)]
    up_to, under = _Clamped(r, last), _Clamped(r, before)

    def of_label(i: int) -> Fraction:
        return 1 - Fraction(up_to.until(i)[0] - under.until(i)[0], up_to.total)

    return of_label


def _points_below(r: AdditiveRandomizer, label: Fraction, inclusive: bool) -> int:
    """The first lattice point whose output is not below the label (or equal to it); bisection."""
    first, stop = r.low, r.high + 1
    while first < stop:
        middle = (first + stop) // 2
        output = Fraction(float(middle) * r.unit + r.origin)
        if output < label or (inclusive and output == label):
            first = middle + 1
        else:
            stop = middle
    return first


def _poisson(r: AdditiveRandomizer, lattice: _Lattice) -> OfLabel:
    raise ValueError("the Poisson loss is for positive outputs, which no noise guarantees")


_LOSSES: dict[str, Callable[[AdditiveRandomizer, _Lattice], OfLabel]] = {
    "squared": _squared,
    "absolute": _absolute,
    "poisson": _poisson,
    "zero_one": _zero_one,
}
