"""The noise that is drawn: its distribution, and what a release tells two neighbours apart by."""

import dataclasses
import math
from itertools import repeat

import numpy as np
import pytest
from labeldp_trainer.discrete_gaussian.draw import noisy, with_float
from scipy.stats import chi2

from benchmarks.one_release_audit import cases, proved
from tests.copied_process import COPIES
from tests.runtime.test_copied_processes import assert_unlike

DRAWS, PER_DRAW = 12, 10_000
SURE = 1e-10  # how likely a test fails that need not, one by one


def test_moments_of_the_noise():
    sigma = 1000
    sample = np.concatenate(
        [noisy(np.zeros((PER_DRAW, 1), np.int64), sigma) for _ in range(DRAWS)]
    ).ravel()
    n = len(sample)
    assert abs(sample.mean()) < 7 * sigma / math.sqrt(n)
    total = np.square(sample / sigma).sum()
    assert chi2.ppf(SURE, n) < total < chi2.isf(SURE, n)
    assert np.unique(sample % 10).tolist() == list(range(10))  # no coarser lattice


def test_sums_beyond_the_ends_are_the_ends():
    ends = np.array([[2**63 - 1], [-(2**63)]], np.int64)
    found = np.concatenate([noisy(ends, 64) for _ in repeat(None, 20)], axis=1)
    assert (found[0] > 2**62).all() and (found[1] < -(2**62)).all()
    assert (found == ends).any() and (found != ends).any()


@pytest.mark.parametrize("copy", COPIES)
def test_noise_of_a_copied_process(copying_process, copy):
    imports = "import numpy as np; from labeldp_trainer.discrete_gaussian.draw import noisy"
    assert_unlike(copying_process, copy, imports, "noisy(np.zeros((20, 2), np.int64), 1_000)")


@pytest.mark.parametrize("sigma", [64, (1 << 40) - 1, (1 << 40) + 1, 88_428_673, (1 << 59) + 12345])
def test_scales_are_floats_and_no_smaller(sigma):
    found = with_float(sigma)
    assert int(float(found)) == found
    assert sigma <= found <= sigma * (1 + 2**-39)


def test_a_scale_that_is_no_float_is_refused():
    with pytest.raises(ValueError, match="float64"):
        noisy(np.zeros((1, 1), np.int64), (1 << 60) + 1)


def test_large_sums_keep_all_digits():
    """No float between the sum and what is released."""
    total = np.array([[(1 << 60) + 1], [-(1 << 60) - 1], [3]], np.int64)
    found = [noisy(total, 64) for _ in range(5)]
    assert max(np.abs(one - total).max() for one in found) < 64 * 12


@pytest.mark.parametrize("name", ["classes", "numbers", "users"])
def test_releases_of_neighbours_are_told_apart_as_stated_and_no_better(name):
    case = cases(1.0)[name]
    assert 0.2 < proved(case, case.plan(), 10_000) <= 1


def test_a_third_of_the_noise_is_found():
    case = cases(1.0)["classes"]
    plan = case.plan()
    assert proved(case, dataclasses.replace(plan, sigma=plan.sigma // 3), 10_000) > 1.3
