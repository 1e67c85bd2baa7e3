"""Bias and loss of real domains are those of the running graph: counted from the definition.

A label's row is random where rounding is unbiased. Here every probability is a count: of the 2^53
rounding words, by bisection through the very float64 comparison of the graph, and of the words of
the randomizer, one by one.
"""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.analysis.grid_labels import strays
from labeldp_verify.forms import AdditiveRandomizer, RealDomain
from labeldp_verify.forms.joint import output_values

from labeldp_compile.errors import SpecError
from labeldp_compile.mechanisms.optimal_unbiased import least_interval
from labeldp_compile.rounding.windows import place_windows, randomized_response
from labeldp_compile.spec import parse_spec
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec
from verifier.tests.analysed import biases
from verifier.tests.files import file_of, rebuilt, run
from verifier.tests.integers import plain_counts, plain_distribution, random_additive, random_table

WORDS = 2**53
SMALL = RealDomain(1000000.0, 1000000.7, 8, "unbiased")
NARROW = RealDomain(1000000.0, 1000000.7, 50, "unbiased")  # its labels stand beside the grid
CONFUSING = RealDomain(0.0, 49.000001, 50, "unbiased")  # 49/49.000001 is 1 in float32
DOMAINS = [
    NARROW,
    CONFUSING,
    RealDomain(0.0, 1.0, 50, "unbiased"),
    RealDomain(-0.3, 0.9, 7, "unbiased", 0.1),
    RealDomain(1e9, 1e9 + 1, 11, "unbiased"),
    RealDomain(1.1, 4.1, 4, "unbiased"),
]


def plain_rows(domain, label):
    """{row: probability} of a label: how many rounding words lead to it, counted by bisection."""
    lowest = domain.index(label, 2**64 - 1)
    first, stop = 0, WORDS  # the first word that no longer rounds up
    while first < stop:
        middle = (first + stop) // 2
        if domain.index(label, middle << 11) > lowest:
            first = middle + 1
        else:
            stop = middle
    shares = {lowest + 1: Fraction(first, WORDS), lowest: Fraction(WORDS - first, WORDS)}
    return {row: share for row, share in shares.items() if share}


def stated(model):
    report = check_bytes(model)
    assert report.ok, report.checks[-1]
    return report.certificate.to_json()


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_strays_are_counted_over_all_words(domain):
    found = strays(domain)
    for j, label in enumerate(domain.labels()):
        rows = plain_rows(domain, float(label))
        expected = {j: Fraction(1)}
        if j in found:
            row, share = found[j]
            expected = {j: 1 - share, row: share}
        assert rows == expected
    assert not strays(RealDomain(domain.min, domain.max, domain.points, "nearest"))


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_bias_and_loss_of_windows_and_tables(domain, loss):
    generator, k = random.Random(3), domain.size
    window = randomized_response(output_values(domain), range(k), Fraction(3), 9)
    values = tuple(float(y) + 0.01 for y in domain.labels())
    table = random_table(generator, k, values, 12)
    for randomizer, model in (
        (window, file_of(domain, window, Fraction(3), loss, weights=[1 + j % 3 for j in range(k)])),
        (table, file_of(domain, table, Fraction(9), loss)),
    ):
        certificate = stated(model)
        distributions = [
            {v: Fraction(n, randomizer.words) for v, n in plain_counts(randomizer, row).items()}
            if randomizer is window
            else plain_distribution(randomizer, row)
            for row in range(k)
        ]
        biases, total = [], Fraction(0)
        weights = certificate["prior"]["weights"]
        for label, weight in zip(domain.labels(), weights, strict=True):
            mixture = plain_rows(domain, float(label))
            outcomes = [
                (Fraction(v), s * p)
                for r, s in mixture.items()
                for v, p in distributions[r].items()
            ]
            biases.append(sum(v * p for v, p in outcomes) - label)
            far = [
                abs(v - label) if loss == "absolute" else (v - label) ** 2 / 2 for v, _ in outcomes
            ]
            total += weight * sum(f * p for f, (_, p) in zip(far, outcomes, strict=True))
        assert certificate["exact"]["largest_bias"] == str(max(map(abs, biases)))
        assert certificate["exact"]["noisy_label_loss"] == str(total / sum(weights))


@pytest.mark.parametrize("loss", ["squared", "absolute", "zero_one"])
def test_bias_and_loss_of_noise(loss):
    domain = RealDomain(1000.0, 1000.7, 6, "unbiased")
    unit = float((Fraction(domain.max) - Fraction(domain.min)) / 10)
    r = random_additive(random.Random(5), 6, 2, 2, 8, 1000.0, unit)
    assert isinstance(r, AdditiveRandomizer) and strays(domain)
    certificate = stated(file_of(domain, r, Fraction(20), loss))
    total, biases = Fraction(0), []

    def exact(t):
        return t * Fraction(r.unit) + Fraction(r.origin)

    for label in domain.labels():
        mixture = plain_rows(domain, float(label))
        outcomes = [
            (t, s * p) for row, s in mixture.items() for t, p in plain_distribution(r, row).items()
        ]
        biases.append(sum(exact(t) * p for t, p in outcomes) - label)
        of = {
            "squared": lambda t: (exact(t) - label) ** 2 / 2,  # noqa: B023
            "absolute": lambda t: abs(exact(t) - label),  # noqa: B023
            "zero_one": lambda t: Fraction(r.value(t) != float(label)),  # noqa: B023
        }[loss]
        total += sum(of(t) * p for t, p in outcomes) / domain.size
    assert certificate["exact"]["largest_bias"] == str(max(map(abs, biases)))
    assert certificate["exact"]["noisy_label_loss"] == str(total)


def spec_of(domain, mechanism):
    real = f"{{kind: real, min: {domain.min}, max: {domain.max}, points: {domain.points}}}"
    return spec(name="narrow", domain=real, mechanism=f"{{kind: {mechanism}}}")


@pytest.mark.parametrize("mechanism", ["optimal_unbiased", "debiased_rr", "laplace"])
def test_compiled_domains_beside_the_grid_state_their_true_bias(mechanism):
    artifact = compile_text(
        spec_of(SMALL, mechanism).replace("points: 8}", "points: 8, rounding: unbiased}")
    )
    certificate = stated(artifact.model)
    # Rows are placed so that the mixtures keep the mean: to within a step of the word. The outputs
    # of the others are what float64 leaves of them; a lattice's lie where positions are exact.
    reach = {"optimal_unbiased": 2.0**-60, "laplace": 2.0**-50, "debiased_rr": 1e6 * 2.0**-50}
    assert certificate["utility"]["largest_bias"] <= reach[mechanism]
    assert (certificate["optimality"] is not None) == (mechanism == "optimal_unbiased")


@pytest.mark.parametrize("budget", ["max: 0.05", "penalty: 3"])
def test_a_bias_budget_holds_for_the_mixtures(budget):
    mechanism = f"optimal_unbiased, bias: {{{budget}}}"
    certificate = stated(compile_text(spec_of(SMALL, mechanism)).model)
    assert certificate["optimality"] is not None
    if "max" in budget:
        assert 0.049 < certificate["utility"]["largest_bias"] <= 0.05


def test_a_file_that_takes_its_labels_to_reach_their_own_rows_fails():
    """What the compiler once wrote: rows without bias, and labels with one that nobody stated."""
    domain, epsilon = NARROW, Fraction(1)
    labels = domain.labels()
    low, high = least_interval(labels, 1.0)
    placed = place_windows([low, high], [1 / (1 + math.e)] * 2, labels, epsilon)
    model = file_of(domain, placed, epsilon, "squared")
    assert 1e-11 < stated(model)["utility"]["largest_bias"] < 1e-10

    def of_rows(certificate):
        largest = max(map(abs, biases(placed, labels)))
        certificate["exact"]["largest_bias"] = str(largest)
        certificate["utility"]["largest_bias"] = float(largest)

    report = check_bytes(rebuilt(model, of_rows))
    assert not report.ok and "largest_bias is stated as" in report.checks[-1].detail


def test_the_running_graph_keeps_the_mean_of_a_factor_that_is_1_in_float32():
    """Every second word at the turn of each grid label's rounding, and halfway between."""
    domain = CONFUSING
    values = output_values(domain)
    model = file_of(
        domain, randomized_response(values, range(50), Fraction(40)), Fraction(40), "squared"
    )
    labels, words, expected = [], [], []
    for j in range(49):
        for label in (values[j], values[j + 1], (values[j] + values[j + 1]) / 2, values[j] + 1 / 3):
            position = (label - 0.0) * domain.points_per_unit
            turn = math.ceil(Fraction(position - math.floor(position)) * WORDS)
            for n in (turn - 1, turn):
                if 0 <= n < WORDS:
                    labels.append(label)
                    words.append((2**63 - 1, n << 11 | 5))  # the likeliest output
                    expected.append(values[min(math.floor(position) + (n < turn), 49)])
    assert run(model, np.array(labels), np.array(words, dtype=np.uint64)) == expected


@pytest.mark.parametrize("low", ["1e-50", "-1e-60", "1e-39"])
def test_a_lowest_label_that_is_0_in_float32_is_refused_before_anything_is_spent(low):
    with pytest.raises(SpecError, match="too close to 0: use 0"):
        parse_spec(spec(domain=f"{{kind: real, min: {low}, max: 1, points: 50}}"))
