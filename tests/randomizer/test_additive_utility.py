"""Exact moments and losses of additive randomizers against sums over every noise."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.analysis import analyse

from labeldp_compile.rounding.additive_noise import LabelLattice, additive_noise, laplace_magnitudes
from tests.randomizer.additive_reference import any_additive, rows
from verifier.tests.analysed import biases, losses_by_label, noisy_label_loss, variances

POINT = {
    "squared": lambda v, y: (v - y) ** 2 / 2,
    "absolute": lambda v, y: abs(v - y),
    "zero_one": lambda v, y: Fraction(v != y),
}


@settings(deadline=None, derandomize=True, max_examples=120)
@given(any_additive(), st.lists(st.sampled_from([0, 0, 1, -1, 7, 300, -300]), min_size=5))
def test_moments_and_losses_of_any_integers(r, ulps):
    """Labels on the lattice, beside it by a hair or by a third, and beyond its ends."""
    tables, words = rows(r), r.words**2
    labels = [
        r.point_value(i * r.spacing) + Fraction(nudge, 3 * 2**50 if abs(nudge) == 1 else 8)
        for i, nudge in zip(range(r.labels), ulps, strict=False)
    ]
    mean, square = analyse(r).moments
    for i, row in enumerate(tables):
        values = [(r.point_value(t), w) for t, w in row.items()]
        assert mean[i] == sum(w * v for v, w in values) / words
        assert square[i] == sum(w * v * v for v, w in values) / words
        outputs = [(Fraction(r.value(t)), w) for t, w in row.items()]
        for loss, point in POINT.items():
            # Equality is of float64 outputs, of which two lattice points can share one.
            shown = outputs if loss == "zero_one" else values
            plain = sum(w * point(v, labels[i]) for v, w in shown) / words
            assert losses_by_label(r, labels, [1] * r.labels, loss)[i] == (plain, plain)


def test_values_that_float64_rounds_are_meant_exactly():
    lattice = LabelLattice(4, 2, 0.1, 0.1)
    r = additive_noise(lambda e: laplace_magnitudes(e, 6), lattice, Fraction(2), True, 10)
    assert any(Fraction(r.value(t)) != r.point_value(t) for t in range(7))
    labels = [Fraction(float(r.value(2 * i))) for i in range(4)]
    tables = rows(r)
    plain = [
        sum(w * abs(r.point_value(t) - y) for t, w in row.items()) / 4**10
        for row, y in zip(tables, labels, strict=True)
    ]
    weights = [3, 0, 2, 5]
    expected = sum(w * p for w, p in zip(weights, plain, strict=True)) / 10
    assert noisy_label_loss(r, labels, weights, "absolute") == (expected, expected)
    moments = [
        [sum(w * r.point_value(t) ** e for t, w in row.items()) / 4**10 for e in (1, 2)]
        for row in tables
    ]
    assert biases(r, labels) == [m - y for (m, _), y in zip(moments, labels, strict=True)]
    assert variances(r) == [s - m * m for m, s in moments]


def test_the_poisson_loss_is_refused():
    lattice = LabelLattice(2, 1, 1.0, 1.0)
    r = additive_noise(lambda e: laplace_magnitudes(e, 1), lattice, Fraction(1), False)
    with pytest.raises(ValueError, match="positive outputs"):
        noisy_label_loss(r, [Fraction(1), Fraction(2)], [1, 1], "poisson")
