"""Clopper–Pearson bounds against the definition, in exact arithmetic."""

import math
from fractions import Fraction

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
