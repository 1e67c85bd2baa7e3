"""Hockey-stick divergences between any two labels of a randomizer, from above, in integers.

For all labels y, y′ and α ≥ 1,

    H_α(y‖y′) = Σ_i (P(i|y) − α·P(i|y′))⁺ ≤ Σ_i (P(i|y) − α·least(i))⁺,

where least(i) is at most Pr[i | any label]. It is an equality if some y′ has the least probability
of all outputs that count. No two labels are more than Randomized Response apart, either:
H_α ≤ (r − α)/(r + 1) for the largest ratio r (Kairouz, Oh and Viswanath 2015).
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

from labeldp_verify.analysis.composition.dominating_pair import RATIO_BITS, Lattice
from labeldp_verify.forms import AdditiveRandomizer, Randomizer, TableRandomizer, WindowRandomizer

# The same for additive noise, in O(D + J) for all α_j: Theorem 12 (d) in docs/privacy.md.
#
# Let y < y′. An output of y that is not folded comes from a noise n, and y′ needs one of n − D …
# n for it. Where the noise rises towards zero the least likely of those is n − D, one block
# further out; from zero on it is n itself, which counts for nothing as α ≥ 1. What rounding adds
# to that is added here, so that nothing is assumed but that the two shapes are monotone. The
# tail below (1 − J)·D, where outputs are folded, is a likelihood ratio of at most ρ as a whole.
# The other direction is the mirror image.


Shape = Sequence[int]


def additive_divergences(r: AdditiveRandomizer, lattice: Lattice) -> list[Fraction] | None:
    """[N + 1] upper bounds of sup H_α(y‖y′) at α_j; None if a shape is not monotone."""
    below, above = r.shapes
    rises = all(a <= b for a, b in pairwise(below))
    falls = all(a >= b for a, b in pairwise(above))
    if not (rises and falls):
        return None
    upwards = _one_way(r.words, r.blocks, below, above, lattice)
    downwards = _one_way(r.words, r.blocks[::-1], above[::-1], below[::-1], lattice)
    return [min(max(pair), Fraction(1)) for pair in zip(upwards, downwards, strict=True)]


def _one_way(
    words: int, blocks: Sequence[int], below: Shape, above: Shape, lattice: Lattice
) -> list[Fraction]:
    """The bounds for y < y′; ``below`` does not fall, and ``above`` does not rise."""
    zero, period = len(blocks) // 2, len(below)
    left, right = blocks[1:zero], blocks[zero:-1]  # −J … −1, and 0 … J − 1
    further = [(b, a) for a, b in pairwise(left)]
    across = [(right[0] * p, left[-1] * q) for p, q in zip(above, below, strict=True)]
    rising = lattice.excesses(further)
    around = lattice.excesses(across)
    # Rounding: block b may start below the end of the block before it, which no density would.
    dips = period * sum(max(a * below[-1] - b * below[0], 0) for a, b in pairwise(left))
    bumps = period * sum(max(b * above[0] - a * above[-1], 0) for a, b in pairwise(right))
    tail = blocks[0] + blocks[1]
    largest = max(lattice.ratio(-1), Fraction(tail, blocks[0]))
    bounds = []
    for j, ratio in enumerate(lattice.ratios):
        folded = max(1 - Fraction(ratio, 1 << RATIO_BITS) / largest, Fraction(0)) * tail * words
        counted = rising[j] * words + around[j] + ratio * dips + (bumps << RATIO_BITS)
        bounds.append((folded + Fraction(counted, 1 << RATIO_BITS)) / words**2)
    return bounds


MAX_WORK = 1 << 21
"""Steps after which Randomized Response is taken instead of the table."""

Pairs = tuple[tuple[int, int], ...]


def divergences(tables: Sequence[Randomizer], lattice: Lattice) -> tuple[list[Fraction], bool]:
    """[N + 1] upper bounds of sup H_α(y‖y′) at the α_j of a lattice that reaches the ratio.

    They hold for any of the tables. The flag is true if they are the tables' own, and false if
    Randomized Response stands in for tables that are too large to look at. The last bound is 0:
    α_N is at least the ratio.
    """
    top = lattice.ratio(-1)
    bounds = [(top - lattice.ratio(j)) / (1 + top) for j in range(lattice.reach + 1)]
    worst = [Fraction(0)] * len(bounds)
    for randomizer in tables:
        own = _own(randomizer, lattice, MAX_WORK // len(tables))
        if own is None:
            return bounds, False
        worst = list(map(max, worst, own))
    return list(map(min, bounds, worst)), True


def _own(randomizer: Randomizer, lattice: Lattice, most: int) -> list[Fraction] | None:
    """The bounds of one table; None if they take more than ``most`` steps."""
    if isinstance(randomizer, AdditiveRandomizer):
        return additive_divergences(randomizer, lattice)
    if isinstance(randomizer, TableRandomizer):
        rows = _table_rows(randomizer)
    else:
        rows = _window_rows(randomizer)
    worst, work, seen = [0] * (lattice.reach + 1), 0, set[Pairs]()
    for pairs, steps in rows:
        work += steps
        if pairs not in seen:
            seen.add(pairs)
            work += lattice.reach
            worst = list(map(max, worst, lattice.excesses(pairs)))
        if work > most:
            return None
    return [Fraction(number, randomizer.words << RATIO_BITS) for number in worst]


def _table_rows(r: TableRandomizer) -> Iterator[tuple[Pairs, int]]:
    """For each label the (count, least count) of the outputs where they differ, and the work."""
    least = [min(column) for column in zip(*r.counts, strict=True)]
    for row in r.counts:
        pairs = ((p, q) for p, q in zip(row, least, strict=True) if p > q)
        yield tuple(sorted(pairs)), len(row)


def _window_rows(r: WindowRandomizer) -> Iterator[tuple[Pairs, int]]:
    """The same: an output's base weight is at most its count under any offset."""
    ends = list(accumulate((segment.length for segment in r.extra), initial=0))
    for start in dict.fromkeys(r.offsets):
        stop = start + r.window
        overlaps: dict[int, int] = defaultdict(int)
        first = j = bisect_right(ends, start) - 1
        while j < len(r.extra) and ends[j] < stop:
            overlaps[r.extra[j].output] += min(ends[j + 1], stop) - max(ends[j], start)
            j += 1
        pairs = ((r.base[i] + overlap, r.base[i]) for i, overlap in overlaps.items() if overlap)
        yield tuple(sorted(pairs)), j - first + 1
