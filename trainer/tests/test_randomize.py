"""The trainer's own randomizers, integer by integer."""

import itertools
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from labeldp_trainer import randomize
from labeldp_trainer.randomize import (
    STEPS,
    NoisyOneHot,
    RRWithRowPriors,
    dealt,
    exact,
)
from labeldp_verify.analysis.probabilities import row
from labeldp_verify.forms import exact_numbers as exp_bound
from labeldp_verify.forms.exact_numbers import exp_lower

from labeldp_compile.mechanisms.randomized_response import best_k
from labeldp_compile.rounding.windows import rr_top_k
from trainer.tests.noise import words_from

EPSILONS = [1e-6, 0.01, 0.1, 0.3, 1.0, 2.5, 8.0, 30.0, 60.0]
NEVER = 1e-9  # chance of a false alarm


def words_of(bits):
    """Every word once, in the high bits, as the randomizers read them."""
    return np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_ratio_is_below_and_close(epsilon):
    lower = exp_lower(exact(epsilon))
    assert lower <= exp_bound.exp_upper(exact(epsilon))
    assert exp_bound.exp_lower(exact(epsilon)) * (1 - Fraction(1, 10**49)) <= lower
    third = Fraction(1, 3)  # no decimal
    assert exp_lower(third) <= exp_bound.exp_upper(third)


def test_epsilon_is_the_decimal_that_is_written():
    assert exact(0.1) == Fraction(1, 10)
    assert exact(1e-6) == Fraction(1, 10**6)


def counts(randomizer, order, kept, label, bits):
    """How many of all words lead to each class."""
    words = words_of(bits)
    answers = randomizer.answers(
        np.broadcast_to(np.array(order), (len(words), len(order))),
        np.full(len(words), kept),
        np.full(len(words), label),
        words,
    )
    return np.bincount(answers, minlength=len(order))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_every_order_every_k_every_label(epsilon):
    """All words of 9 bits under every prior order: the ratio, and what the compiler builds."""
    bits, classes = 9, 4
    randomizer = RRWithRowPriors(classes, exact(epsilon), bits)
    for kept in range(1, classes + 1):
        for order in itertools.permutations(range(classes)):
            table = [counts(randomizer, order, kept, y, bits) for y in range(classes)]
            for answer in range(classes):
                column = [int(table[y][answer]) for y in range(classes)]
                if answer in order[:kept]:
                    assert Fraction(max(column), min(column)) <= randomizer.ratio
                else:
                    assert max(column) == 0
            for y in order[:kept]:
                assert table[y][y] == table[y].max()
            if list(order[:kept]) == sorted(order[:kept]):
                compiled = rr_top_k(range(classes), order[:kept], exact(epsilon), bits)
                for y in range(classes):
                    expected = row(compiled, y)
                    if kept > 1:
                        assert table[y][list(order[:kept])].tolist() == expected


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
def test_long_words(epsilon, classes):
    """b + X ≤ r·b for every m, and even hands stay between b and b + X."""
    randomizer = RRWithRowPriors(classes, exact(epsilon))
    for m in range(1, classes + 1):
        b = int(randomizer.base[m])
        rest = (1 << 62) - m * b
        assert rest >= 0
        assert b + rest <= randomizer.ratio * b
        if m > 1:
            assert b == ceil((1 << 62) / (exp_bound.exp_lower(exact(epsilon)) + m - 1))


def test_too_small_an_epsilon():
    with pytest.raises(ValueError, match="too small for 5 classes"):
        RRWithRowPriors(5, Fraction(1, 10**6), 9)


def test_hands_are_dealt_evenly():
    for total, hands in itertools.product(range(1, 30), range(1, 8)):
        index = np.arange(total)
        to = dealt(index, np.full(total, total), np.full(total, hands))
        got = np.bincount(to, minlength=hands)
        assert got.tolist() == [total // hands + (i < total % hands) for i in range(hands)]


def test_the_best_k_is_that_of_the_compiler():
    random = np.random.default_rng(0)
    for epsilon in (0.1, 1.0, 4.0):
        randomizer = RRWithRowPriors(6, exact(epsilon))
        weights = random.integers(0, 1000, (300, 6)) ** 2
        weights[:, 0] += 1
        chosen = randomizer.choose_k(-np.sort(-weights, axis=1).astype(float))
        assert chosen.tolist() == [best_k(w.tolist(), exact(epsilon)) for w in weights]
    assert RRWithRowPriors(6, exact(0.1)).choose_k(np.full((1, 6), 1 / 6)) == 6


def test_one_word_a_label_and_bad_priors_are_uniform(monkeypatch):
    drawn = []

    def words(*shape):
        drawn.append(shape)
        return np.arange(shape[0], dtype=np.uint64) * np.uint64(2**59)

    monkeypatch.setattr(randomize, "_CHUNK", 12)  # parts of 3 rows
    randomizer = RRWithRowPriors(4, exact(1.0))
    labels = np.tile(np.arange(4, dtype=np.int32), 8)
    prior = np.tile([0.1, 0.2, 0.3, 0.4], (32, 1))
    prior[::2, 1], prior[1::2, 3] = np.nan, np.inf
    with words_from(words):
        one, other = randomizer.randomize(labels, prior), randomizer.randomize(labels)
    np.testing.assert_array_equal(one, other)
    assert drawn == [(32,), (32,)]
    assert randomizer.randomize(labels[:0]).shape == (0,)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_noise_of_an_entry(epsilon):
    """Exactly (ε/2)-DP, and the clamped discrete Laplace distribution to 1e-9."""
    weights = NoisyOneHot(exact(epsilon)).weights
    assert sum(weights) == 1 << 62
    assert len(weights) == STEPS + 1
    ratio = max(Fraction(a, b) for a, b in zip(weights, weights[::-1], strict=True))
    assert ratio <= exp_lower(exact(epsilon) / 2)
    decay = np.exp(-epsilon / (2 * STEPS))
    noise = np.arange(STEPS + 1)
    ideal = decay**noise * -np.expm1(-epsilon / (2 * STEPS)) / (1 + decay)
    ideal[0], ideal[-1] = 1 / (1 + decay), decay**STEPS / (1 + decay)
    np.testing.assert_allclose(np.array(weights, float) / 2**62, ideal, rtol=1e-9, atol=1e-18)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_a_noisy_label_by_all_words(epsilon):
    """Every word of 10 bits for an entry, then every output of a label of three classes."""
    bits, steps, classes = 10, 4, 3
    randomizer = NoisyOneHot(exact(epsilon), steps, bits)
    words = words_of(bits)
    zero, one = (
        np.bincount(randomizer.entries(np.full(len(words), bit), words), minlength=steps + 1)
        for bit in (False, True)
    )
    assert zero.tolist() == list(randomizer.weights)
    assert one.tolist() == zero[::-1].tolist()
    largest = Fraction(0)
    for output in itertools.product(range(steps + 1), repeat=classes):
        chances = [
            np.prod([int((one if c == y else zero)[o]) for c, o in enumerate(output)], dtype=object)
            for y in range(classes)
        ]
        largest = max(largest, Fraction(max(chances), min(chances)))
    assert 1 < largest <= exp_lower(exact(epsilon))
