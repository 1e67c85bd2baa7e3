"""The vectorised sampler against the exact distribution, and on words that seldom occur."""

import math
from fractions import Fraction

import numpy as np
import pytest
from labeldp_trainer.discrete_gaussian import sample
from labeldp_trainer.discrete_gaussian.sample import discrete_gaussian
from labeldp_trainer.discrete_gaussian.words import Words, secret_key
from labeldp_verify.analysis.bounds import exp_bounds
from scipy import stats

KEY = np.arange(8, dtype=np.uint32)
NEVER = 1e-10  # the key is fixed, so that this cannot fail by chance


@pytest.mark.parametrize("exponent", [1, 2, 4])
def test_small_scales_against_all_probabilities(exponent):
    count, sigma = 400_000, 2**exponent
    drawn = discrete_gaussian(Words(KEY, 0, exponent), count, exponent)
    values = np.arange(-4 * sigma, 4 * sigma + 1)
    weights = np.exp(-(values.astype(float) ** 2) / (2 * sigma**2))
    everything = np.arange(-40 * sigma, 40 * sigma + 1).astype(float)
    expected = count * weights / np.exp(-(everything**2) / (2 * sigma**2)).sum()
    seen = np.array([(drawn == value).sum() for value in values])
    rest = count - expected.sum()
    statistic = ((seen - expected) ** 2 / expected).sum()
    statistic += (count - seen.sum() - rest) ** 2 / rest
    assert stats.chi2.sf(statistic, values.size) > NEVER
    assert np.abs(drawn).max() < 8 * sigma


@pytest.mark.parametrize("exponent", [20, 31, 58])
def test_large_scales_against_the_normal_distribution(exponent):
    drawn = discrete_gaussian(Words(KEY, 1, exponent), 200_000, exponent)
    assert drawn.dtype == np.int64
    assert stats.kstest(drawn / 2.0**exponent, "norm").pvalue > NEVER
    assert np.unique(drawn).size > 170_000  # 2^20 has about six sigmas of values
    low = drawn & 15  # residues of the lattice are uniform
    assert stats.chisquare(np.bincount(low, minlength=16)).pvalue > NEVER
    assert stats.chisquare(np.bincount(drawn >> (exponent - 4) & 1)).pvalue > NEVER


def test_neighbours_are_independent():
    drawn = discrete_gaussian(Words(KEY, 2, 0), 200_000, 30).astype(float)
    for lag in (1, 2, 64):
        assert abs(np.corrcoef(drawn[:-lag], drawn[lag:])[0, 1]) < 7 / math.sqrt(drawn.size)


def test_whole_parts_have_the_stated_probabilities():
    """The cumulative table, of 128 bits, from other arithmetic than the sampler's."""
    high, low = sample._cumulative()
    weights = [exp_bounds(Fraction(-k * k, 2)) for k in range(40)]
    total = [sum(w[i] for w in weights) for i in (0, 1)]
    below = [Fraction(0), Fraction(0)]
    for k, (upper, lower) in enumerate(zip(high, low, strict=True)):
        below = [below[0] + weights[k][0], below[1] + weights[k][1]]
        stated = Fraction((int(upper) << 64) + int(lower), 1 << 128)
        assert below[0] / total[1] - Fraction(1, 1 << 127) <= stated
        assert stated <= below[1] / total[0] + Fraction(1, 1 << 127)
    assert len(high) == 13


class Given(Words):
    """Words that a test chooses."""

    def __init__(self, *words):
        self._words = list(words)

    def draw(self, count):
        now, self._words = self._words[:count], self._words[count:]
        assert len(now) == count
        return np.array(now, np.uint64)


@pytest.mark.parametrize("place", range(13))
def test_a_word_on_the_border_is_decided_by_the_next_one(place):
    """Each bound of 128 bits, its predecessor and its successor."""
    high, low = sample._cumulative()
    bound = (int(high[place]) << 64) + int(low[place])
    exact = [(int(h) << 64) + int(w) for h, w in zip(high, low, strict=True)]
    for number in (bound - 1, bound, bound + 1):
        given = Given(number >> 64, number & (1 << 64) - 1)
        found = sample._whole_parts(given, 1)
        assert found.tolist() == [sum(number >= edge for edge in exact)]


def test_ties_are_decided_by_further_words():
    """x has no further bits, so that a word equal to x is not below it; others have."""
    x, k = np.array([7], np.uint64), np.array([0])
    assert sample._trial(Given(7), x, k).tolist() == [True]
    # z = 5 falls; then 0 < x counts (side 0 of 2); a tie with 5 is decided by 1 < 2, …
    falling = Given(5, 0, 3, 5, 1, 2, 1, 9)
    # … and side 1 of 2 does not count: one fall with its event, an odd number.
    assert sample._trial(falling, x, k).tolist() == [False]
    staying = Given(5, 0, 3, 5, 2, 1)
    assert sample._trial(staying, x, k).tolist() == [False]


def test_words_beyond_the_last_multiple_are_drawn_again():
    bounds = np.array([6, 2, 6], np.uint64)
    last = 2**64 - 1 - (2**64 % 6)
    given = Given(last, 2**64 - 1, last + 1, 10)
    assert sample._uniform(given, bounds).tolist() == [5, 1, 4]


def test_streams():
    one = Words(KEY, 1, 5)
    first, second = one.draw(3), one.draw(3)
    again = Words(KEY, 1, 5).draw(6)
    assert np.array_equal(np.concatenate([first, second]), again)
    others = [Words(KEY, 2, 5), Words(KEY, 1, 6), Words(secret_key(), 1, 5)]
    assert all(not np.array_equal(other.draw(6), again) for other in others)
    assert not np.array_equal(secret_key(), secret_key())


@pytest.mark.parametrize(
    ("key", "purpose", "number"),
    [(KEY[:2], 0, 0), (KEY.astype(np.int64), 0, 0), (KEY, 256, 0), (KEY, 0, 1 << 56), (KEY, -1, 0)],
)
def test_streams_that_are_refused(key, purpose, number):
    with pytest.raises(ValueError, match=r"a key has eight words|a stream needs"):
        Words(key, purpose, number)


@pytest.mark.parametrize("exponent", [0, 59])
def test_scales_that_are_refused(exponent):
    with pytest.raises(ValueError, match="between 1 and 58"):
        discrete_gaussian(Words(KEY, 0, 0), 1, exponent)
