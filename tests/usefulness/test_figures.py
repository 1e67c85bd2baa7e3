"""What private labels are good for: each figure from the definition, and by drawing labels."""

import math
from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.probabilities import equally_likely, row, value
from labeldp_verify.forms import CategoricalDomain, IntegerDomain
from labeldp_verify.usefulness.estimates import SHARES, kept_probabilities, most_belief, usefulness

from labeldp_compile.rounding.windows import randomized_response
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.fixtures.specs import spec

SKEWED = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
CATEGORIES = spec(
    values=["a", "b", "c"], epsilon=1.5, prior={"kind": "public", "weights": [7, 2, 1]}
)
NUMBERS = {
    "unbiased": "optimal_unbiased",
    "response": "randomized_response",
    "noise": "laplace",
    "clipped": "{kind: laplace, clip: true}",
    "exponential": "exponential",
    "bins": "rr_on_bins",
}


def decoded_of(text):
    return check_bytes(compile_text(text).model).verified().only


def of_numbers(name):
    mechanism = NUMBERS[name]
    wanted = mechanism if mechanism[0] == "{" else f"{{kind: {mechanism}}}"
    return decoded_of(INTEGER_SPEC.replace("{kind: rr_on_bins}", wanted))


def exact_table(decoded):
    """[k][m] Fractions, and the outputs."""
    r, words = decoded.randomizer, equally_likely(decoded.randomizer)
    table = [[Fraction(n, words) for n in row(r, y)] for y in range(decoded.domain.size)]
    return table, [value(r, o) for o in range(r.outputs)]


@pytest.mark.parametrize("name", NUMBERS)
def test_deviations_of_single_labels(name):
    decoded = of_numbers(name)
    table, outputs = exact_table(decoded)
    exact = [Fraction(o) for o in outputs]
    variances = []
    for probabilities in table:
        mean = sum(p * o for p, o in zip(probabilities, exact, strict=True))
        variances.append(
            float(sum(p * (o - mean) ** 2 for p, o in zip(probabilities, exact, strict=True)))
        )
    found = decoded.usefulness.deviation
    average = np.average(variances, weights=SKEWED)
    squares = [
        float(sum(p * (o - y) ** 2 for p, o in zip(probabilities, exact, strict=True)))
        for y, probabilities in enumerate(table)
    ]
    distance = decoded.usefulness.distance
    assert distance.least == pytest.approx(math.sqrt(min(squares)))
    assert distance.mean == pytest.approx(math.sqrt(np.average(squares, weights=SKEWED)))
    assert distance.most == pytest.approx(math.sqrt(max(squares)))
    centre = np.average(np.arange(10), weights=SKEWED)
    constant = np.average((np.arange(10) - centre) ** 2, weights=SKEWED)
    assert decoded.usefulness.constant == pytest.approx(math.sqrt(constant))
    assert found.least == pytest.approx(math.sqrt(min(variances)))
    assert found.mean == pytest.approx(math.sqrt(average))
    assert found.most == pytest.approx(math.sqrt(max(variances)))
    assert decoded.usefulness.unbiased == (name in ("unbiased", "noise"))
    if decoded.usefulness.unbiased:
        assert decoded.usefulness.variance == pytest.approx(average)
        assert decoded.usefulness.noise.least == pytest.approx(min(variances))
        assert decoded.usefulness.noise.most == pytest.approx(max(variances))
        more = decoded.usefulness.more_labels
        assert more.at_least == pytest.approx(1 + min(variances) / 4.5**2)
        assert more.examples[0] == pytest.approx(
            (9 / 4, 1 + min(variances) / 2.25**2, 1 + max(variances) / 2.25**2)
        )


def test_averages_over_many_labels_leave_none_out():
    """Half of the labels lie on four that an even sample of 5,001 would not meet."""
    k, heavy = 5001, [1, 3, 4, 6]
    weights = [1] * k
    for label in heavy:
        weights[label] = k // 4
    total = sum(weights)
    numbers = randomized_response([0.0, 5.0, 5000.0], [min(y, 2) for y in range(k)], Fraction(3))
    found = usefulness(IntegerDomain(0, k - 1), numbers, weights, Fraction(20), 5000.0)
    mean, square = analyse(numbers).moments
    variance = sum(w * (square[y] - mean[y] ** 2) for y, w in enumerate(weights)) / total
    apart = sum(w * (square[y] - 2 * y * mean[y] + y * y) for y, w in enumerate(weights)) / total
    assert found.deviation.mean == pytest.approx(math.sqrt(variance))
    assert found.distance.mean == pytest.approx(math.sqrt(apart))

    names = [f"c{y}" for y in range(k)]
    own = {label: i for i, label in enumerate(heavy)}
    outputs = [own.get(y, 0) for y in range(k)]
    kept = randomized_response([names[y] for y in heavy], outputs, Fraction(3))
    found = usefulness(CategoricalDomain(tuple(names), "c0"), kept, weights, Fraction(20), None)
    each = kept_probabilities(CategoricalDomain(tuple(names), "c0"), kept, heavy)
    assert found.kept.mean == pytest.approx(float(each.sum()) * (k // 4) / total)
    assert found.kept.most == pytest.approx(each.max()) and found.kept.mean > 0.4
    assert found.kept.least == 0


def test_the_error_of_a_share_is_the_one_that_draws_have():
    decoded = decoded_of(CATEGORIES)
    table, _ = exact_table(decoded)
    probabilities = np.array([[float(p) for p in line] for line in table])
    inverse, prior = np.linalg.inv(probabilities), np.array([0.7, 0.2, 0.1])
    generator = np.random.default_rng(6)
    errors = []
    for _ in range(600):
        labels = generator.multinomial(1000, prior)
        drawn = sum(generator.multinomial(n, probabilities[y]) for y, n in enumerate(labels))
        errors.append(drawn @ inverse / 1000 - labels / 1000)
    deviations = np.std(errors, axis=0)
    found = decoded.usefulness
    assert math.sqrt(found.noise.average / 1000) == pytest.approx(deviations.max(), rel=0.12)
    assert np.mean(np.abs(errors) <= found.margin_under_prior(1000)) >= 0.95
    assert found.margin_under_prior(1000) <= found.margin(1000) <= 2 * 1.96 * deviations.max()
    assert found.variance == pytest.approx((deviations**2).mean() * 1000, rel=0.12)
    assert found.kept.least == pytest.approx(probabilities.diagonal().min())
    for _ in range(200):  # no share, and no other labels, need fewer
        shares = generator.dirichlet([0.5] * 3)
        noise = shares @ (probabilities @ inverse**2) - shares
        assert (1 + noise / (shares * (1 - shares)) >= found.more_labels.at_least - 1e-9).all()


@pytest.mark.parametrize("name", NUMBERS)
def test_belief_rises_no_further_than_bayes_allows(name):
    decoded = of_numbers(name)
    table, _ = exact_table(decoded)
    most = max(
        one / other for column in zip(*table, strict=True) for one in column for other in column
    )
    for (share, after), known in zip(decoded.usefulness.belief, SHARES, strict=True):
        exact = float(most * Fraction(known) / (1 + (most - 1) * Fraction(known)))
        assert share == known
        assert exact <= after * (1 + 1e-9)
        assert after == pytest.approx(exact, rel=0.02)  # the additive form states a bound
    assert most_belief(math.e, 0.5) == pytest.approx(math.e / (1 + math.e))
