"""Private priors by public group: what is spent on which, and what becomes of the noisy counts."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labeldp_compile.errors import BudgetError
from labeldp_compile.mechanisms.mechanism import (
    ANSWERS_THE_LIKELY,
    KEEPS_MEANS,
    KEEPS_THE_LIKELIEST,
    PRICES_BIAS,
)
from labeldp_compile.prior.discrete_laplace import (
    NoisyHistogram,
    cell_of_label,
)
from labeldp_compile.prior.plan import level_counts, plan_of, plan_public, plan_tables
from labeldp_compile.prior.priors import table_weights

USES = [None, ANSWERS_THE_LIKELY, KEEPS_MEANS, KEEPS_THE_LIKELIEST, PRICES_BIAS]
ONE = Fraction(1)


def bell(k, centre, width, rows):
    """[k] counts of ``rows`` labels, about."""
    shape = np.exp(-(((np.arange(k) - centre) / width) ** 2) / 2)
    return np.rint(rows * shape / shape.sum()).astype(np.int64)


def with_other(counts):
    """[C + 1, k]: no row is in an unlisted group."""
    return np.vstack([counts, np.zeros((1, counts.shape[1]), dtype=np.int64)])


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.sampled_from(USES),
    st.integers(2, 3000),
    st.decimals("0.000001", "60", places=6),
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.sampled_from(["auto", "paper", "given"]),
    st.data(),
)
def test_any_plan_adds_up(use, labels, epsilon, shape, split, data):
    epsilon = Fraction(epsilon)
    size = st.one_of(st.just(0), st.integers(0, 300), st.integers(0, 10**7))
    cells = int(np.prod(shape))
    sizes = data.draw(st.lists(size, min_size=cells + 1, max_size=cells + 1))
    sizes[-1] += 1
    if split == "given":
        prior = data.draw(st.fractions(0, 1, max_denominator=100)) * epsilon * Fraction(9, 10)
        split = prior, epsilon - prior
    try:
        plan = plan_tables(use, labels, epsilon, sizes, shape, split)
        pooled = plan_of(use, labels, epsilon, sum(sizes), split)
    except BudgetError:
        assert split == "paper"
        return
    assert plan.epsilon_pooled + plan.epsilon_tables + plan.epsilon_label == epsilon
    assert plan.epsilon_label > 0 and plan.epsilon_tables >= 0
    assert (plan.epsilon_tables > 0) == (plan.tables > 0)
    assert plan.tables <= (plan.epsilon_pooled > 0) * cells
    if split == "auto":
        assert plan.epsilon_pooled == pooled.epsilon_prior <= epsilon / 2
        assert plan.epsilon_prior <= epsilon / 2
    else:
        assert plan.epsilon_label == pooled.epsilon_label
        assert plan.epsilon_pooled > 0 or pooled.is_uniform
    if not plan.tables:
        assert plan.epsilon_pooled == pooled.epsilon_prior
    if split == "auto" or not plan.tables:
        assert plan.pooled_cells == pooled.pooled_cells and plan.shrunk == pooled.shrunk
    else:
        assert plan.epsilon_tables <= plan.epsilon_pooled and plan.shrunk
    # Every table is some cell's, and cells without rows have none of their own.
    assert len(plan.table_of_cell) == cells
    assert {*plan.table_of_cell, plan.tables} == set(range(plan.tables + 1))
    of_rows = {t for t, n in zip(plan.table_of_cell, sizes, strict=False) if n}
    assert set(range(plan.tables)) <= of_rows
    assert all(t == plan.tables for t, n in zip(plan.table_of_cell, sizes, strict=False) if not n)
    assert plan.by_table(np.array(sizes)).sum() == sum(sizes)
    assert plan_tables(use, labels, epsilon, sizes, shape, split) == plan


def test_small_groups_are_joined_with_those_that_agree_on_the_first_columns():
    sizes = [5000, 60, 70, 0, 50, 40, 900, 10, 0, 7]  # 3 values × 3 bands, and unlisted
    plan = plan_tables(ANSWERS_THE_LIKELY, 53, ONE, sizes, (3, 3))
    # 1 and 2 are 130 rows together; 4 and 5 are 90, and 7 has nobody to join.
    assert plan.table_of_cell == (0, 1, 1, 3, 3, 3, 2, 3, 3)
    assert plan.tables == 3
    assert plan.by_table(np.array(sizes)).tolist() == [5000, 130, 900, 107]
    assert "2 of 7 groups with rows have their own tables" in plan.reason
    assert "2 with fewer than 118 rows are joined into 1 more" in plan.reason
    assert "3 with fewer than 118 rows use the pooled one" in plan.reason
    # With three columns the last is dropped first, then the one before it.
    sizes = [50, 80, 10, 20, 60, 55, 5, 1, 9000, *[0] * 8]
    plan = plan_tables(ANSWERS_THE_LIKELY, 53, ONE, sizes, (4, 2, 2))
    # 130 rows agree on two columns; 115 and 6 on the first one; 30 on none but with those.
    assert plan.table_of_cell == (0, 0, 3, 3, 1, 1, 1, 1, 2, *[3] * 7)


def test_one_label_moves_two_counts_of_each_level():
    generator = np.random.default_rng(0)
    counts = with_other(generator.integers(0, 2000, (6, 20)))
    plan = plan_tables(ANSWERS_THE_LIKELY, 20, ONE, counts.sum(axis=1).tolist(), (2, 3))
    assert plan.tables == 6
    before = level_counts(plan, plan.by_table(counts))
    assert before[0].sum() == before[1].sum() == counts.sum()
    for cell, source, target in generator.integers(0, (7, 20, 20), (200, 3)):
        moved = counts.copy()
        moved[cell, source] -= 1
        moved[cell, target] += 1
        for old, new in zip(before, level_counts(plan, plan.by_table(moved)), strict=True):
            assert np.abs(old - new).sum() in (0, 2)


def plan_and_counts(k=40, rows=30_000):
    """Three groups that differ, and their plan."""
    counts = with_other(np.array([bell(k, c, 4, rows) for c in (8, 20, 32)]))
    plan = plan_tables(ANSWERS_THE_LIKELY, k, ONE, counts.sum(axis=1).tolist(), (3,))
    assert plan.tables == 3
    return plan, counts


def shares(weights):
    return np.array(weights) / sum(weights)


def test_without_noise_to_speak_of_a_table_has_its_own_counts():
    plan, counts = plan_and_counts()
    sizes, rows = counts.sum(axis=1).tolist(), int(counts.sum())
    everything, tables = level_counts(plan, plan.by_table(counts))
    pooled = NoisyHistogram(everything.tolist(), 0.01)
    found = table_weights(plan, pooled, NoisyHistogram(tables.tolist(), 0.01), sizes, rows, 40)
    of_label = cell_of_label(40, plan.table_cells)
    for weights, true in zip(found, counts[:3], strict=False):
        masses = np.bincount(of_label, weights=shares(weights))
        assert masses == pytest.approx(np.bincount(of_label, weights=true) / true.sum(), abs=1e-3)
        # Inside a cell, as the pooled prior has it.
        for cell in np.flatnonzero(masses > 0.01):
            inside = np.array(weights)[of_label == cell] / masses[cell]
            pooled_inside = np.array(found[-1])[of_label == cell]
            assert shares(inside) == pytest.approx(shares(pooled_inside), abs=1e-3)


def test_a_public_prior_takes_large_groups_as_they_are_and_small_ones_as_all():
    generator = np.random.default_rng(5)
    bells = [bell(30, centre, 3, 10**6) for centre in (8, 22)]
    everywhere = (bells[0] + bells[1]) / (bells[0] + bells[1]).sum()
    small = generator.multinomial(20, everywhere, size=200)
    counts = with_other(np.vstack([bells, small, np.zeros((1, 30), dtype=np.int64)]))
    sizes = counts.sum(axis=1).tolist()
    plan = plan_public(ONE, sizes)
    assert plan.tables == 202 and plan.epsilon_label == 1 and plan.is_uniform
    assert plan.table_of_cell[-1] == 202
    everything, tables = level_counts(plan, plan.by_table(counts))
    found = table_weights(
        plan,
        NoisyHistogram(everything.tolist(), 0.0),
        NoisyHistogram(tables.tolist(), 0.0),
        plan.by_table(counts).sum(axis=1).tolist(),
        int(counts.sum()),
        30,
    )
    for weights, true in zip(found, bells, strict=False):
        assert shares(weights) == pytest.approx(true / true.sum(), abs=1e-3)
    assert shares(found[-1]) == pytest.approx(everywhere, abs=1e-3)
    away = np.array([np.abs(shares(w) - everywhere).sum() for w in found[2:-1]])
    own = np.array([np.abs(c / c.sum() - everywhere).sum() for c in small])
    assert away.mean() < 0.35 * own.mean() and np.median(away) < 0.001
