"""Exact discrete Laplace noise: the law of its digits, ties of 64 bits, and what is drawn."""

import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import chi2

from labeldp_compile.prior import discrete_laplace as laplace_noise
from labeldp_compile.prior.discrete_laplace import discrete_laplace, noisy_histogram
from runtime.tests.copied_process import COPIES, assert_unlike

SURE = 1e-12  # of chi-square; below 1e-9 of the counts, of which the least are ten

pytestmark = pytest.mark.usefixtures("secure_noise")


@pytest.mark.parametrize("x", ["1/1000000000", "1/3", "1", "5/2", "128", "300"])
@pytest.mark.parametrize("bits", [64, 640])
def test_bits_of_probabilities(x, bits):
    with mpmath.workdps(1_000):
        power = mpmath.exp(mpmath.mpf(Fraction(x).numerator) / Fraction(x).denominator)
        digit, decay = (int(mpmath.floor(2**bits * p)) for p in (1 / (1 + power), 1 / power))
    assert laplace_noise._digit(Fraction(x))(bits) == digit
    assert laplace_noise._exponential(Fraction(x))(bits) == decay


@pytest.mark.parametrize("scale", [Fraction(1, 7), Fraction(1), Fraction(20, 3)])
def test_digits_make_a_geometric_number(scale):
    """The product of the digits' probabilities, in exact bits, is the geometric law."""
    count, one = 6, 2**2_000
    digits = [Fraction(laplace_noise._digit(2**i / scale)(2_000), one) for i in range(count)]
    above = Fraction(laplace_noise._exponential(2**count / scale)(2_000), one)
    q = Fraction(laplace_noise._exponential(1 / scale)(2_000), one)
    for g in (0, 1, 2, 5, 31, 63, 64, 130):
        found = above ** (g >> count) * (1 - above)
        for i, digit in enumerate(digits):
            found *= digit if g >> i & 1 else 1 - digit
        assert abs(found / ((1 - q) * q**g) - 1) < Fraction(1, 10**20)


@pytest.mark.parametrize(("further", "expected"), [([-1], True), ([1], False), ([0, -1], True)])
def test_words_that_decide_nothing_are_followed_by_more(monkeypatch, further, expected):
    x = Fraction(1, 3)
    floors = [laplace_noise._digit(x)(bits) for bits in (64, 128, 192)]
    words = [floor % 2**64 for floor in floors]
    more = iter([(w + d).to_bytes(8, "little") for w, d in zip(words[1:], further, strict=False)])
    monkeypatch.setattr(
        laplace_noise, "random_words", lambda count: np.array([words[0]] * count, np.uint64)
    )
    monkeypatch.setattr(laplace_noise, "random_bytes", lambda count: next(more))
    assert laplace_noise._happens(1, laplace_noise._digit(x)).tolist() == [expected]
    assert next(more, None) is None


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(1, 2), Fraction(3), Fraction(100, 7)])
def test_what_is_drawn_is_discrete_laplace(scale):
    n = 100_000
    seen, q = Counter(discrete_laplace(n, scale)), math.exp(-1 / scale)
    chance = {x: (1 - q) / (1 + q) * q ** abs(x) for x in range(-200, 201)}
    likely = {x: n * p for x, p in chance.items() if n * p > 10}
    rest = n - sum(likely.values())
    terms = [(seen[x] - e) ** 2 / e for x, e in likely.items()]
    if rest > 10:
        terms.append((n - sum(seen[x] for x in likely) - rest) ** 2 / rest)
    assert sum(terms) < chi2.isf(SURE, max(len(terms) - 1, 1))


def test_numbers_above_all_digits(limit):
    """The part above 2^m, which is nearly never drawn, is drawn with its own probability."""
    limit(laplace_noise, "_LENGTH", 1)
    n, scale = 50_000, Fraction(10)
    seen, q = Counter(discrete_laplace(n, scale)), math.exp(-1 / scale)
    for x in range(-40, 41):
        expected = n * (1 - q) / (1 + q) * q ** abs(x)
        assert abs(seen[x] - expected) < 8 * math.sqrt(expected)


def test_large_scales_and_no_counts():
    wide = discrete_laplace(1_000, Fraction(2**70))
    assert max(map(abs, wide)) > 2**68 and len(set(wide)) == 1_000
    assert len({x % 16 for x in wide}) == 16
    assert discrete_laplace(0, Fraction(3)) == []


def test_opendp_certifies_no_more_than_is_stated():
    """Another library's privacy map, which rounds up, on the scale that was chosen."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    for text in ("1/10", "1/3", "0.062155", "7", "123456789/10000000000"):
        noisy = noisy_histogram(np.zeros(1, dtype=np.int64), Fraction(text))
        assert Fraction(2) / Fraction(noisy.scale) <= Fraction(text)
        stated = dp.m.make_laplace(*space, scale=noisy.scale).map(2)
        assert stated == pytest.approx(float(Fraction(text)), rel=1e-15)


@pytest.mark.parametrize("copy", COPIES)
def test_noise_of_a_copied_process(copying_process, copy):
    imports = """
import numpy as np
from fractions import Fraction
from labeldp_compile.prior.discrete_laplace import noisy_histogram
"""
    draw = "repr(noisy_histogram(np.zeros(100, np.int64), Fraction(1, 100)).counts).encode()"
    assert_unlike(copying_process, copy, imports, draw)
