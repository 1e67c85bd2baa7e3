"""The same for additive noise, in O(D + J) for all α_j: Theorem 12 (d) in docs/privacy.md.

Let y < y′. An output of y that is not folded comes from a noise n, and y′ needs one of
n − D … n for it. Where the noise rises towards zero the least likely of those is n − D, one block
further out; from zero on it is n itself, which counts for nothing as α ≥ 1. What rounding adds to
that is added here, so that nothing is assumed but that the two shapes are monotone. The tail below
(1 − J)·D, where outputs are folded, is a likelihood ratio of at most ρ as a whole. The other
direction is the mirror image.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from labeldp_verify.analysis.composition.lattice import RATIO_BITS, Lattice
from labeldp_verify.forms import AdditiveRandomizer

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
