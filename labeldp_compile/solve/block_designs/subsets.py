"""All sets of d classes: every pair is in C(k − 2, d − 2) of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np

from labeldp_compile.solve.block_designs.design import Blocks, Candidate
from labeldp_compile.solve.block_designs.noise import half


def subsets(classes: int, max_blocks: int) -> Iterator[Candidate]:
    """Those with at most so many sets, and at most half of the classes in each."""
    for d in half(classes):
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
