"""What labels can change in the votes: by enumeration, on the integers that get noise."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_trainer.discrete_gaussian.noise import ProvedNoise
from labeldp_trainer.methods.published.pate import (
    PENALTIES,
    VOTE,
    answers,
    parts,
    query_rows,
    squared_sensitivity,
    vote_noise,
    votes,
)

seeds = st.integers(0, 2**32 - 1)


def moved(one, other):
    return int(np.square(one - other).sum()) * VOTE * VOTE


@pytest.mark.slow
@pytest.mark.parametrize("teachers", [1, 2, 3, 6])
def test_a_replaced_label_moves_one_vote_a_query(teachers):
    """All 729 labellings of six rows by three classes, and all their neighbours."""
    random = np.random.default_rng(teachers)
    points = random.normal(size=(6, 2)).astype(np.float32)
    asked, teacher = points[[0, 2, 3, 5]], parts(6, teachers, seed=1)
    stated, largest = squared_sensitivity(len(asked)), 0
    found = {
        labels: votes(points, np.array(labels, np.int32), teacher, asked, 3)
        for labels in product(range(3), repeat=6)
    }
    for labels, before in found.items():
        assert (before.sum(axis=1) == teachers).all() and before.min() >= 0
        for row, other in product(range(6), range(3)):
            after = found[(*labels[:row], other, *labels[row + 1 :])]
            largest = max(largest, moved(before, after))
            assert np.square(before - after).sum(axis=1).max() <= 2
    assert 0 < largest <= stated
    if teachers == 6:  # a teacher of one row says its label whatever it is asked
        assert largest == stated


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(seeds)
def test_all_labels_of_a_teacher_move_no_more(seed):
    """As of a user, all of whose rows have one teacher; some teachers have no rows."""
    random = np.random.default_rng(seed)
    n, teachers, k = random.integers(1, 30), random.integers(1, 6), random.integers(2, 5)
    points = (random.normal(size=(n, 3)) * 10.0 ** random.integers(-3, 4)).astype(np.float32)
    teacher = random.integers(0, teachers, n).astype(np.int32)
    asked = points[random.integers(0, n, 4)]
    labels = random.integers(0, k, n).astype(np.int32)
    before = votes(points, labels, teacher, asked, k)
    for one in range(teachers):
        other = np.where(teacher == one, random.integers(0, k, n), labels).astype(np.int32)
        after = votes(points, other, teacher, asked, k)
        assert moved(before, after) <= squared_sensitivity(4)


def test_units_are_dealt_evenly_at_random_without_labels():
    found = parts(1003, 10, seed=3)
    assert set(np.bincount(found)) == {100, 101}
    assert (found == parts(1003, 10, seed=3)).all()
    assert (found != parts(1003, 10, seed=4)).any()
    assert len(set(np.diff(found))) > 2  # in no order


@pytest.mark.parametrize("m", [4, 5, 40])
def test_a_teacher_is_the_ridge_regression_of_least_error_on_rows_left_out(m):
    """Fitted again without each row, as the closed form says."""
    random = np.random.default_rng(m)
    points = random.normal(size=(m, 5)).astype(np.float32)
    targets = np.eye(3)[random.integers(0, 3, m)]
    asked = random.normal(size=(200, 5)).astype(np.float32)
    base, x = targets.mean(axis=0), points.astype(float)

    def weights(rows, penalty):
        gram = x[rows].T @ x[rows] + penalty * np.eye(5)
        return np.linalg.solve(gram, x[rows].T @ (targets[rows] - base))

    def error(penalty):
        left = 0.0
        for row in range(m):
            others = np.arange(m) != row
            left += np.square(targets[row] - base - x[row] @ weights(others, penalty)).sum()
        return left

    best = min((share * m for share in PENALTIES), key=error)
    expected = np.argmax(asked @ weights(np.full(m, True), best) + base, axis=1)
    assert (answers(points, targets, asked) == expected).all()


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(seeds)
def test_queries_are_different_rows_from_features_alone(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 60))
    points = random.normal(size=(n, 4)).astype(np.float32)[random.integers(0, n, n)]
    queries = int(random.integers(1, n + 1))
    found = query_rows(points, queries, seed=0)
    assert len(set(found)) == queries and found.min() >= 0 and found.max() < n
    assert (found == query_rows(points, queries, seed=0)).all()


def test_queries_are_where_rows_are():
    """Three heaps of rows: one query in each, in its middle."""
    random = np.random.default_rng(0)
    centres = np.array([[0, 0], [30, 0], [0, 30]], np.float32)
    points = np.repeat(centres, 50, axis=0) + random.normal(size=(150, 2)).astype(np.float32)
    chosen = points[query_rows(points, 3, seed=0)]
    assert (np.linalg.norm(chosen - centres, axis=1) < 1).all()


@pytest.mark.parametrize(("epsilon", "queries"), [("0.1", 1), ("1", 30), ("8", 3000)])
def test_noise_is_proved_and_hardly_more_than_needed(epsilon, queries):
    """For √(2Q) votes, on all counts together: the continuous Gaussian's σ, to a thousandth."""
    least = {("0.1", 1): 43.49, ("1", 30): 28.92, ("8", 3000): 46.5}[epsilon, queries]
    noise = vote_noise(queries, 10, Fraction(epsilon), Fraction(1, 10**5))
    assert noise.sigma / VOTE == pytest.approx(least, rel=2e-3)
    assert noise.proved_delta(Fraction(epsilon)) <= Fraction(1, 10**5)
    less = noise._replace(sigma=int(noise.sigma * 0.999))
    assert less.proved_delta(Fraction(epsilon)) > Fraction(1, 10**5)
    more = queries + queries // 30 + 1
    more = ProvedNoise(squared_sensitivity(more), noise.sigma, 10 * more)
    assert more.proved_delta(Fraction(epsilon)) > Fraction(1, 10**5)
