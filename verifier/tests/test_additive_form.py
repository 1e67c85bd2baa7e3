"""Additive randomizers: what the verifier reads from a file, derives from it, and refuses."""

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.analysis import analyse
from labeldp_verify.decode import read_form, read_model
from labeldp_verify.decode.file import MAX_PAIRS
from labeldp_verify.forms import (
    IntegerDomain,
    RealDomain,
)
from labeldp_verify.forms.randomizers import check_additive
from labeldp_verify.graph import write_model

from verifier.tests.analysed import losses_by_label
from verifier.tests.integers import (
    composition,
    laplace_like,
    near_constant,
    noise,
    plain_distribution,
    plain_mean,
    plain_ratio,
    random_additive,
    replaced,
)

LOSSES = {
    "squared": lambda v, y: (v - y) ** 2 / 2,
    "absolute": lambda v, y: abs(v - y),
    "zero_one": lambda v, y: Fraction(v != y),
}


def point_value(r, t):
    """The exact number that ``value`` rounds."""
    return t * Fraction(r.unit) + Fraction(r.origin)


def decoded(domain, randomizer):
    data = write_model(domain, randomizer, {})
    return read_form("additive", read_model(data), data, domain)


def plain_windows_ratio(r):
    """The largest ratio inside any D + 1 consecutive noise values of the interior blocks."""
    weights, D, J = noise(r), r.period, r.reach
    best = Fraction(1)
    for start in range(-J * D, J * D - D):
        window = [weights[n] for n in range(start, start + D + 1)]
        best = max(best, Fraction(max(window), min(window)))
    return best


def plain_ends_ratio(r):
    rows = [plain_distribution(r, y) for y in (0, r.labels - 1)]
    return max(max(p[v] for p in rows) / min(p[v] for p in rows) for v in (r.low, r.high))


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(2, 5),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(5, 64),
)
def test_the_ratio_is_that_of_all_windows_and_of_both_ends(seed, labels, spacing, reach, word_bits):
    generator = random.Random(seed)
    row = generator.choice([composition, near_constant])
    r = random_additive(generator, labels, spacing, reach, word_bits, row=row)
    check_additive(r)
    form = decoded(IntegerDomain(0, labels - 1), r)
    assert form.randomizer == r
    assert analyse(form.randomizer).why_not_distributions() is None
    ratio = analyse(form.randomizer).worst_ratio()
    true = plain_ratio(r, labels)
    assert ratio >= true
    if r.low < r.high:
        assert ratio == max(plain_windows_ratio(r), plain_ends_ratio(r))
    if spacing == 1 and r.high - r.low == 2 * r.reach * r.period - r.period:
        # Only the stretch that ends at the lowest output itself is not an interior one.
        weights, D = noise(r), r.period
        stretches = ([weights[t - n] for n in range(D + 1)] for t in range(r.low + 1, r.high))
        interior = max((Fraction(max(s), min(s)) for s in stretches), default=Fraction(1))
        assert true == max(interior, plain_ends_ratio(r))


DOMAINS = [
    (lambda k: IntegerDomain(-3, k - 4), Fraction(1)),
    (lambda k: RealDomain(0.1, 0.1 + 0.7 * (k - 1), k), Fraction(0.7)),
    (lambda k: RealDomain(-1.0, -1.0 + 0.5 * (k - 1), k, "unbiased"), Fraction(1, 2)),
]


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from(DOMAINS),
    st.integers(2, 5),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(6, 64),
)
def test_bias_and_losses_are_what_the_definition_says(seed, kind, labels, spacing, reach, bits):
    generator = random.Random(seed)
    domain = kind[0](labels)
    row = generator.choice([composition, near_constant])
    # Mostly the honest unit, but any other must be judged exactly, too.
    unit = float(kind[1]) / spacing * generator.choice([1, 1, 1, 2.5, 0.3, 100])
    r = random_additive(generator, labels, spacing, reach, bits, float(domain.min), unit, row)
    form = decoded(domain, r)
    assert form.randomizer == r
    values = domain.labels()
    rows = [
        {point_value(r, t): p for t, p in plain_distribution(r, y).items()} for y in range(labels)
    ]
    assert analyse(form.randomizer).biases(values) == [
        plain_mean(p, lambda v: v) - y for p, y in zip(rows, values, strict=True)
    ]
    weights = [generator.randrange(3) for _ in range(labels)]
    for loss, of in LOSSES.items():
        got = losses_by_label(form.randomizer, values, weights, loss)
        for i, ((low, high), p, y, weight) in enumerate(
            zip(got, rows, values, weights, strict=True)
        ):
            if loss == "zero_one":  # of the float64 outputs, of which two points can share one
                points = plain_distribution(r, i)
                plain = plain_mean(points, lambda t: Fraction(r.value(t)) != y)  # noqa: B023
            else:
                plain = plain_mean(p, lambda v: of(v, y))  # noqa: B023
            assert low == high == (plain if weight else 0)
    with pytest.raises(ValueError, match="Poisson"):
        losses_by_label(form.randomizer, values, weights, "poisson")


@settings(max_examples=80, deadline=None)
@given(
    st.integers(2, 5),
    st.integers(1, 3),
    st.floats(1e-6, 1e6),
    st.integers(-(10**6), 10**6).map(float) | st.floats(-1e9, 1e9),
)
def test_no_output_is_further_from_its_exact_value_than_stated(labels, spacing, unit, origin):
    origin = (
        origin + 0.0 if abs(origin) > 1e-40 else 0.0
    )  # no −0, and none that float32 takes for 0
    generator = random.Random(0)
    r = random_additive(generator, labels, spacing, 3, 20, origin, unit)
    bound = analyse(r).output_rounding()
    errors = [abs(Fraction(r.value(t)) - point_value(r, t)) for t in range(r.low, r.high + 1)]
    assert max(errors) <= bound
    if not bound:
        assert max(errors) == 0


@pytest.mark.parametrize(("labels", "spacing", "reach"), [(2, 1, 1), (52, 1, 20), (5, 300, 36)])
def test_critical_words_reach_thresholds_clamps_and_bit_31(labels, spacing, reach):
    r = laplace_like(labels, spacing, reach)
    if labels == 5:
        r = replaced(r, low=-3, high=r.period + 7)
    form = decoded(IntegerDomain(0, labels - 1), r)
    rows, words = form.critical_words()
    assert len(rows) == len(words) <= MAX_PAIRS
    assert words.shape[1] == 2 and words.dtype == np.uint64
    assert {0, labels - 1, labels // 2} <= set(rows.tolist())
    outputs = form.outputs_of(rows, words)
    for row in (0, labels - 1):
        reached = set(outputs[rows == row].tolist())
        for point in {r.low, min(r.low + 1, r.high), max(r.high - 1, r.low), r.high}:
            assert r.value(point) in reached
    for column, table in ((0, form.block_table), (1, form.shape_tables)):
        mask = np.uint64(table.shape[1] - 1)
        entries = table[:, (words[:, column] & mask).astype(np.int64)]
        same_high = (entries >> np.uint64(32)) == (words[:, column] >> np.uint64(32))
        bit = np.uint64(1 << 31)
        straddling = same_high & ((entries & bit) != (words[:, column] & bit))
        assert np.count_nonzero(straddling) > 2
