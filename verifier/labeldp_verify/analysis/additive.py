"""What follows from the integers of an additive randomizer.

Bias and loss speak of the exact lattice values t·unit + origin; ``output_rounding`` bounds how far
the float64 outputs lie from those. The 0-1 loss alone asks whether the float64 output is the label.

A label at lattice point x has the output t = x + n clamped to [low, high]. With the sums K_p(n) of
w(m)·m^p over m ≤ n, the noise below low − x counts as low, that above high − x as high, and the
rest by the differences of K_p between these two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from labeldp_verify.analysis.additive_ratio import worst_ratio
from labeldp_verify.analysis.analysis import Analysis, Bounds, BoundsOfRow, Labels, Loss, OfRow
from labeldp_verify.analysis.noise_sums import NoiseSums
from labeldp_verify.forms import AdditiveRandomizer


class AdditiveAnalysis(Analysis[AdditiveRandomizer]):
    """The analysis of an additive randomizer."""

    @property
    def rows(self) -> int:
        """k, the number of labels."""
        return self.randomizer.labels

    def description(self) -> str:
        """The form and its sizes in plain words."""
        r = self.randomizer
        return (
            f"an additive randomizer: {r.labels:,} labels, noise of period {r.period:,} steps in "
            f"{len(r.blocks):,} blocks, words of {r.word_bits} bits"
        )

    def why_not_distributions(self) -> str | None:
        """What keeps the integers from being one distribution a row, or None."""
        r = self.randomizer
        for weights in (r.blocks, *r.shapes):
            if min(weights) < 1:
                return "a weight of the noise is not positive"
            if sum(weights) != r.words:
                return "the weights of the noise do not sum up"
        return None

    def worst_ratio(self) -> Fraction:
        """See ``additive_ratio``."""
        return worst_ratio(self.randomizer)

    def moments(self) -> tuple[OfRow, OfRow]:
        """E[t·unit + origin] and E[(t·unit + origin)²] by the row."""
        clamped, exact = _Clamped(self.randomizer), [Fraction(self.randomizer.unit)]
        exact.append(Fraction(self.randomizer.origin))
        parts = math.lcm(*(number.denominator for number in exact))
        unit, origin = (int(number * parts) for number in exact)
        total = clamped.total

        def mean(i: int) -> Fraction:
            return Fraction(unit * clamped.moments(i)[0] + origin * total, total * parts)

        def square(i: int) -> Fraction:
            first, second = clamped.moments(i)
            sum_of_squares = unit * (unit * second + 2 * origin * first) + origin**2 * total
            return Fraction(sum_of_squares, total * parts**2)

        return mean, square

    def loss_of(self, labels: Labels, loss: Loss) -> BoundsOfRow:
        """E[ℓ(t·unit + origin, labels[i])], twice, by the row i; ValueError for ``poisson``."""
        if loss not in _LOSSES:
            raise ValueError(
                "the Poisson loss needs positive outputs, to which noise does not keep"
            )
        of_label = _LOSSES[loss](self.randomizer, _Lattice(self.randomizer, labels))

        def of_row(i: int) -> Bounds:
            value = of_label(i)
            return value, value

        return of_row

    def output_rounding(self) -> Fraction:
        """A bound on |float64 output − t·unit + origin|, low ≤ t ≤ high.

        If unit and origin are multiples of 2^-d, every product and every sum is one; below
        2^(53 − d) float64 holds all of them, and nothing is rounded. Otherwise a product and a sum
        are rounded, by half a unit in the last place each. The sum of the rounded product and the
        origin is less than twice as large as the largest exact value, whose binade is therefore
        raised by one.
        """
        r = self.randomizer
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


def _squared(r: AdditiveRandomizer, lattice: _Lattice) -> OfRow:
    clamped = _Clamped(r)
    unit, scale = lattice.unit, 2 * clamped.total * lattice.scale**2

    def of_label(i: int) -> Fraction:
        first, second = clamped.moments(i)
        gap = lattice.gaps[i]
        return Fraction(unit * (unit * second - 2 * gap * first) + gap**2 * clamped.total, scale)

    return of_label


def _absolute(r: AdditiveRandomizer, lattice: _Lattice) -> OfRow:
    """All distances with their signs, less twice those up to the label, which are negative."""
    clamped = _Clamped(r, [gap // lattice.unit for gap in lattice.gaps])

    def of_label(i: int) -> Fraction:
        gap = lattice.gaps[i]
        mass, moment = clamped.until(i)
        everything = clamped.moments(i)[0] * lattice.unit - clamped.total * gap
        below = moment * lattice.unit - mass * gap
        return Fraction(everything - 2 * below, clamped.total * lattice.scale)

    return of_label


def _zero_one(r: AdditiveRandomizer, lattice: _Lattice) -> OfRow:
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


_LOSSES: dict[Loss, Callable[[AdditiveRandomizer, _Lattice], OfRow]] = {
    "squared": _squared,
    "absolute": _absolute,
    "zero_one": _zero_one,
}
