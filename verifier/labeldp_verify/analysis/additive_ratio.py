"""An upper bound of the largest ratio of one output's probabilities under two labels, in O(D + J).

Written independently of the compiler's own analysis. Label y stands at y·S; the labels span the
period D = (k − 1)·S. There are two kinds of outputs.

*Folded ends.* The output ``low`` has Pr[n ≤ low − y·S], which decreases in y; ``high`` has
Pr[n ≥ high − y·S], which increases in y. The extreme labels give the ratio, by exact tail sums.

*Interior outputs* t, low < t < high, have the weights w(t − y·S). Their noise values are among the
D + 1 consecutive ones from t − D to t; the two extreme labels have the first and the last. Because
D − J·D ≤ low and high ≤ J·D, they all lie in the blocks −J … J − 1, where nothing is folded. So the
largest w(n)/w(n′) over n, n′ in some D + 1 consecutive values of those blocks is a bound for any
weights. It is attained where the labels fill the lattice (S = 1), or where the extremes are at the
ends of the stretch.

D + 1 consecutive values from (b − 1)·D + i to b·D + i are the entries i … D − 1 of block b − 1 and
the entries 0 … i of block b. Two of them in one block have the ratio of two entries of its shape.
Over all stretches this is at most max(shape)/min(shape), and somewhere exactly that, because i = 0
(and i = D − 1) includes a whole block. Two of them in different blocks have

    blocks[b − 1]/blocks[b] · left[i₁]/right[i₂]      or its inverse,      i₂ ≤ i ≤ i₁.

The second factor depends on b only through the sides of zero of the two blocks, so its largest
value over i is computed once for each pair of sides, from running extremes of the shapes.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

from labeldp_verify.analysis.noise_sums import NoiseSums
from labeldp_verify.forms import AdditiveRandomizer


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
