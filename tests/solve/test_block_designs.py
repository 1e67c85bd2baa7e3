"""Block designs: balanced by brute force, and as good as their parameters say."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from labeldp_verify.analysis.share_noise import least_share_noise
from labeldp_verify.forms.exact_numbers import exp_lower

from labeldp_compile.mechanisms.subset_selection import (
    _small,
    best_candidate,
    singletons,
    subsets,
)
from labeldp_compile.solve.block_designs import (
    affine_spaces,
    cyclotomic,
    lines,
    noise,
    projective_spaces,
    quartic,
    twin_primes,
)

MOST = 200  # points, of the designs that are counted
EPSILONS = [Fraction(x) for x in ("0.1", "0.5", "1", "2", "4", "8")]
FAMILIES = {
    "subsets": lambda: (d for k in range(2, 13) for d in subsets(k, 1000)),
    "projective": lambda: projective_spaces(2, MOST),
    "affine": lambda: affine_spaces(2, 1500, MOST, _small),
    "lines": lambda: lines(2, 20_000, 350),
    "quartic": lambda: quartic(2, 1500),
    "twin primes": lambda: twin_primes(2, 350),
    "cyclotomic": lambda: cyclotomic(2, 600, MOST),
    "cyclotomic, every one": lambda: cyclotomic(2, MOST**2, 32),
}


def room(classes):
    """The blocks that a table of two million entries has room for."""
    return 1 << ((1 << 21) // classes).bit_length() - 1


def best_design(classes, ratio, most):
    return best_candidate(classes, ratio, most).design(classes)


def counts(blocks):
    """(how often each class, how often each pair) is in a block."""
    together = blocks.astype(np.float32)
    together = np.rint(together.T @ together).astype(int)
    pairs = together[~np.eye(len(together), dtype=bool)]
    return set(np.diagonal(together).tolist()), set(pairs.tolist())


@pytest.mark.parametrize("family", FAMILIES)
def test_every_class_and_every_pair_is_equally_often_in_a_block(family):
    found = 0
    for candidate in FAMILIES[family]():
        blocks = candidate.build(candidate.points)
        assert blocks.shape == (candidate.blocks, candidate.points)
        assert blocks.dtype == np.bool_
        assert counts(blocks) == ({candidate.replication}, {candidate.pairs}), candidate.name
        assert 0 < 2 * candidate.replication <= candidate.blocks
        if family != "affine":  # of which some go by shortened designs
            assert len(set(blocks.sum(axis=1).tolist())) == 1
        found += 1
    assert found > 3


@pytest.mark.parametrize(
    ("classes", "points", "family"),
    [(6, 6, "all 3"), (7, 7, "PG(2, 2)"), (6, 7, "PG(2, 2)"), (10, 11, "residues mod 11")],
)
def test_noise_is_the_trace_of_a_covariance(classes, points, family):
    """Exactly, from every probability; for shortened blocks, of several sizes, too."""
    ratio = Fraction(7, 3)
    found = [*subsets(points, 50), *projective_spaces(points, 50), *cyclotomic(points, 50, points)]
    candidate = next(c for c in found if family in c.name and c.points == points)
    design = candidate.design(classes)
    k, b = classes, len(design.blocks)
    blocks = design.blocks.tolist()
    weights = [[ratio if z[y] else Fraction(1) for z in blocks] for y in range(k)]
    table = [[w / sum(row) for w in row] for row in weights]
    # The two levels of the estimate, from the probabilities themselves.
    own = {sum(table[y][o] for o in range(b) if blocks[o][y]) for y in range(k)}
    other = {
        sum(table[y][o] for o in range(b) if blocks[o][c])
        for y, c in product(range(k), repeat=2)
        if c != y
    }
    assert (len(own), len(other)) == (1, 1)
    p, q = own.pop(), other.pop()
    total = Fraction(0)
    for y in range(k):
        for c in range(k):
            estimate = [(blocks[o][c] - q) / (p - q) for o in range(b)]
            mean = sum(w * x for w, x in zip(table[y], estimate, strict=True))
            assert mean == (c == y)
            total += sum(w * (x - mean) ** 2 for w, x in zip(table[y], estimate, strict=True))
    assert total / k == noise(k, b, design.replication, design.pairs, ratio)


def test_least_noise_is_of_the_best_size():
    for k, epsilon in product((2, 3, 7, 12), EPSILONS):
        ratio = exp_lower(epsilon)
        found = [
            noise(k, comb(k, d), comb(k - 1, d - 1), comb(k - 2, d - 2) if d > 1 else 0, ratio)
            for d in range(1, k)
        ]
        assert least_share_noise(k, ratio) == min(found)


# The worst of ε = 0.1 … 8, each with a little room.
GAPS = {2: 0, 3: 0, 5: 0, 10: 0, 18: 0, 26: 0.005, 31: 0.001, 50: 0.007, 100: 0.002, 250: 0.002}


@pytest.mark.slow
@pytest.mark.parametrize("classes", [*GAPS, 500, 1000])
def test_the_best_is_near_the_bound(classes):
    for epsilon in EPSILONS:
        ratio = exp_lower(epsilon)
        design = best_design(classes, ratio, room(classes))
        mine = noise(classes, len(design.blocks), design.replication, design.pairs, ratio)
        least = least_share_noise(classes, ratio)
        assert least <= mine <= singletons(classes).noise(classes, ratio)
        assert classes <= len(design.blocks) <= room(classes)
        assert design.name.isascii()
        assert mine <= least * (1 + Fraction(GAPS.get(classes, 0.05)))


def test_a_false_promise_is_refused():
    candidate = next(iter(projective_spaces(7, 7)))
    wrong = dataclasses.replace(candidate, pairs=2)
    with pytest.raises(RuntimeError, match="not balanced"):
        wrong.design(7)
    bent = candidate.build(7)
    bent[0] = np.roll(bent[0], 1)
    with pytest.raises(RuntimeError, match="not balanced"):
        dataclasses.replace(candidate, build=lambda _: bent).design(7)
    with pytest.raises(RuntimeError, match="number of blocks is wrong"):
        dataclasses.replace(candidate, blocks=8).design(7)


def test_bad_input_is_refused():
    for classes, ratio, most in ((1, Fraction(2), 9), (3, Fraction(1), 9), (3, Fraction(1, 2), 9)):
        with pytest.raises(ValueError, match="two or more classes"):
            best_design(classes, ratio, most)
        with pytest.raises(ValueError, match="two or more classes"):
            least_share_noise(classes, ratio)
    with pytest.raises(ValueError, match="fewer blocks than classes"):
        best_design(10, Fraction(2), 9)
    for parameters in ((7, 3, 3), (7, 8, 1), (7, 3, -1)):
        with pytest.raises(ValueError, match="r of them"):
            noise(7, *parameters, Fraction(2))
