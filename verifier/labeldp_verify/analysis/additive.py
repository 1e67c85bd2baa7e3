"""The analysis of the integers of an additive randomizer.

Bias and loss speak of the exact lattice values t·unit + origin; ``output_rounding`` bounds how far
the float64 outputs lie from those. The 0-1 loss alone asks whether the float64 output is the label.

A label at lattice point x has the output t = x + n clamped to [low, high]. With the sums K_p(n) of
w(m)·m^p over m ≤ n, the noise below low − x counts as low, that above high − x as high, and the
rest by the differences of K_p between these two.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from labeldp_verify.analysis.analysis import Analysis, Labels, Losses, Rows
from labeldp_verify.analysis.probabilities import NoiseSums, equally_likely
from labeldp_verify.forms import AdditiveRandomizer
from labeldp_verify.forms.exact_numbers import ExactNumbers, Whole, whole


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
        """The reason why the integers are not one distribution a row, or None."""
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
    def _all(self) -> tuple[Whole, Whole, Whole]:
        """[k] the sums of ``_up_to`` over all outputs of each row."""
        return self._up_to(np.arange(self.rows), [self.randomizer.high] * self.rows)

    @cached_property
    def moments(self) -> tuple[ExactNumbers, ExactNumbers]:
        """[k] E[t·unit + origin] and E[(t·unit + origin)²]."""
        exact = ExactNumbers.of([self.randomizer.unit, self.randomizer.origin])
        (unit, origin), parts = exact.numerators, exact.unit
        total, first, second = self._all
        means = unit * first + origin * total
        squares = unit * (unit * second + 2 * origin * first) + origin**2 * total
        words = equally_likely(self.randomizer)
        return ExactNumbers(means, words * parts), ExactNumbers(squares, words * parts**2)

    def distances(self, rows: Rows, labels: ExactNumbers) -> ExactNumbers:
        """All distances with their signs, less twice those up to the label, which are negative."""
        step = Fraction(self.randomizer.unit)
        heights = labels.minus(ExactNumbers.of([self.randomizer.origin]))
        scale = math.lcm(step.denominator, heights.unit)
        unit, gaps = int(step * scale), heights.over(scale)
        mass, moment, _ = self._up_to(rows, (gaps // unit).tolist())
        total, whole_moment, _ = (side[rows] for side in self._all)
        distances = unit * (whole_moment - 2 * moment) - gaps * (total - 2 * mass)
        return ExactNumbers(distances, equally_likely(self.randomizer) * scale)

    def unequal(self, rows: Rows, labels: Labels) -> ExactNumbers:
        """One less the weight of the lattice points whose float64 output is the label."""
        points = [self.randomizer.points_of(label) for label in labels]
        until, _, _ = self._up_to(rows, [own.stop - 1 for own in points])
        before, _, _ = self._up_to(rows, [own.start - 1 for own in points])
        words = equally_likely(self.randomizer)
        return ExactNumbers(words - (until - before), words)

    @property
    def logarithms(self) -> Losses:
        """There are none: ValueError."""
        raise ValueError(
            "the Poisson loss needs positive outputs, and added noise can make them negative"
        )

    def _up_to(self, rows: Rows, cuts: Sequence[int]) -> tuple[Whole, Whole, Whole]:
        """[n] Σ w, Σ w·t and Σ w·t² over the outputs t ≤ cuts[j] of the row rows[j]."""
        r, total = self.randomizer, equally_likely(self.randomizer)
        places = [
            (x, min(cut, r.high)) for x, cut in zip((rows * r.spacing).tolist(), cuts, strict=True)
        ]
        inside = [(x, cut) for x, cut in places if cut >= r.low]
        sums = NoiseSums(r, {n for x, cut in inside for n in (r.low - x - 1, cut - x)})
        found: list[tuple[int, int, int]] = []
        for x, cut in places:
            if cut < r.low:
                found.append((0, 0, 0))
                continue
            a0, a1, a2 = sums.up_to(r.low - x - 1)
            z0, z1, z2 = sums.up_to(cut - x)
            n0, n1, n2 = z0 - a0, z1 - a1, z2 - a2
            above = total - z0 if cut == r.high else 0
            first = r.low * a0 + n1 + x * n0 + r.high * above
            second = r.low**2 * a0 + n2 + x * (2 * n1 + x * n0) + r.high**2 * above
            found.append((z0 + above, first, second))
        w, wt, wtt = (whole(side[p] for side in found) for p in range(3))
        return w, wt, wtt

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


# ---- An upper bound of the largest ratio of one output's probabilities under two labels, in O(D +
# J).
#
# Written independently of the compiler's own analysis. Label y stands at y·S; the labels span the
# period D = (k − 1)·S. There are two kinds of outputs.
#
# *Folded ends.* The output ``low`` has Pr[n ≤ low − y·S], which decreases in y; ``high`` has
# Pr[n ≥ high − y·S], which increases in y. The extreme labels give the ratio, by exact tail sums.
#
# *Interior outputs* t, low < t < high, have the weights w(t − y·S). Their noise values are among
# the D + 1 consecutive ones from t − D to t; the two extreme labels have the first and the last.
# Because D − J·D ≤ low and high ≤ J·D, they all lie in the blocks −J … J − 1, where nothing is
# folded. So the largest w(n)/w(n′) over n, n′ in some D + 1 consecutive values of those blocks is a
# bound for any weights. It is attained where the labels fill the lattice (S = 1), or where the
# extremes are at the ends of the stretch.
#
# D + 1 consecutive values from (b − 1)·D + i to b·D + i are the entries i … D − 1 of block b − 1
# and the entries 0 … i of block b. Two of them in one block have the ratio of two entries of its
# shape. Over all stretches this is at most max(shape)/min(shape), and somewhere exactly that,
# because i = 0 (and i = D − 1) includes a whole block. Two of them in different blocks have
#
#     blocks[b − 1]/blocks[b] · left[i₁]/right[i₂]      or its inverse,      i₂ ≤ i ≤ i₁.
#
# The second factor depends on b only through the sides of zero of the two blocks, so its largest
# value over i is computed once for each pair of sides, from running extremes of the shapes.


def worst_ratio(randomizer: AdditiveRandomizer) -> Fraction:
    """An upper bound of Pr[output | label] / Pr[output | label'] over all outputs and labels."""
    return max(_interior_ratio(randomizer), _end_ratio(randomizer))


def _end_ratio(r: AdditiveRandomizer) -> Fraction:
    D, total = r.period, r.words**2
    points = (r.low, r.low - D, r.high - 1, r.high - 1 - D)
    sums = NoiseSums(r, points)
    at_low, at_low_least, under_high_least, under_high = (sums.up_to(n)[0] for n in points)
    return max(
        Fraction(at_low, at_low_least), Fraction(total - under_high, total - under_high_least)
    )


def _interior_ratio(r: AdditiveRandomizer) -> Fraction:
    below, above = r.blocks[1 : r.reach + 1], r.blocks[r.reach + 1 : -1]
    shape_below, shape_above = r.shapes
    return max(
        Fraction(max(shape_below), min(shape_below)),
        Fraction(max(shape_above), min(shape_above)),
        _neighbours_ratio(below, shape_below, shape_below),
        _neighbours_ratio(above, shape_above, shape_above),
        _neighbours_ratio((below[-1], above[0]), shape_below, shape_above),
    )


def _neighbours_ratio(blocks: Sequence[int], left: Sequence[int], right: Sequence[int]) -> Fraction:
    """Over consecutive blocks: the larger of w(n)/w(n′) and its inverse, n in the left block."""
    if len(blocks) < 2:
        return Fraction(1)
    most_left = list(accumulate(reversed(left), max))[::-1]  # over i … D − 1
    least_left = list(accumulate(reversed(left), min))[::-1]
    falls = _largest_quotient(zip(most_left, accumulate(right, min), strict=True))
    rises = _largest_quotient(zip(accumulate(right, max), least_left, strict=True))
    steps = list(pairwise(blocks))
    return max(
        falls * _largest_quotient(steps),
        rises * _largest_quotient((after, before) for before, after in steps),
    )


def _largest_quotient(pairs: Iterable[tuple[int, int]]) -> Fraction:
    """The largest p/q of pairs of positive integers."""
    up, down = 0, 1
    for p, q in pairs:
        if p * down > up * q:
            up, down = p, q
    return Fraction(up, down)
