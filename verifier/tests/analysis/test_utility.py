"""Exact bias and loss against a plain double sum over the matrix."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verifier.tests.analysed import biases, noisy_label_loss
from verifier.tests.analysis.test_privacy import small_randomizers
from verifier.tests.integers import plain_counts, response

POINT = {
    "squared": lambda v, y: (Fraction(v) - y) ** 2 / 2,
    "absolute": lambda v, y: abs(Fraction(v) - y),
    "zero_one": lambda v, y: Fraction(Fraction(v) != y),
}


def labels_for(randomizer):
    return [Fraction(3 * i - 4, 2) for i in range(len(randomizer.offsets))]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(small_randomizers(), st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_rational_losses_and_bias(randomizer, numbers):
    labels = labels_for(randomizer)
    weights = [n + (i == 0) for i, n in enumerate(numbers[: len(labels)])]
    counts = [plain_counts(randomizer, row) for row in range(len(labels))]
    for loss, point in POINT.items():
        plain = sum(
            weight * n * point(v, y)
            for weight, y, row in zip(weights, labels, counts, strict=True)
            for v, n in row.items()
        ) / (sum(weights) * 256)
        assert noisy_label_loss(randomizer, labels, weights, loss) == (plain, plain)
    plain_bias = [
        sum(n * Fraction(v) for v, n in row.items()) / 256 - y
        for y, row in zip(labels, counts, strict=True)
    ]
    assert biases(randomizer, labels) == plain_bias


def test_poisson_loss_is_enclosed():
    values = [0.3, 1.0, 2.5]
    r = response(values, [0, 1, 2, 2], Fraction(1), 10)
    labels, weights = [Fraction(i) for i in range(4)], [5, 4, 0, 1]
    plain = sum(
        w * n * (v - y * math.log(v))
        for w, y, row in zip(weights, range(4), range(4), strict=True)
        for v, n in plain_counts(r, row).items()
    ) / (10 * 1024)
    low, high = noisy_label_loss(r, labels, weights, "poisson")
    assert 0 <= high - low < Fraction(1, 10**60)
    assert float(low) == pytest.approx(plain, rel=1e-12)


def test_poisson_loss_is_infinite_at_zero():
    r = response([0.0, 1.0], [0, 1], Fraction(1), 8)
    with pytest.raises(ValueError, match="infinite"):
        noisy_label_loss(r, [Fraction(0), Fraction(1)], [1, 1], "poisson")
    # A positive label of no weight does not matter.
    low, high = noisy_label_loss(r, [Fraction(0), Fraction(1)], [1, 0], "poisson")
    assert low == high == Fraction(r.base[1], 256)


def test_categories_have_only_the_zero_one_loss():
    r = response(["a", "b"], [0, 1], Fraction(1), 8)
    wrong = Fraction(r.base[0], 256)
    assert noisy_label_loss(r, ["a", "b"], [1, 1], "zero_one") == (wrong, wrong)
