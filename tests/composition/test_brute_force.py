"""Composition is never below the truth, found by enumerating every outcome in rationals."""

import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import permutations

import pytest
from labeldp_verify.analysis import composition as divergence
from labeldp_verify.analysis.composition import (
    Lattice,
    Part,
    additive_divergences,
    common_step,
    divergences,
    dominating_masses,
)
from labeldp_verify.analysis.probabilities import equally_likely, row
from labeldp_verify.forms.exact_numbers import exp_bounds

from labeldp_compile.composition import compose
from labeldp_compile.rounding.randomized_response import randomized_response
from tests.composition.brute_force import largest_divergence, rows_of
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec
from verifier.tests.analysed import realised_ratio
from verifier.tests.integers import random_additive, random_table

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


def lattice_of(part):
    return Lattice(common_step([part]), part.ratio)


def compiled(mechanism, labels, epsilon):
    text = spec(
        labels=labels,
        loss=MECHANISMS[mechanism],
        epsilon=epsilon,
        prior={"kind": "public", "weights": [labels + 3 - y for y in range(labels)]},
        mechanism=mechanism,
    )
    return compile_text(text).randomizer


def assert_never_below(uses, randomizers, counts, *, within=None):
    """At several ε, and where ε is asked for by δ; ``within`` is what may be given away."""
    composition = compose([[one] for one in randomizers], counts)
    exact = composition.exact
    for tenth in range(0, 10, 2):
        epsilon = composition.pure * tenth / 10
        truth = largest_divergence(uses, exp_bounds(epsilon)[1])
        bound = exact.delta(epsilon)
        assert bound >= truth
        if within is not None:
            assert bound <= truth * (1 + within) + Fraction(1, 10**9)
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


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("outputs", [2, 3])
def test_nothing_is_given_away_where_one_label_is_the_worst_answer_to_another(outputs, count):
    values = [float(v) for v in range(outputs)]
    randomizer = randomized_response(values, range(outputs), Fraction(1))
    uses = [(*rows_of(randomizer, outputs), count)]
    assert_never_below(uses, [randomizer], [count], within=Fraction(1, 500))


def test_many_labels_of_two_outputs_are_a_binomial_sum():
    # P gives ε each time with probability p, so losses are (2j − L)·ε with j binomial.
    randomizer, count = randomized_response([0.0, 1.0], range(2), Fraction(1, 5)), 60
    composition = compose([[randomizer]], count)
    p = Fraction(row(randomizer, 0)[0], equally_likely(randomizer))
    epsilon = Fraction(composition.epsilon(Decimal("1e-9")))
    step = composition.pure / count
    total, ways = Fraction(0), 1
    growth = exp_bounds(epsilon)[0]
    for j in range(count + 1):
        if (2 * j - count) * step > epsilon:
            high, low = p**j * (1 - p) ** (count - j), (1 - p) ** j * p ** (count - j)
            total += ways * max(high - growth * low, Fraction(0))
        ways = ways * (count - j) // (j + 1)
    assert Fraction(99, 10**11) < total <= Fraction(1, 10**9)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_two_labels_are_further_apart_than_the_pair(mechanism):
    randomizer = compiled(mechanism, 6, "1.25")
    lattice = lattice_of(Part([randomizer], realised_ratio(randomizer), 1))
    bounds, _ = divergences([randomizer], lattice)
    curve = [(float(j * lattice.step), float(bound)) for j, bound in enumerate(bounds)]
    masses = dominating_masses(bounds, lattice)
    ratios = {j: lattice.ratio(abs(j)) ** (1 if j >= 0 else -1) for j in masses}
    pair = [(j * lattice.step, mass, mass / ratios[j]) for j, mass in masses.items()]
    assert sum(p for _, p, _ in pair) == sum(q for _, _, q in pair) == 1
    rows, words = rows_of(randomizer, 6)
    for epsilon, bound in curve[:: len(curve) // 4]:
        alpha = exp_bounds(Fraction(epsilon))[1]
        of_pair = sum(max(p - alpha * q, 0) for _, p, q in pair)
        truth = max(
            sum(max(a - alpha * b, 0) for a, b in zip(one, other, strict=True))
            for one in rows
            for other in rows
        )
        truth = Fraction(truth, words)
        assert truth <= of_pair and float(truth) <= bound * (1 + 1e-12)
    assert curve[-1] == (pytest.approx(float(compose([[randomizer]], 1).pure)), 0.0)


@pytest.mark.slow
def test_random_noise_with_monotone_shapes():
    generator = random.Random(3)
    looked_at = 0
    for _ in range(40):
        labels, reach = generator.randint(2, 4), generator.randint(1, 3)
        noise = random_additive(generator, labels, generator.randint(1, 3), reach, 6)
        if noise.low == noise.high:
            continue
        shapes = (tuple(sorted(noise.shapes[0])), tuple(sorted(noise.shapes[1], reverse=True)))
        noise = replace(noise, shapes=shapes)
        part = Part([noise], realised_ratio(noise), 1)
        lattice = lattice_of(part)
        bounds = additive_divergences(noise, lattice)
        rows, words = rows_of(noise, labels)
        for j in range(0, lattice.reach, 60):
            truth = max(
                sum(max(a - lattice.ratio(j) * b, 0) for a, b in zip(one, other, strict=True))
                for one, other in permutations(rows, 2)
            )
            assert Fraction(truth, words) <= bounds[j]
            looked_at += truth > 0
    assert looked_at > 90


def test_a_table_too_large_to_look_at_is_bounded_by_randomized_response(limit):
    table = random_table(random.Random(1), 4, (0.0, 1.0, 2.0, 3.0), 8)
    own = compose([[table]], 3).exact
    limit(divergence, "MAX_WORK", 8)
    other = compose([[table]], 3).exact
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
