"""The noise that is drawn: its distribution."""

import math
from itertools import repeat

import numpy as np
import pytest
from labeldp_trainer.discrete_gaussian.noise import noisy, with_float
from scipy.stats import chi2

DRAWS, PER_DRAW = 12, 10_000
SURE = 1e-10  # how likely a test fails that need not, one by one

pytestmark = pytest.mark.usefixtures("secure_noise")


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
