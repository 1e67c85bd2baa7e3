"""The running graph gives exactly the certified counts: every word at a small B, every label."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.forms import (
    IntegerDomain,
    RealDomain,
    WindowRandomizer,
)
from labeldp_verify.forms.randomizers import Segment
from labeldp_verify.graph import BucketGrid, choose_grid, grid_entries

from verifier.tests.files import all_words, file_of, run
from verifier.tests.integers import plain_counts, response, top_k


def assert_exact(model, randomizer, labels):
    words = all_words(randomizer.word_bits)
    for row, label in enumerate(labels):
        dtype = object if isinstance(label, str) else type(label)
        got = run(model, np.full(len(words), label, dtype=dtype), words)
        assert Counter(got) == plain_counts(randomizer, row)


def test_unbiased_rounding_keeps_the_mean():
    # The second word rounds up exactly for the share of words that the fraction demands.
    domain = RealDomain(-1.0, 1.0, 5, "unbiased")
    values = [float(y) for y in domain.labels()]
    randomizer = response(values, range(5), Fraction(40))
    model = file_of(domain, randomizer, Fraction(40), loss="squared")
    assert check_bytes(model).ok
    second = (np.arange(64, dtype=np.uint64) << np.uint64(58)) | np.uint64(12345)
    first = np.full(64, 2**63 - 1, np.uint64)  # u in the extra line: the likeliest output
    for label, mean in [(-0.9, -0.9), (0.3, 0.3), (0.5, 0.5), (2.0, 1.0), (float("nan"), -1.0)]:
        got = run(model, np.full(64, label), np.stack([first, second], axis=1))
        assert set(got) <= set(values)
        assert np.mean(got) == pytest.approx(mean, abs=0.5 / 64)


def test_segments_of_one_integer_on_both_lines():
    extra = tuple(Segment(1, i % 3) for i in range(12))
    randomizer = WindowRandomizer(4, (2, 1, 1), extra, (0, 0), (1.0, 2.0, 3.0))
    model = file_of(IntegerDomain(1, 2), randomizer, Fraction(3), loss="squared")
    assert check_bytes(model).ok
    assert_exact(model, randomizer, range(1, 3))


def test_three_grids_agree_with_one():
    # RRTop-k: the far part of its extra line has narrower segments.
    domain = IntegerDomain(0, 7)
    randomizer = top_k([float(i) for i in range(8)], [0, 2, 3, 5, 6], Fraction(5), 13)
    far = randomizer.base_total + 5 * randomizer.window
    for grid in (BucketGrid(2, 9, 5, far), BucketGrid(3, 3, 6, far), BucketGrid(0, 0)):
        model = file_of(domain, randomizer, Fraction(5), grid=grid, loss="zero_one")
        assert check_bytes(model).ok
        assert_exact(model, randomizer, range(8))
    with pytest.raises(ValueError, match="segment boundary"):
        file_of(domain, randomizer, Fraction(5), grid=BucketGrid(2, 9, 5, far + 1), loss="zero_one")


def test_many_narrow_outputs_get_a_grid_of_their_own():
    values = [float(i) for i in range(3000)]
    randomizer = top_k(values, range(2000), Fraction(9))
    grid = choose_grid(randomizer)
    assert grid.far_start == randomizer.base_total + 2000 * randomizer.window
    assert sum(1 for _ in grid_entries(randomizer, grid)) < 20 * 2000
    report = check_bytes(file_of(IntegerDomain(0, 2999), randomizer, 9, "zero_one", grid=grid))
    assert report.ok, report.checks
