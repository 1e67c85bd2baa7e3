"""Radii in the place of dual values: what they stand for, and that they prove what holds only."""

import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from labeldp_verify.analysis.losses import radius_bound
from labeldp_verify.analysis.lower_bound import radii_of
from labeldp_verify.forms.exact_numbers import ExactNumbers

SIDES = {"absolute": (1, 1), "quantile(9/10)": (Fraction(9, 10), Fraction(1, 10))}
SIDES["under_over(1/3,5/2)"] = Fraction(1, 3), Fraction(5, 2)
LOSSES = ["squared", *SIDES]


def least_of_f(loss, labels, weights, growth, radii):
    """The exact minimum of F, from every piece between the points where something changes."""
    total = sum(weights)
    under, over = SIDES.get(loss, (1, 1))

    def h(y, w, r, v):
        gap = abs(v - y) ** 2 - r**2
        if loss != "squared":
            gap = 2 * (max(under * (y - v), over * (v - y)) - under * r)
        return Fraction(w, 2 * total) * gap

    def value(v):
        terms = [h(y, w, r, v) for y, w, r in zip(labels, weights, radii, strict=True)]
        return sum(terms) + growth * sum(min(term, 0) for term in terms)

    sides = -1, 0, Fraction(under) / over
    turns = {y + side * r for y, r in zip(labels, radii, strict=True) for side in sides}
    points = sorted(turns)
    if loss == "squared":
        for left, right in pairwise(sorted(turns)):
            middle = (left + right) / 2
            factors = [
                w * (1 + growth * (abs(middle - y) < r))
                for y, w, r in zip(labels, weights, radii, strict=True)
            ]
            bottom = Fraction(
                sum(f * y for f, y in zip(factors, labels, strict=True)), sum(factors)
            )
            if left < bottom < right:
                points = [*points, bottom]
        outer = Fraction(sum(w * y for w, y in zip(weights, labels, strict=True)), total)
        points = [*points, outer]
    return min(map(value, points))


@pytest.mark.parametrize("loss", LOSSES)
def test_f_is_decided_as_its_exact_minimum_says(loss):
    rng = random.Random(1)
    answers = set()
    for _ in range(400):
        k = rng.randint(2, 7)
        labels = sorted({Fraction(rng.randint(-20, 20), rng.choice([1, 2])) for _ in range(k)})
        weights = [rng.choice([0, 1, 1, 2, 5]) for _ in labels]
        weights[0] += not any(weights)
        size = rng.choice([1, 2, 4, 8])
        radii = [Fraction(rng.randint(0, 12 * size), 2 * size) for _ in labels]
        growth = Fraction(rng.choice([0, 1, 5, 40]), 3)
        least = least_of_f(loss, labels, weights, growth, radii)
        bound = radius_bound(
            ExactNumbers.of(labels), weights, growth + 1, ExactNumbers.of(radii), loss
        )
        assert (bound is not None) == (least >= 0)
        answers.add(bound is not None)
        if bound is not None:
            under = SIDES.get(loss, (1, 1))[0]
            terms = [r**2 / 2 if loss == "squared" else under * r for r in radii]
            mean = sum(w * t for w, t in zip(weights, terms, strict=True))
            assert bound == mean / sum(weights)
    assert answers == {True, False}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_minimum_of_exactly_zero_is_enough_and_a_hair_less_is_not(loss):
    # Two labels, one output between them that is as good as each radius says.
    labels, weights, up = ExactNumbers.of([0, 2]), [1, 1], Fraction(5)
    under, over = SIDES.get(loss, (1, 1))
    radii = ExactNumbers.of([Fraction(min(under, over)) / under] * 2)
    assert radius_bound(labels, weights, Fraction(1), radii, loss) is not None
    above = ExactNumbers.of([radii[0], radii[0] + Fraction(1, 10**30)])
    assert radius_bound(labels, weights, Fraction(1), above, loss) is None
    assert radius_bound(labels, weights, up, ExactNumbers.of([0, 0]), loss) == 0


def test_radii_follow_lines_between_knots_rounded_down():
    assert radii_of([0, 3, 4, 8], [10, 0, 7, 8], 9).tolist() == [10, 6, 3, 0, 7, 7, 7, 7, 8]
    rng = np.random.default_rng(3)
    knots = np.union1d(rng.integers(0, 500, 20), [0, 499])
    radii = rng.integers(0, 2**40, knots.size, endpoint=True)
    found = radii_of(knots.tolist(), radii.tolist(), 500).tolist()
    for a, b, low, high in zip(knots, knots[1:], radii, radii[1:], strict=False):
        for i in range(a, b + 1):
            line = Fraction(int(low)) + Fraction(int(high - low) * int(i - a), int(b - a))
            assert found[i] == line // 1


@pytest.mark.parametrize(
    ("knots", "radii", "complaint"),
    [
        ([0], [1], "one radius for each knot"),
        ([*range(10), 10], [1] * 11, "one radius for each knot"),
        ([0, 8], [1, 1], "from the first to the last"),
        ([0, 6, 5, 9], [1] * 4, "do not increase"),
        ([0, 10**400, 9], [1] * 3, "do not increase"),
        ([0, 9], [1, -1], "negative or too long"),
        ([0, 9], [1, 2**40 + 1], "negative or too long"),
        ([0, 9], [1, True], "whole numbers"),
        ([0, None, 9], [1, 1, 1], "whole numbers"),
    ],
)
def test_malformed_radii_are_refused(knots, radii, complaint):
    with pytest.raises(ValueError, match=complaint):
        radii_of(knots, radii, 10)


def test_the_bound_refuses_what_it_does_not_speak_of():
    two = ExactNumbers.of([0, 1])
    for weights, growth, loss in (
        ([1, 1], Fraction(2), "zero_one"),
        ([1, -1], Fraction(2), "squared"),
        ([0, 0], Fraction(2), "squared"),
        ([1, 1], Fraction(1, 2), "squared"),
        ([1, 1, 1], Fraction(2), "squared"),
    ):
        with pytest.raises(ValueError, match=r"bound|weight"):
            radius_bound(two, weights, growth, two, loss)
