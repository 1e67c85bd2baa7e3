"""The catalogue of designs, and the choice of one by exact noise.

For few classes it has all sets of d classes: every pair is in C(k − 2, d − 2) of them.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np

from labeldp_compile.solve.block_designs.design import Blocks, Candidate, relative
from labeldp_compile.solve.block_designs.residues import cyclotomic, quartic, twin_primes
from labeldp_compile.solve.block_designs.spaces import affine_spaces, lines, projective_spaces

_MORE = Fraction(1, 2000)  # relative noise that is accepted for fewer blocks
_ROUNDING = 1e-9  # far above the rounding of `relative`


def subsets(classes: int, max_blocks: int) -> Iterator[Candidate]:
    """All subsets of one size: at most ``max_blocks`` of at most half of the classes each."""
    for d in range(1, classes // 2 + 1):
        blocks = comb(classes, d)
        if blocks > max_blocks:
            return
        yield _all(classes, d)


def singletons(classes: int) -> Candidate:
    """Each class alone: randomized response."""
    return _all(classes, 1)


def _all(classes: int, size: int) -> Candidate:
    def build(shown: int) -> Blocks:
        members = np.array(list(combinations(range(classes), size)))
        blocks = np.zeros((len(members), classes), dtype=np.bool_)
        np.put_along_axis(blocks, members, True, axis=1)
        return blocks[:, :shown]

    name = "singletons" if size == 1 else f"all {size}-subsets"
    blocks, replication = comb(classes, size), comb(classes - 1, size - 1)
    pairs = comb(classes - 2, size - 2) if size > 1 else 0
    return Candidate(name, classes, blocks, replication, pairs, build, symmetric=True)


def best_candidate(classes: int, ratio: Fraction, max_blocks: int) -> Candidate:
    """The least noisy design on k classes at ``ratio`` E > 1 with at most ``max_blocks`` blocks.

    Among the designs within 1/2000 of the least noise, it is the one with the fewest blocks. Blocks
    with no class or with all classes are removed when it is built. Raises ValueError for fewer than
    two classes, for a ratio of at most 1, and for fewer blocks than classes: a design has at least
    as many blocks as classes (Fisher 1940).
    """
    if classes < 2 or ratio <= 1:
        raise ValueError("a private set needs two or more classes, and a ratio above 1")
    if max_blocks < classes:
        raise ValueError("no design has fewer blocks than classes")
    return _best(classes, ratio, list(catalogue(classes, max_blocks)))


def catalogue(classes: int, max_blocks: int) -> Iterator[Candidate]:
    """Every known design for k classes with at most half density, shortened if it is larger.

    A design on v points that is shortened to k is worse than one on k points by about 1/k − 1/v. So
    the catalogue has no more points than a density needs.
    """
    yield from subsets(classes, max_blocks)
    yield from projective_spaces(classes, max_blocks)
    points = min(max_blocks, 4 * classes + 64)
    yield from twin_primes(classes, points)
    yield from quartic(classes, points)
    yield from cyclotomic(classes, max_blocks, min(points, 2 * classes + 64))
    yield from lines(classes, max_blocks, points)
    yield from affine_spaces(classes, max_blocks, points, _small)


def _small(order: int, max_blocks: int) -> Iterator[Candidate]:
    """Designs for the q values of a linear function."""
    yield singletons(order)
    yield from projective_spaces(order, max_blocks)
    yield from quartic(order, min(max_blocks, 2 * order))
    yield from cyclotomic(order, max_blocks, min(max_blocks, order + order // 2))


def _best(classes: int, ratio: Fraction, candidates: list[Candidate]) -> Candidate:
    """The choice by exact noise; floats only remove designs that are clearly worse."""
    b, r, pairs = (
        np.array([getattr(c, name) for c in candidates], dtype=np.float64)
        for name in ("blocks", "replication", "pairs")
    )
    guess = relative(classes, b, r, pairs, ratio)
    near = np.flatnonzero(guess <= guess.min() * (1 + float(_MORE)) * (1 + _ROUNDING))
    found = {i: candidates[i].noise(classes, ratio) for i in near.tolist()}
    most = min(found.values()) * (1 + _MORE)
    enough = [i for i, v in found.items() if v <= most]
    # Among equal designs, the first, which has the simplest name.
    return candidates[min(enough, key=lambda i: (candidates[i].blocks, found[i], i))]
