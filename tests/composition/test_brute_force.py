"""Composition is never below the truth, found by enumerating every outcome in rationals."""

import random
from decimal import Decimal
from fractions import Fraction

import pytest
from labeldp_verify.analysis import composition as divergence
from labeldp_verify.forms.exact_numbers import exp_bounds

from labeldp_compile.composition import compose
from labeldp_compile.rounding.windows import randomized_response
from tests.composition.brute_force import largest_divergence, rows_of
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec
from verifier.tests.analysed import realised_ratio
from verifier.tests.integers import random_table

MECHANISMS = {
    "{kind: randomized_response}": "absolute",
    "{kind: rr_on_bins}": "squared",
    "{kind: rr_top_k, k: 2}": "zero_one",
    "{kind: optimal_unbiased}": "squared",
    "{kind: laplace, clip: true}": "absolute",
    "{kind: laplace}": "squared",
    "{kind: staircase, lattice: 0.3}": "absolute",
    "{kind: exponential}": "absolute",
}


def compiled(mechanism, labels, epsilon):
    text = spec(
        labels=labels,
        loss=MECHANISMS[mechanism],
        epsilon=epsilon,
        prior={"kind": "public", "weights": [labels + 3 - y for y in range(labels)]},
        mechanism=mechanism,
    )
    return compile_text(text).randomizer


def assert_never_below(uses, randomizers, counts):
    """At several ε, and where ε is asked for by δ."""
    composition = compose([[one] for one in randomizers], counts)
    exact = composition.exact
    for tenth in range(0, 10, 2):
        epsilon = composition.pure * tenth / 10
        assert exact.delta(epsilon) >= largest_divergence(uses, exp_bounds(epsilon)[1])
    for delta in ("0.3", "0.01", "1e-6"):
        found = composition.epsilon(Decimal(delta))
        if found is not None:
            truth = largest_divergence(uses, exp_bounds(Fraction(found))[1])
            assert truth <= Fraction(delta)
            assert Fraction(found) < composition.pure


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_random_tables(count):
    generator = random.Random(count)
    for _ in range(3):
        table = random_table(generator, 3, (0.0, 1.0, 2.0), 6)
        rows = [(*rows_of(table, 3), count)]
        assert_never_below(rows, [table], [count])


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon", ["0.3", "2"])
def test_compiled_randomizers(mechanism, epsilon):
    randomizer = compiled(mechanism, 3, epsilon)
    # Noise without clipping has hundreds of outputs: one label of it, as many pairs as there are.
    count = 1 if randomizer.outputs > 8 else 2
    uses = [(*rows_of(randomizer, 3), count)]
    assert_never_below(uses, [randomizer], [count])


def test_several_randomizers_of_one_user():
    generator = random.Random(7)
    parts = [
        (random_table(generator, 2, (0.0, 1.0, 2.0), 7), 2),
        (randomized_response([0.0, 1.0], range(2), Fraction(1, 3)), 1),
        (compiled("{kind: exponential}", 3, "1.5"), 1),
    ]
    labels = [2, 2, 3]
    uses = [(*rows_of(r, k), n) for (r, n), k in zip(parts, labels, strict=True)]
    assert_never_below(uses, [r for r, _ in parts], [n for _, n in parts])


def test_a_table_too_large_to_look_at_is_bounded_by_randomized_response(limit):
    table = random_table(random.Random(1), 4, (0.0, 1.0, 2.0, 3.0), 8)
    own = compose([[table]], [3]).exact
    limit(divergence, "MAX_WORK", 8)
    other = compose([[table]], [3]).exact
    ratio = realised_ratio(table)
    assert own.own_tables and not other.own_tables
    # Three answers of Randomized Response differ most where all three, or two, are kept.
    p = ratio / (1 + ratio)
    total_variation = p**3 - (1 - p) ** 3 + 3 * p * (1 - p) * (2 * p - 1)
    assert own.delta(Fraction(0)) < total_variation
    assert total_variation <= other.delta(Fraction(0)) < total_variation + Fraction(1, 10**6)


@pytest.mark.parametrize("counts", [[], [0], [10_001], [1, 2]])
def test_numbers_of_labels_that_make_no_sense(counts):
    with pytest.raises(ValueError, match=r"user has|one number of labels"):
        compose([[randomized_response([0.0, 1.0], range(2), Fraction(1))]], counts)
