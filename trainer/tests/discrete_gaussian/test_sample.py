"""The vectorised sampler against the exact distribution, and on words that seldom occur."""

import math
from fractions import Fraction

import numpy as np
import pytest
from labeldp_trainer.discrete_gaussian import sample
from labeldp_trainer.discrete_gaussian.sample import Words, discrete_gaussian, secret_key
from labeldp_verify.forms.exact_numbers import exp_bounds
from scipy import stats

KEY = np.arange(8, dtype=np.uint32)
NEVER = 1e-10  # the key is fixed, so that this cannot fail by chance


@pytest.mark.parametrize("sigma", [1, 2, 3, 5, 16])
def test_small_scales_against_all_probabilities(sigma):
    count = 400_000
    drawn = discrete_gaussian(Words(KEY, 0, sigma).draw, count, sigma)
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


@pytest.mark.parametrize("sigma", [2**20, 2**31 - 1, 88_428_673_001, 2**58])
def test_large_scales_against_the_normal_distribution(sigma):
    drawn = discrete_gaussian(Words(KEY, 1, 0).draw, 200_000, sigma)
    assert drawn.dtype == np.int64
    assert stats.kstest(drawn / sigma, "norm").pvalue > NEVER
    assert np.unique(drawn).size > 170_000  # 2^20 has about six sigmas of values
    for divisor in (2, 3, 10, 16):  # residues of the lattice are uniform
        residues = np.bincount(drawn % divisor, minlength=divisor)
        assert stats.chisquare(residues).pvalue > NEVER


def test_neighbours_are_independent():
    drawn = discrete_gaussian(Words(KEY, 2, 0).draw, 200_000, 2**30).astype(float)
    for lag in (1, 2, 64):
        assert abs(np.corrcoef(drawn[:-lag], drawn[lag:])[0, 1]) < 7 / math.sqrt(drawn.size)


def test_whole_parts_have_the_stated_probabilities():
    """The cumulative table, of 192 bits, from other arithmetic than the sampler's."""
    bounds, first_words = sample._cumulative()
    assert [bound >> 128 for bound in bounds] == first_words.tolist()
    weights = [exp_bounds(Fraction(-k * k, 2)) for k in range(40)]
    total = [sum(w[i] for w in weights) for i in (0, 1)]
    below = [Fraction(0), Fraction(0)]
    for weight, bound in zip(weights, bounds, strict=False):
        below = [below[0] + weight[0], below[1] + weight[1]]
        stated = Fraction(bound, 1 << 192)
        assert below[0] / total[1] - Fraction(1, 1 << 190) <= stated
        assert stated <= below[1] / total[0] + Fraction(1, 1 << 190)
    assert len(bounds) == 16


class Given:
    """Words that a test chooses."""

    def __init__(self, *words):
        self._words = list(words)

    def __call__(self, count):
        now, self._words = self._words[:count], self._words[count:]
        assert len(now) == count
        return np.array(now, np.uint64)


@pytest.mark.parametrize("place", range(16))
def test_a_word_on_the_border_is_decided_by_further_ones(place):
    """Each bound of 192 bits, its predecessor and its successor."""
    bounds, _ = sample._cumulative()
    for number in (bounds[place] - 1, bounds[place], bounds[place] + 1):
        given = Given(*(number >> shift & 2**64 - 1 for shift in (128, 64, 0)))
        assert sample._whole_parts(given, 1).tolist() == [sum(number >= edge for edge in bounds)]


@pytest.mark.parametrize(
    ("z", "least", "further", "falls"),
    [
        ((4, 9), (5, 0), (), True),
        ((5, 0), (5, 0), (), False),  # x = 5/σ: no further bits, and z is not below it
        ((5, 8), (5, 9), (), True),
        ((5, 9), (5, 8), (), False),
        ((5, 9), (5, 9), (1, 2), True),
        ((5, 9), (5, 9), (2, 1), False),
        ((6, 0), (5, 9), (), False),
    ],
)
def test_ties_are_decided_by_further_bits(z, least, further, falls):
    pairs = [sample._Real(*(np.array([n], np.uint64) for n in pair)) for pair in (z, least)]
    assert sample._below(Given(*further), *pairs).tolist() == [falls]


def test_a_trial_counts_how_often_numbers_fall():
    """j = 7 of σ = 10, k = 0: 5.3 falls and side 0 of 2 counts; 9 does not fall: one is odd."""
    j, k, sigma = np.array([7], np.uint64), np.array([0]), np.uint64(10)
    assert sample._trial(Given(7, 1), j, k, sigma).tolist() == [True]
    # j = 7; its sides are 0 (counts) and 1 of 2·0 + 2: the first needs a number below x.
    assert sample._trial(Given(5, 3, 0, 6, 9, 1), j, k, sigma).tolist() == [False]
    assert sample._trial(Given(5, 3, 0, 7), j, k, sigma).tolist() == [True]
    assert sample._trial(Given(5, 3, 1), j, k, sigma).tolist() == [True]
    one = np.array([1])  # of four sides, two count without a further number
    assert sample._trial(Given(5, 3, 1, 9, 1), j, one, sigma).tolist() == [False]


def test_words_beyond_the_last_multiple_are_drawn_again():
    bounds = np.array([6, 2, 6], np.uint64)
    last = 2**64 - 1 - (2**64 % 6)
    given = Given(last, 2**64 - 1, last + 1, 10)
    assert sample._uniform(given, 3, bounds).tolist() == [5, 1, 4]
    assert sample._uniform(Given(last, last + 1, last + 1, 7), 2, np.uint64(6)).tolist() == [5, 1]


def test_streams():
    one = Words(KEY, 1, 5)
    first, second = one.draw(3), one.draw(3)
    again = Words(KEY, 1, 5).draw(6)
    assert np.array_equal(np.concatenate([first, second]), again)
    others = [Words(KEY, 2, 5), Words(KEY, 1, 6), Words(secret_key(), 1, 5)]
    assert all(not np.array_equal(other.draw(6), again) for other in others)
    assert not np.array_equal(secret_key(), secret_key())
