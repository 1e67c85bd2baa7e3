"""What replaced labels move in the sum, on the integers that are summed; and what labels become."""

import hashlib
import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_trainer import DataError
from labeldp_trainer.data.labels import Cells, class_labels
from labeldp_trainer.one_release import plan as release_plan
from labeldp_trainer.one_release import rows as lattice
from labeldp_trainer.one_release.plan import drawn, planned
from labeldp_trainer.one_release.rows import (
    MOST_ROWS,
    SCALE,
    STEPS,
    UNIT,
    RowSums,
    Targets,
    Weights,
    added,
    label_steps,
    lengths,
    measured,
    squared_sensitivity,
    unit_of,
)
from labeldp_trainer.staged_release.plan import COUNT

from trainer.tests.one_release.release_helpers import method, rows

CLASSES = (0, 1, 2)
FULL = UNIT - UNIT / 1024
seeds = st.integers(0, 2**32 - 1)


def some_weights(random, p):
    columns = np.sort(random.choice(p + 1, random.integers(1, p + 2), replace=False))
    metric = random.uniform(0.01, 1, len(columns)).astype(np.float32)
    return Weights(columns, metric, float(random.uniform(1e-6, 3)), FULL)


def some_vectors(random, n, p):
    """Rows of very different lengths; some are zero, some are far out."""
    sizes = 10.0 ** random.integers(-4, 5, (n, 1)) * random.integers(0, 2, (n, 1))
    return (random.normal(size=(n, p)) * sizes).astype(np.float32)


def squared(one, other):
    return int(np.square((one - other).astype(object)).sum())


def test_moments_are_the_same_in_any_order():
    """A cluster orders rows by the size of files, and labels change that."""
    random = np.random.default_rng(2)
    vectors = random.lognormal(size=(20_000, 3)).astype(np.float32)
    weights = Weights(np.arange(4), np.ones(4, np.float32), 1e-3, FULL)
    lattice = rows(vectors).moment_lattice(weights)

    def parts(*each):
        held = (replace(rows(part), lattice=lattice).sums(weights) for part in each)
        return added(RowSums.zeros(4, (4, 0)), held).moments

    one, other = parts(vectors), parts(vectors[7000:][::-1], vectors[:7000])
    used = weights.used(vectors).astype(float)
    q = np.concatenate([chunk.integers for chunk in weights.chunks(rows(vectors))]) / UNIT
    plain = rows(vectors).sums(weights).moments
    for a, b, c, exact in zip(one, other, plain, (q.T @ used, q.T @ q, q.sum(axis=0)), strict=True):
        assert (a == b).all() and (a == c).all()
        np.testing.assert_allclose(a, exact, rtol=1e-4)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(seeds)
def test_a_replaced_class_moves_the_sum_by_no_more_and_the_longest_row_by_all(seed):
    random = np.random.default_rng(seed)
    n, p = random.integers(1, 8), random.integers(1, 5)
    vectors, weights = some_vectors(random, n, p), some_weights(random, p)
    stated = squared_sensitivity(rows(vectors).sums(weights).lengths.longest, classes=True)
    labels = random.integers(0, 3, n).astype(np.int32)
    before, found = rows(vectors).sums(weights, Targets(3, labels)).labels, []
    for row in range(n):
        other = labels.copy()
        other[row] = (labels[row] + random.integers(1, 3)) % 3
        found.append(squared(before, rows(vectors).sums(weights, Targets(3, other)).labels))
    assert max(found) == stated <= 2 * UNIT * UNIT


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(seeds)
def test_a_replaced_number_moves_the_sum_by_no_more_and_from_end_to_end_by_all(seed):
    random = np.random.default_rng(seed)
    n, p = random.integers(1, 8), random.integers(1, 5)
    vectors, weights = some_vectors(random, n, p), some_weights(random, p)
    stated = squared_sensitivity(rows(vectors).sums(weights).lengths.longest, classes=False)
    labels = random.choice([-7.0, -1.0, 0.3, 5.0, np.nan, np.inf], n)
    ends, others = [], []
    for row in range(n):
        sums = []
        for value in (-1e9, 1e9, random.normal()):
            other = labels.copy()
            other[row] = value
            steps = label_steps(other, -1.0, 5.0, None)
            sums.append(rows(vectors).sums(weights, Targets(None, steps)).labels)
        ends.append(squared(sums[0], sums[1]))
        others.append(squared(sums[0], sums[2]))
    assert max(others) <= max(ends) == stated


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(seeds, st.booleans())
def test_all_labels_of_a_user_move_the_sum_by_no_more(seed, parallel):
    """By all of it, but for what was rounded up, if the user's rows are one row again and again."""
    random = np.random.default_rng(seed)
    n, p = random.integers(1, 12), random.integers(1, 4)
    vectors, weights = some_vectors(random, n, p), some_weights(random, p)
    owners = np.unique(np.sort(random.integers(0, 4, n)), return_inverse=True)[1]
    if parallel:
        vectors = vectors[owners]
    table = rows(vectors, owners)
    longest = table.sums(weights).lengths.longest
    labels = random.integers(0, 3, n).astype(np.int32)
    before, found = table.sums(weights, Targets(3, labels)).labels, []
    numbers = []
    for user in range(owners.max() + 1):
        mine = owners == user
        other, low, high = labels.copy(), np.zeros(n, np.int64), np.zeros(n, np.int64)
        other[mine] = (labels[mine] + random.integers(1, 3, mine.sum())) % 3
        found.append(squared(before, table.sums(weights, Targets(3, other)).labels))
        low[mine], high[mine] = -STEPS, STEPS
        sums = (table.sums(weights, Targets(None, steps)).labels for steps in (low, high))
        numbers.append(squared(*sums))
        if parallel:  # from one class all to one other
            first, second = labels.copy(), labels.copy()
            first[mine], second[mine] = 0, 1
            sums = (table.sums(weights, Targets(3, y)).labels for y in (first, second))
            found.append(squared(*sums))
    for kind, largest in ((True, max(found)), (False, max(numbers))):
        stated = squared_sensitivity(longest, classes=kind)
        assert largest <= stated
        if parallel:
            rounded = 2 * n * (2 * longest**0.5 + n) / lattice._ROOT + 2
            assert largest >= stated - rounded * squared_sensitivity(1, classes=kind)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(seeds)
def test_no_signs_of_the_rows_of_a_user_move_the_sum_by_more(seed):
    """All signs, blocks of any size; no bound is above the sum of lengths, but for what is rounded
    up. Weighted by what they move together, the rows of a user move as much as one row."""
    random = np.random.default_rng(seed)
    n, p, most = random.integers(1, 9), random.integers(1, 4), int(random.integers(1, 5))
    weights = some_weights(random, p)
    owners = np.sort(random.integers(0, 3, n))
    table = rows(some_vectors(random, n, p), np.unique(owners, return_inverse=True)[1])
    signs = np.array(list(itertools.product((-1, 1), repeat=int(n))))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lattice, "_BLOCK", most)
        integers = np.concatenate([chunk.integers for chunk in weights.chunks(table)]).astype(
            np.int64
        )
        longest = table.sums(weights).lengths.longest
        for user in range(table.units):
            mine = table.owners == user
            moved = np.square(signs[:, mine].astype(object) @ integers[mine].astype(object))
            assert moved.sum(axis=1).max() <= longest
        each = np.sqrt(np.square(integers).sum(axis=1).astype(float)) + 1
        assert longest <= min(np.bincount(table.owners, each).max() ** 2, UNIT * UNIT)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(seeds)
def test_the_bound_of_many_rows_is_near_their_largest_singular_value(seed):
    """And no smaller than what equal labels move; rows may come in any parts."""
    random = np.random.default_rng(seed)
    n, p = random.integers(3, 60), random.integers(2, 20)
    z = random.normal(size=(n, p)) * random.uniform(0.01, 1, p)
    integers = np.rint(z / np.linalg.norm(z, axis=1, keepdims=True) * UNIT / 2)
    table = rows(z, np.zeros(n, np.int64))
    values = np.linalg.svd(integers, compute_uv=False)
    best, parts = n * values[0] ** 2, [slice(i, min(i + 7, n)) for i in range(0, n, 7)]
    found = lengths([(part, integers[part]) for part in parts], table).longest
    assert found <= 1.05 * best and found >= np.square(integers.sum(axis=0)).sum()


def test_rows_of_a_user_that_differ_keep_more_of_their_length():
    """m rows at right angles have 1/√m of their length, equal rows 1/m, in any order."""
    weights = Weights(np.arange(1, 5), np.ones(4, np.float32), 1e-6, FULL)
    vectors = np.concatenate([np.eye(4), np.ones((4, 4)), [[1, 0, 0, 0]]])
    random = np.random.default_rng(0)
    order = np.r_[random.permutation(4), 4 + random.permutation(4), 8]
    table = rows(vectors[order], np.repeat([0, 1, 2], [4, 4, 1]))
    factors = weights.factors(table) * np.linalg.norm(vectors[order], axis=1)
    assert factors[np.argsort(order)] == pytest.approx([0.5] * 4 + [0.25] * 4 + [1], rel=2e-3)


def test_a_whole_release_keeps_what_it_states(noiseless):
    """From vectors and labels to the statistic before its noise, with users and without."""
    random = np.random.default_rng(3)
    owners = random.integers(0, 9, 40)
    for given_owners in (None, owners):
        table = rows(random.normal(size=(40, 4)), given_owners)
        plan = planned(table, method(), CLASSES, "y")
        labels = random.integers(0, 3, 40)
        before = drawn(table, method(), CLASSES, "y", labels).statistic
        for unit in range(9):
            mine = np.arange(40) == unit if given_owners is None else owners == unit
            other = np.where(mine, (labels + 1) % 3, labels)
            after = drawn(table, method(), CLASSES, "y", other).statistic
            assert 0 < squared(before, after) <= plan.facts.squared_sensitivity
        assert plan.noise.proved_delta(Fraction(1)) <= 1e-5


def test_integer_rows_do_not_depend_on_how_they_are_cut_or_lie_in_memory(monkeypatch):
    random = np.random.default_rng(5)
    vectors = random.normal(size=(500, 37)).astype(np.float32)
    weights = Weights(np.arange(38), random.uniform(0.1, 1, 38).astype(np.float32), 3.0, FULL)

    def factors(given_vectors):
        parts = [
            weights._factors(weights.used(given_vectors[i : i + chunk]) * weights.metric, None)
            for i in range(0, 500, chunk)
        ]
        return np.concatenate(parts)

    found, bits = set(), set()
    for chunk in (1, 3, 64, 4096):
        monkeypatch.setattr(lattice, "_CHUNK", chunk)
        for given_vectors in (vectors, np.asfortranarray(vectors)):
            own = rows(given_vectors).sums(weights).lengths
            found.add((own.longest, own.sha256))
            bits.add(factors(given_vectors).tobytes())
    assert len(found) == len(bits) == 1


def test_the_digest_is_of_the_rows_in_any_order_and_of_how_often_they_are_there():
    weights = Weights(np.arange(4), np.ones(4, np.float32), 1e-6, FULL)
    vectors = np.random.default_rng(5).integers(0, 3, (40, 3)).astype(np.float32)
    once, twice = vectors[[*range(40), 0]], vectors[[*range(40), 1]]
    digests = [rows(v).sums(weights).lengths.sha256 for v in (once, once[::-1], twice)]
    assert (vectors[0] != vectors[1]).any()
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("in_memory", [0, 50, 1 << 23])
def test_the_digest_of_many_rows_is_that_of_their_sorted_digests(monkeypatch, in_memory):
    """Some are alike, and some have zeros at either end; in parts, which may be on the disk."""
    monkeypatch.setattr(lattice, "_IN_MEMORY", in_memory)
    own = [hashlib.sha256(bytes([i % 90])).digest() for i in range(300)]
    own += [bytes(32), bytes(31) + b"a", b"\xff" + bytes(31), b"\xff" * 32, b"a" + bytes(31)]
    nothing = RowSums.zeros(1, (1,))
    parts = (b"".join(own[start : start + 40]) for start in range(0, len(own), 40))
    found = added(nothing, (nothing._replace(lengths=measured(7, part)) for part in parts))
    assert found.lengths.longest == 7
    assert found.lengths.sha256 == hashlib.sha256(b"".join(sorted(own))).hexdigest()


def test_squares_that_do_not_fit_are_refused():
    """Of a scale that no release has, four squares of 2³¹ would add up to zero."""
    weights = Weights(np.array([0, 1, 2, 3]), np.ones(4, np.float32), 1e-6, 2.0**32 - 2)
    with pytest.raises(ValueError, match="longer"):
        table = rows(np.ones((1, 3), np.float32))
        table.sums(weights)


B = 2**60 + 1  # no float holds it


@pytest.mark.parametrize(
    "given_labels",
    [
        pa.array([B, 3, B, 4]),
        pa.array([B, None, B, 4]),
        pa.array([B, None, B, 4]).dictionary_encode(),
        pa.chunked_array([[B, None], [B, 4]]),
        np.array([B, 3, B, 4]),
        Cells(pa.array([str(B), "x", f"{B}.0", "1e99"], pa.large_string())),
    ],
)
def test_no_label_changes_how_another_class_is_read(given_labels):
    assert class_labels(given_labels, (4, B - 1, B), 4)[[0, 2]].tolist() == [2, 2]


def test_no_label_changes_how_another_number_is_read():
    for missing in (None, False):
        values = pa.array([True, missing, False, True])
        for column in (values, values.dictionary_encode(), pa.chunked_array([values])):
            steps = label_steps(column, 0.0, 1.0, 0.0)
            assert steps.tolist() == [STEPS, -STEPS, -STEPS, STEPS]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], None, [2]]),
        pa.array([b"1", None, b"2"]),
        np.array([1j, 2j, 0]),
    ],
)
def test_columns_that_hold_no_numbers_are_all_default(column):
    assert label_steps(column, 0.0, 4.0, 1.0).tolist() == [-STEPS // 2] * 3
    if not (isinstance(column, np.ndarray) and column.dtype.kind == "c"):
        assert class_labels(column, (1, 2), 2).tolist() == [1] * 3


def test_the_ends_of_a_range():
    inside = np.array([-1.0, 5.0, 2.0, np.nextafter(5, 9), np.nextafter(-1, -9), -0.0])
    outside = np.array([np.inf, -np.inf, 1e300, -1e300, np.nan])
    assert label_steps(inside, -1.0, 5.0, None).tolist()[:5] == [-STEPS, STEPS, 0, STEPS, -STEPS]
    assert label_steps(outside, -1.0, 5.0, None).tolist() == [STEPS, -STEPS, STEPS, -STEPS, 0]
    cells = ["1e400", "-1e99999999999", "9" * 5000, "", "nan", "\x1b[31m", "5"]
    column = Cells(pa.array(cells, pa.large_string()))
    found = label_steps(column, -1.0, 5.0, None).tolist()
    assert found == [STEPS, -STEPS, STEPS, 0, 0, 0, STEPS]
    tiny = label_steps(np.array([0.0, 5e-324, 1.0]), 0.0, 5e-324, None)
    assert tiny.tolist() == [-STEPS, STEPS, STEPS]


@pytest.mark.parametrize("count", [1, (1 << 27) - 1, 1 << 27, 10**9, MOST_ROWS])
def test_the_sum_of_the_longest_rows_with_the_largest_labels_fits(count):
    unit = unit_of(count)
    assert unit == UNIT if count < 1 << 27 else count * 2 * unit * STEPS >= 1 << 63
    squared_sensitivity(unit**2, count, classes=False)
    nothing = RowSums.zeros(1, (1,))
    halves = count // 2, count - count // 2
    parts = [nothing._replace(labels=np.array([-each * unit * STEPS])) for each in halves]
    assert int(added(nothing, parts).labels[0]) == -count * unit * STEPS
    assert count * COUNT < 1 << 63


@pytest.mark.parametrize("count", [1 << 27, 10**9, MOST_ROWS])
def test_a_sum_that_may_have_wrapped_has_no_sensitivity(count):
    most = ((1 << 126) - 1) // (count * STEPS) ** 2
    squared_sensitivity(most, count, classes=True)
    for classes in (False, True):
        with pytest.raises(DataError, match="may not fit 64 bits"):
            squared_sensitivity(most + 1, count, classes=classes)


def test_many_rows_are_shorter_and_wrong_ones_are_refused_before_noise(monkeypatch):
    """A table that says it has a billion rows."""
    table = rows(np.random.default_rng(4).normal(size=(50, 3)).astype(np.float32))
    many = replace(table, count=10**9)
    few, plan = (planned(each, method(), CLASSES, "y") for each in (table, many))
    assert (few.facts.scale, plan.facts.scale) == (SCALE, SCALE / 8)
    assert (UNIT / 16) ** 2 < plan.facts.longest <= (UNIT / 8) ** 2
    assert plan.facts.sigma * 8 == pytest.approx(few.facts.sigma, rel=1e-3)
    one, other = few.weights, replace(few.weights, scale=SCALE / 8)
    cross = table.sums(one).moments.cross
    assert many.sums(other).moments.cross == pytest.approx(cross, rel=1e-2, abs=0.05)
    assert other.factors(many) == pytest.approx(one.factors(table))
    labels = np.zeros(50, np.int32)
    called = []
    monkeypatch.setattr(release_plan, "noisy", lambda *given: called.append(given))
    monkeypatch.setattr(release_plan, "unit_of", lambda count: UNIT)
    with pytest.raises(DataError, match="may not fit 64 bits"):
        drawn(many, method(), CLASSES, "y", labels)
    assert not called
