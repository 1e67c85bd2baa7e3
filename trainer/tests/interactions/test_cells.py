"""What is summed up by cells of bins is what rows one by one give."""

import numpy as np
import pytest
from labeldp_trainer.interactions.answers import Answer, Answers, KeptRows, Working
from labeldp_trainer.interactions.columns import BinnedColumn
from labeldp_trainer.interactions.questions import LabelQuestion, RowWeights
from labeldp_trainer.interactions.terms import BLOCK, MOST_WEIGHT, CellSums, Term, Terms
from labeldp_trainer.one_release.rows import UNIT

ROWS = (40, 3000, 2 * BLOCK + 5000)
"""None, some and all terms have few cells; of several blocks."""


def some_terms(rows, seed, largest=1 << 12):
    """Six columns of up to 30 bins, and terms of one, two and three of them."""
    random = np.random.default_rng(seed)
    columns, codes = [], []
    for bins, rank in ((30, 6), (7, 4), (25, 5), (9, 3), (2, 1), (64, 8)):
        values = random.integers(-largest, largest, (bins, rank)).astype(np.int32)
        columns.append(BinnedColumn(None, np.zeros(1, np.int32), values, min(rank, 4)))
        codes.append(random.integers(0, bins, rows))
    chosen = ((0,), (1,), (2,), (3,), (4,), (5,), (0, 2), (1, 3), (0, 1, 2), (2, 4, 5))
    terms = tuple(Term(own, fine=len(own) == 2 and own[0] == 0) for own in chosen)
    return Terms(columns, np.stack(codes).T.astype(np.int32), terms)


def one_by_one(terms):
    """The design of all rows in whole numbers."""
    return np.concatenate([z.astype(np.int64) for _, z in terms.chunks()])


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("largest", [1 << 10, 1 << 16])
def test_products_by_cells_are_exact(rows, largest):
    terms = some_terms(rows, rows, largest)
    random = np.random.default_rng(1)
    most = MOST_WEIGHT if largest > 1 << 12 else 300  # sums beyond int32, and within
    weights = random.integers(-most, most + 1, (terms.width, 5)).astype(np.int32)
    found = list(CellSums.of(terms).products(weights))
    wanted = one_by_one(terms) @ weights.astype(np.int64)
    assert (np.abs(wanted).max() >= 1 << 31) == (largest > 1 << 12)
    assert np.array_equal(np.concatenate([total for _, total in found]), wanted)
    assert [part.start for part, _ in found[1:]] == [part.stop for part, _ in found[:-1]]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("shift", [9, 14])
def test_terms_are_rounded_alike_however_they_are_looked_up(rows, shift):
    terms = some_terms(rows, rows)
    weights = np.random.default_rng(1).integers(-300, 300, (terms.width, 5)).astype(np.int32)
    found = CellSums.of(terms).products(weights, shift)
    design, wanted = one_by_one(terms), 0.0
    for term in np.unique(terms.term_of):
        own = terms.term_of == term
        wanted = wanted + np.rint((design[:, own] @ weights[own].astype(np.int64)) / 2.0**shift)
    assert (np.abs(wanted).max() < 1 << 15) == (shift == 14)
    assert np.array_equal(np.concatenate([total for _, total in found]), wanted)


@pytest.mark.parametrize("rows", ROWS[:2])
def test_sums_by_cells_are_those_of_the_design(rows):
    terms = some_terms(rows, 2)
    q = np.random.default_rng(3).normal(size=(rows, 7)).astype(np.float32)
    block = slice(5, rows - 3)
    found = CellSums.of(terms).adder(block).sums(q[block])
    wanted = q[block].T.astype(np.float64) @ one_by_one(terms)[block]
    assert np.allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())


def integers_one_by_one(rows, total, shares):
    """The integer rows of products, with squares added up as whole numbers."""
    r = np.clip(total, -(1 << 23), 1 << 23)
    lengths = np.sqrt(np.square(r.astype(np.int64)).sum(axis=1).astype(np.float64))
    factor = (UNIT - UNIT / 1024) / np.maximum(lengths, rows.floor)
    return np.rint(r * (factor * shares)[:, None])


@pytest.mark.parametrize("size", [1 << 10, 1 << 20, 1 << 23, 1 << 40])
def test_integer_rows_are_those_of_whole_squares(size):
    random = np.random.default_rng(size % 97)
    total = random.integers(-size, size, (50, 600)).astype(np.float64)
    shares = random.uniform(0.1, 1, 50).astype(np.float32)
    rows = RowWeights(np.zeros((1, 600), np.int32), 2, 50.0)
    wanted = integers_one_by_one(rows, total, shares)
    assert np.array_equal(rows.integers(total.copy(), shares), wanted)


@pytest.mark.parametrize("logistic", [False, True])
def test_sums_that_are_known_are_the_same_as_new_ones(logistic):
    terms, random = some_terms(3000, 4), np.random.default_rng(5)
    working = None
    if logistic:
        slope, response = random.uniform(0.1, 0.3, (2, 3000)).astype(np.float32)
        working = Working(slope, response)
    ones = np.ones(3000, np.float32)
    answers = Answers(terms, ones, visible=False)
    sizes, before = (5, 3), None
    for size, chosen in zip(sizes, (terms.chosen[:7], terms.chosen), strict=True):
        own = terms.of(chosen)
        weights = random.integers(-99, 99, (own.width, size)).astype(np.int32)
        question = LabelQuestion(chosen, RowWeights(weights, 0, 1.0), None, 1.0)
        offsets = random.normal(size=3000).astype(np.float32)
        kept = KeptRows(3000, size, 0)
        for part, whole in question.integer_rows(terms, ones):
            kept.keep(part, whole)
        answers.found.append(Answer(question, np.zeros((size, 1)), 1.0, kept.rows, offsets))
        before = answers.sums(own, working, before)
    new = answers.sums(terms, working)
    for name in ("cross", "gram", "slope", "total", "offset"):
        a, b = getattr(before, name), getattr(new, name)
        assert np.allclose(a, b, rtol=1e-4, atol=1e-5 * np.abs(b).max()), name
    q = np.concatenate([whole for _, whole in answers.found[0].question.integer_rows(terms, ones)])
    slope = np.ones(3000) if working is None else working.slope
    wanted = (q / UNIT * slope[:, None]).T @ one_by_one(terms)
    assert np.allclose(new.cross[:5], wanted, rtol=1e-2, atol=1e-3 * np.abs(wanted).max())
