"""Clopper–Pearson bounds against the definition, in exact arithmetic."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from labeldp_compile.audits.statistics import lower_bound, upper_bound


def tail(c, n, p):
    """Pr[X ≥ c], exact."""
    p = Fraction(p)
    return sum(math.comb(n, x) * p**x * (1 - p) ** (n - x) for x in range(c, n + 1))


@pytest.mark.parametrize("error", [0.05, 1e-6, 1e-12])
@pytest.mark.parametrize("n", [1, 7, 40])
def test_bounds_are_where_the_tail_has_the_error(n, error):
    for c in range(n + 1):
        low, high = float(lower_bound(c, n, error)), float(upper_bound(c, n, error))
        assert 0 <= low <= c / n <= high <= 1
        if c:
            assert float(tail(c, n, low)) == pytest.approx(error, rel=1e-6)
        if c < n:
            assert 1 - float(tail(c + 1, n, high)) == pytest.approx(error, rel=1e-4, abs=1e-15)


def test_large_counts_at_a_small_error():
    # The tail summed term by term, from logarithms of factorials of 40 digits.
    c, n, error = 30_000, 1_650_000, 4e-8
    low = float(lower_bound(c, n, error))
    with mpmath.workdps(40):
        p = mpmath.mpf(low)
        logarithm = mpmath.loggamma(n + 1) - mpmath.loggamma(c + 1) - mpmath.loggamma(n - c + 1)
        term = mpmath.exp(logarithm + c * mpmath.log(p) + (n - c) * mpmath.log(1 - p))
        total = mpmath.mpf(0)
        for x in range(c, c + 3000):
            total += term
            term *= mpmath.mpf(n - x) / (x + 1) * p / (1 - p)
    assert float(total) == pytest.approx(error, rel=1e-6)


def test_bounds_hold_as_often_as_they_say():
    generator, p = np.random.default_rng(5), 0.03
    seen = generator.binomial(500, p, 200_000)
    values, counts = np.unique(seen, return_counts=True)
    for bound, misses in ((lower_bound, np.greater), (upper_bound, np.less)):
        wrong = counts[misses(bound(values, 500, 0.01), p)].sum() / len(seen)
        assert 0.001 < wrong <= 0.0107
