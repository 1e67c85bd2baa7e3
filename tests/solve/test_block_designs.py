"""Block designs: balanced by brute force, and as good as their parameters say."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from labeldp_verify.analysis.share_noise import least_share_noise
from labeldp_verify.forms.exact_numbers import exp_lower

from labeldp_compile.mechanisms.subset_selection import (
    _small,
    best_candidate,
    catalogue,
    singletons,
    subsets,
)
from labeldp_compile.solve.block_design_families import (
    affine_spaces,
    cyclotomic,
    lines,
    projective_spaces,
    quartic,
    twin_primes,
)
from labeldp_compile.solve.block_designs import field, noise, relative

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


@pytest.mark.parametrize("family", FAMILIES)
def test_a_shortened_design_keeps_its_counts(family):
    for candidate in list(FAMILIES[family]())[::7]:
        for k in {max(2, candidate.points // 2), candidate.points - 1}:
            if k < 2:
                continue
            assert counts(candidate.build(k)) == ({candidate.replication}, {candidate.pairs})
            design = candidate.design(k)
            sizes = design.blocks.sum(axis=1)
            assert (sizes > 0).all()
            assert (sizes < k).all()
            assert counts(design.blocks) == ({design.replication}, {design.pairs})
            # What is left out told nothing.
            ratio = Fraction(3)
            left = noise(k, len(design.blocks), design.replication, design.pairs, ratio)
            assert left <= candidate.noise(k, ratio)


def test_subsets_are_all_subsets_in_order():
    for d, candidate in enumerate(subsets(7, 100), start=1):
        blocks = candidate.build(7)
        assert [tuple(np.flatnonzero(z)) for z in blocks] == list(combinations(range(7), d))
    assert d == 3
    assert [c.blocks for c in subsets(30, 500)] == [comb(30, 1), comb(30, 2)]


def test_known_designs_are_there():
    """The parameters of the oldest ones, which stand in every textbook."""
    known = {(7, 7, 3, 1), (11, 11, 5, 2), (13, 13, 4, 1), (15, 15, 7, 3), (37, 37, 9, 2)}
    known |= {(27, 117, 13, 1), (40, 130, 13, 1), (28, 63, 9, 1), (65, 208, 16, 1)}
    known |= {(9, 12, 4, 1), (16, 20, 5, 1), (8, 14, 7, 3), (35, 35, 17, 8), (13, 13, 4, 1)}
    found = {
        (c.points, c.blocks, c.replication, c.pairs)
        for family in ("projective", "affine", "lines", "quartic", "twin primes", "cyclotomic")
        for c in FAMILIES[family]()
    }
    assert known <= found


@pytest.mark.parametrize("order", [2, 3, 4, 5, 7, 8, 9, 16, 25, 27])
def test_finite_fields_are_fields(order):
    numbers = field(order)
    x, y, z = (a.ravel() for a in np.meshgrid(*[np.arange(order)] * 3, indexing="ij"))
    add, times = numbers.add, numbers.multiply
    for both in (add, times):
        np.testing.assert_array_equal(both(x, y), both(y, x))
        np.testing.assert_array_equal(both(both(x, y), z), both(x, both(y, z)))
    np.testing.assert_array_equal(times(x, add(y, z)), add(times(x, y), times(x, z)))
    np.testing.assert_array_equal(add(x, 0 * x), x)
    np.testing.assert_array_equal(times(x, 0 * x + 1), x)
    np.testing.assert_array_equal(add(numbers.subtract(x, y), y), x)
    everything = np.arange(order)
    for a in range(order):
        assert set(add(everything, np.full(order, a)).tolist()) == set(range(order))
        if a:
            assert set(times(everything, np.full(order, a)).tolist()) == set(range(order))
    assert sorted(numbers.powers.tolist()) == list(range(1, order))


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


def test_full_designs_reach_the_information_bound():
    """Of blocks of one size no linear unbiased estimate has less noise than the one counted."""
    for k, epsilon in ((5, 0.5), (10, 1), (31, 1), (13, 2)):
        ratio = exp_lower(Fraction(epsilon))
        design = best_design(k, ratio, room(k))
        table = np.where(design.blocks.T, float(ratio), 1.0)
        table /= table.sum(axis=1, keepdims=True)
        information = table / table.mean(axis=0) @ table.T
        # The one-hot label has length 1.
        least = np.trace(np.linalg.inv(information)) - 1
        mine = noise(k, len(design.blocks), design.replication, design.pairs, ratio)
        assert float(mine) == pytest.approx(least, rel=1e-9)


def test_least_noise_is_of_the_best_size():
    for k, epsilon in product((2, 3, 7, 12), EPSILONS):
        ratio = exp_lower(epsilon)
        found = [
            noise(k, comb(k, d), comb(k - 1, d - 1), comb(k - 2, d - 2) if d > 1 else 0, ratio)
            for d in range(1, k)
        ]
        assert least_share_noise(k, ratio) == min(found)


def test_complements_are_never_better():
    for k in (5, 13, 40):
        for candidate in catalogue(k, 300):
            b, r, pairs = candidate.blocks, candidate.replication, candidate.pairs
            if b - 2 * r + pairs:
                for ratio in (Fraction(11, 10), Fraction(50)):
                    mine = candidate.noise(k, ratio)
                    assert mine <= noise(k, b, b - r, b - 2 * r + pairs, ratio), candidate.name


def test_floats_leave_out_no_better_one():
    for k, epsilon in product((4, 31, 300), ("1e-9", "0.1", "3", "600")):
        ratio = exp_lower(Fraction(epsilon))
        some = list(catalogue(k, 4000))[::11]
        b, r, pairs = (
            np.array([getattr(c, name) for c in some], float)
            for name in ("blocks", "replication", "pairs")
        )
        guesses = relative(k, b, r, pairs, ratio)
        for guess, candidate in zip(guesses.tolist(), some, strict=True):
            exact = candidate.noise(k, ratio) * (1 - 1 / ratio) ** 2
            assert abs(Fraction(guess) / exact - 1) < 1e-11


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


@pytest.mark.slow
def test_the_fewest_blocks_within_a_little():
    for k, epsilon in product((7, 20, 100), EPSILONS):
        ratio, most = exp_lower(epsilon), room(k)
        noises = [(c.noise(k, ratio), c.blocks) for c in catalogue(k, most // 16)]
        enough = min(v for v, _ in noises) * Fraction(2001, 2000)
        design = best_design(k, ratio, most // 16)
        assert len(design.blocks) <= min(b for v, b in noises if v <= enough)
        again = best_design(k, ratio, most // 16)
        assert again.name == design.name
        np.testing.assert_array_equal(again.blocks, design.blocks)


def test_as_many_blocks_as_classes_are_enough():
    for k in (2, 5, 26, 1000, 1500, 2048):
        design = best_design(k, exp_lower(Fraction(1, 2)), k)
        assert len(design.blocks) == k
    assert best_design(7, Fraction(3, 2), 7).name == "hyperplanes of PG(2, 2)"


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
