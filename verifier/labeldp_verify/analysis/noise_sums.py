"""Exact sums over the noise: Σ w(m)·m^p over all m ≤ n, for p = 0, 1, 2.

w(b·D + i) = blocks[b]·shape[i] with the shape of the block's side of zero, so that a sum over whole
blocks follows from three moments of each shape, and a part of a block from three prefix sums.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import mul

from labeldp_verify.forms import AdditiveRandomizer

Moments = tuple[int, int, int]


class NoiseSums:
    """Σ w(m)·m^p over m ≤ n in units of 2^(−2B), at noise values n named in advance.

    Prefix sums are kept for those values only: a shape can have a million weights.
    """

    def __init__(self, randomizer: AdditiveRandomizer, points: Iterable[int]) -> None:
        """``points``: the noise values at which ``up_to`` will be asked."""
        r = randomizer
        self._r = r
        self._first = -r.reach - 1
        wanted: tuple[set[int], set[int]] = (set(), set())
        for point in points:
            block, inside = divmod(point, r.period)
            wanted[block >= 0].add(inside)
        self._parts = [
            _prefix_moments(shape, {*residues, r.period - 1})
            for shape, residues in zip(r.shapes, wanted, strict=True)
        ]
        whole = [parts[r.period - 1] for parts in self._parts]
        sums = [(0, 0, 0)]
        for b, weight in enumerate(r.blocks, self._first):
            sums.append(_sum(sums[-1], _shifted(whole[b >= 0], b * r.period, weight)))
        self._before = sums

    def up_to(self, point: int) -> Moments:
        """The three sums over all noise values m ≤ ``point``, which lies in some block."""
        block, inside = divmod(point, self._r.period)
        weight = self._r.blocks[block - self._first]
        part = _shifted(self._parts[block >= 0][inside], block * self._r.period, weight)
        return _sum(self._before[block - self._first], part)


def _prefix_moments(shape: Sequence[int], wanted: set[int]) -> dict[int, Moments]:
    """Σ shape[i]·i^p over i ≤ each wanted index."""
    indices = range(len(shape))
    order = sorted(wanted)
    columns = []
    terms: list[int] = list(shape)
    for _ in range(3):
        prefix = list(accumulate(terms))
        columns.append([prefix[i] for i in order])
        terms = list(map(mul, terms, indices))
    return dict(zip(order, zip(*columns, strict=True), strict=True))


def _shifted(moments: Moments, by: int, weight: int) -> Moments:
    """The moments of i + ``by``, times ``weight``."""
    m0, m1, m2 = moments
    return weight * m0, weight * (m1 + by * m0), weight * (m2 + by * (2 * m1 + by * m0))


def _sum(one: Moments, other: Moments) -> Moments:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]
