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
from functools import cached_property

from labeldp_verify.analysis.additive_ratio import worst_ratio
from labeldp_verify.analysis.analysis import Analysis, Bounds, BoundsOfRow, Labels, Loss, OfRow
from labeldp_verify.analysis.noise_sums import NoiseSums
from labeldp_verify.analysis.strays import Strays
from labeldp_verify.forms import AdditiveRandomizer
from labeldp_verify.forms.exact_numbers import ExactNumbers, whole

OfLabel = Callable[[int], int]


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

    @cached_property
    def _scaled(self) -> tuple[ExactNumbers, ExactNumbers]:
        """[k] E[t·unit + origin] and E[(t·unit + origin)²]."""
        clamped, exact = _Clamped(self.randomizer), [Fraction(self.randomizer.unit)]
        exact.append(Fraction(self.randomizer.origin))
        parts = math.lcm(*(number.denominator for number in exact))
        unit, origin = (int(number * parts) for number in exact)
        total = clamped.total
        first = [clamped.moments(i) for i in range(self.rows)]
        means = whole(unit * one + origin * total for one, _ in first)
        squares = whole(
            unit * (unit * two + 2 * origin * one) + origin**2 * total for one, two in first
        )
        return ExactNumbers(means, total * parts), ExactNumbers(squares, total * parts**2)

    def means(self) -> ExactNumbers:
        """[k] E[ŷ] of every row."""
        return self._scaled[0]

    def variances(self) -> ExactNumbers:
        """[k] Var[ŷ] of every row."""
        mean, square = self._scaled
        unit = mean.unit**2
        return ExactNumbers(square.over(unit) - mean.numerators**2, unit)

    def moments(self) -> tuple[OfRow, OfRow]:
        """E[t·unit + origin] and E[(t·unit + origin)²] by the row."""
        mean, square = self._scaled
        return mean.__getitem__, square.__getitem__

    def loss_of(self, labels: Labels, loss: Loss) -> BoundsOfRow:
        """E[ℓ(t·unit + origin, labels[i])], twice, by the row i; ValueError for ``poisson``."""
        of_label, scale = self._loss_over(labels, loss)

        def of_row(i: int) -> Bounds:
            value = Fraction(of_label(i), scale)
            return value, value

        return of_row

    def expected_loss(
        self, labels: Labels, weights: Sequence[int], loss: Loss, strays: Strays | None = None
    ) -> Bounds:
        """Bounds of E ℓ(ŷ, y), y drawn in proportion to ``weights`` [k] (integers ≥ 0)."""
        if strays:
            return super().expected_loss(labels, weights, loss, strays)
        of_label, scale = self._loss_over(labels, loss)
        total = sum(weight * of_label(i) for i, weight in enumerate(weights) if weight)
        mean = Fraction(total, scale * sum(weights))
        return mean, mean

    def _loss_over(self, labels: Labels, loss: Loss) -> tuple[OfLabel, int]:
        """The loss of a label times a scale, and that scale."""
        if loss not in _LOSSES:
            raise ValueError(
                "the Poisson loss needs positive outputs, to which noise does not keep"
            )
        return _LOSSES[loss](self.randomizer, _Lattice(self.randomizer, labels))

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
        unit = Fraction(randomizer.unit)
        self.labels = labels
        gaps = ExactNumbers.of(labels).minus(ExactNumbers.of([randomizer.origin]))
        self.scale = math.lcm(unit.denominator, gaps.unit)
        self.unit = int(unit * self.scale)
        self.gaps: list[int] = gaps.over(self.scale).tolist()


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


def _squared(r: AdditiveRandomizer, lattice: _Lattice) -> tuple[OfLabel, int]:
    clamped, unit = _Clamped(r), lattice.unit

    def of_label(i: int) -> int:
        first, second = clamped.moments(i)
        gap = lattice.gaps[i]
        return unit * (unit * second - 2 * gap * first) + gap**2 * clamped.total

    return of_label, 2 * clamped.total * lattice.scale**2


def _absolute(r: AdditiveRandomizer, lattice: _Lattice) -> tuple[OfLabel, int]:
    """All distances with their signs, less twice those up to the label, which are negative."""
    clamped = _Clamped(r, [gap // lattice.unit for gap in lattice.gaps])

    def of_label(i: int) -> int:
        gap = lattice.gaps[i]
        mass, moment = clamped.until(i)
        everything = clamped.moments(i)[0] * lattice.unit - clamped.total * gap
        below = moment * lattice.unit - mass * gap
        return everything - 2 * below

    return of_label, clamped.total * lattice.scale


def _zero_one(r: AdditiveRandomizer, lattice: _Lattice) -> tuple[OfLabel, int]:
    """One less the weight of the lattice points whose float64 output is the label.

    Outputs are rounded from values that increase with the lattice point, so that they never fall
    and equal ones are neighbours.
    """
    before = [_points_below(r, lattice.labels[i], False) - 1 for i in range(r.labels)]
    last = [_points_below(r, lattice.labels[i], True) - 1 for i in range(r.labels)]
    up_to, under = _Clamped(r, last), _Clamped(r, before)

    def of_label(i: int) -> int:
        return up_to.total - up_to.until(i)[0] + under.until(i)[0]

    return of_label, up_to.total


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


_LOSSES: dict[Loss, Callable[[AdditiveRandomizer, _Lattice], tuple[OfLabel, int]]] = {
    "squared": _squared,
    "absolute": _absolute,
    "zero_one": _zero_one,
}
