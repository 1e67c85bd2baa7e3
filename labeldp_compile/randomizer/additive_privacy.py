"""The exact privacy of an additive randomizer.

The labels span one period D, so an output between the two ends sees, over all labels, noises from a
window [n, n + D]: a block from some i to its end, and the next block from its start to that i. The
ends collect tails, which only grow as the label comes nearer. See Theorem 6 in docs/privacy.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

from labeldp_compile.randomizer.additive import AdditiveRandomizer


def additive_ratio(randomizer: AdditiveRandomizer) -> Fraction:
    """The largest ratio of the probabilities of one output under two labels, or a bound on it.

    Exactly: the largest ratio of two weights Pr[n] in any D + 1 consecutive noises of the blocks
    −J … J − 1, or of the two ends' probabilities under the two outermost labels, if that is more.
    A bound only in that labels may be further apart than one lattice step, and that ``low`` and
    ``high`` may hide some of those noises.
    """
    below, from_zero = randomizer.shapes
    blocks = randomizer.blocks[1:-1]
    middle = len(blocks) // 2
    return max(
        Fraction(max(below), min(below)),
        Fraction(max(from_zero), min(from_zero)),
        _between(below, below, blocks[:middle]),
        _between(below, from_zero, blocks[middle - 1 : middle + 1]),
        _between(from_zero, from_zero, blocks[middle:]),
        _ends(randomizer),
    )


def _between(first: Sequence[int], second: Sequence[int], blocks: Sequence[int]) -> Fraction:
    """The largest ratio, either way, of two weights in neighbouring blocks and in one window.

    ``first`` and ``second`` [D] are the shapes of the two; ``blocks`` holds two weights or more.
    """
    if len(blocks) < 2:
        return Fraction(1)
    most_left = [*accumulate(reversed(first), max)][::-1]  # over i … D − 1
    least_left = [*accumulate(reversed(first), min)][::-1]
    falling = _largest(zip(most_left, accumulate(second, min), strict=True))
    rising = _largest(zip(accumulate(second, max), least_left, strict=True))
    return max(
        falling * _largest(pairwise(blocks)),
        rising * _largest((b, a) for a, b in pairwise(blocks)),
    )


def _largest(ratios: Iterable[tuple[int, int]]) -> Fraction:
    """The largest of p/q, by cross-multiplication: a Fraction each would take minutes."""
    best, over = 0, 1
    for p, q in ratios:
        if p * over > best * q:
            best, over = p, q
    return Fraction(best, over)


def _ends(randomizer: AdditiveRandomizer) -> Fraction:
    """The larger of the two ratios of an end's probability under its nearest and furthest label."""
    r, D = randomizer, randomizer.period
    return max(
        Fraction(_at_least(r, r.high - D), _at_least(r, r.high)),
        Fraction(_at_most(r, r.low), _at_most(r, r.low - D)),
    )


def _at_least(r: AdditiveRandomizer, point: int) -> int:
    """2^(2B)·Pr[n ≥ point] for a point in any block."""
    block, i = divmod(point, r.period)
    shape, index = r.shapes[block >= 0], block + r.reach + 1
    return sum(r.blocks[index + 1 :]) * r.words + r.blocks[index] * sum(shape[i:])


def _at_most(r: AdditiveRandomizer, point: int) -> int:
    """2^(2B)·Pr[n ≤ point] for a point in any block."""
    block, i = divmod(point, r.period)
    shape, index = r.shapes[block >= 0], block + r.reach + 1
    return sum(r.blocks[:index]) * r.words + r.blocks[index] * sum(shape[: i + 1])
