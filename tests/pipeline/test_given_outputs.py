"""Outputs that a spec gives: the file returns these and no others, and rows are unbiased."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.analysis import exp_lower

from labeldp_compile.errors import InputError
from labeldp_compile.rounding.windows import Reach, drop_rare_outputs, even_outputs, place_on_given
from labeldp_compile.spec import parse_spec
from labeldp_compile.spec.agreement import spec_check
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec as stated
from verifier.tests.analysed import biases, realised_ratio

FACTORS = [0.9, 1 + 1e-12, 1 + 1e-7, 1.001, 1.3, 3, 30]  # of how far an end must reach


def text(outputs, *, epsilon=1, weights=(6, 3, 2, 1, 1, 4), loss="squared", **domain):
    mechanism = f"{{kind: optimal_unbiased, outputs: {outputs}}}"
    return stated(weights=list(weights), epsilon=epsilon, loss=loss, mechanism=mechanism, **domain)


def random_spec(case):
    """A spec, and how far its outputs reach."""
    draw = random.Random(case)
    labels, epsilon = draw.choice([2, 3, 5, 10, 20]), draw.choice([0.05, 0.3, 1, 2, 4, 8, 12, 25])
    weights = [draw.choice([0, 1, 5, 1000]) for _ in range(labels)]
    weights[0] += not sum(weights)
    last, domain = labels - 1, {}
    if draw.random() < 0.3:
        last = draw.choice([1, last, 100.5])
        domain = {"domain": f"{{kind: real, min: 0, max: {last}, points: {labels}}}"}
    beyond = last / math.expm1(epsilon)
    outputs = f"{{grid: {draw.choice([2, 5, 9, 33])}}}"
    if draw.random() < 0.7:
        below, above = draw.choice(FACTORS), draw.choice(FACTORS)
        listed = [-beyond * below, last + beyond * above]
        while len(listed) < draw.choice([2, 4, 8, 20]):
            between = draw.uniform(-3 * beyond, last + 3 * beyond)
            listed.append(between if draw.random() < 0.5 else float(round(between)))
        outputs = f"{{values: {list(dict.fromkeys(listed))}}}"
    loss = draw.choice(["squared", "absolute"])
    return text(outputs, epsilon=epsilon, weights=weights, loss=loss, **domain)


def check(spec):
    """Whether the spec compiles; if it does, to a file that returns its outputs alone."""
    try:
        made = compile_text(spec)
    except InputError as error:
        low, high = str(error).split("at or beyond ")[1].split(" and ")
        assert compile_text(spec.replace("values: [", f"values: [{low}, {high}, "))
        return False
    parsed, randomizer = parse_spec(spec), made.randomizer
    labels = parsed.domain.labels()
    assert {*randomizer.values} <= {
        *parsed.mechanism.outputs.in_order(labels, parsed.privacy.epsilon)
    }
    report = check_bytes(made.model, spec_check(spec.encode()), run_graph=False)
    # The file of a text has no digest of its spec: nothing else may differ.
    assert report.checks[-1].detail.count(";") == 0 and "digest" in report.checks[-1].detail
    half = (Fraction(randomizer.values[-1]) - Fraction(randomizer.values[0])) / randomizer.words / 2
    rounding = Fraction(2) ** -60 * (Fraction(labels[-1]) - Fraction(labels[0]))
    assert made.certificate.utility.largest_bias <= half + rounding
    return True


def test_random_outputs_are_kept_and_rows_are_unbiased():
    assert 15 <= sum(check(random_spec(case)) for case in range(20)) < 20


@pytest.mark.slow
def test_a_thousand_random_outputs():
    assert sum(check(random_spec(case)) for case in range(1000)) > 800


def test_a_file_with_other_outputs_does_not_fit_the_spec():
    spec = text("{values: [-4, 0, 2, 5, 9]}")
    made = compile_text(spec)

    def disagreements(changed):
        report = check_bytes(made.model, spec_check(changed.encode()))
        return [line for line in report.checks[-1].detail.split("; ") if "outputs" in line]

    assert disagreements(spec) == []
    assert len(disagreements(spec.replace("-4, ", "-5, "))) == 1
    assert len(disagreements(spec.replace("values: [-4, 0, 2, 5, 9]", "grid: 9"))) == 1
    assert disagreements(spec.replace(", outputs: {values: [-4, 0, 2, 5, 9]}", "")) == []


def test_outputs_that_are_just_too_short_are_refused_in_the_plan():
    limit = Reach(Fraction(0), Fraction(5), Fraction(1), 60).limits()
    just = [math.nextafter(float(limit[0]), -math.inf), math.nextafter(float(limit[1]), math.inf)]
    assert check(text(f"{{values: {just}}}"))
    for short in ([-2.9, just[1]], [just[0], 7.9], [0, 1, 2, 3, 4, 5], [7, 8]):
        assert not check(text(f"{{values: {short}}}"))


def test_tables_of_groups_have_given_outputs_too(tmp_path):
    (tmp_path / "public.csv").write_text(
        "z,y\n" + "".join(f"{z},{y}\n" for z in "abc" for y in range(6) for _ in range(y + ord(z)))
    )
    spec = text("{values: [-4, -1, 0, 2, 5, 9, 60]}").replace(
        '{"kind": "public", "weights": [6, 3, 2, 1, 1, 4]}',
        "{kind: public, data: public.csv}\ngroups: {column: z, values: [a, b, c]}",
    )
    made = compile_text(spec, directory=tmp_path)
    for table in made.artifact.tables:
        assert {*table.values} <= {-4, -1, 0, 2, 5, 9, 60}


@pytest.mark.parametrize("epsilon", ["1/100", "1", "20"])
def test_weights_that_are_a_little_wrong_are_made_exact(epsilon):
    labels, epsilon = [Fraction(y) for y in range(6)], Fraction(epsilon)
    low, high = Reach.of(labels, epsilon, 7, 50).require(even_outputs(labels, epsilon, 7))
    two = Reach.of(labels, epsilon, 3, 50).shares(low, high)
    values = [low, 2.0, high]
    weights = [two[0] * (1 - 1e-6), 1e-4 * min(two), two[1] * (1 - 1e-3)]
    for bits in (50, 40):
        r = place_on_given(values, weights, labels, epsilon, (low, high), bits)
        assert [*r.values] == values and realised_ratio(r) <= exp_lower(epsilon)
        step = (Fraction(values[-1]) - Fraction(values[0])) / r.words
        assert max(map(abs, biases(r, labels))) <= step / 2


def test_rare_outputs_are_dropped_and_means_are_kept():
    values, weights = np.array([-9.0, 0, 1, 2, 5, 8]), np.array([0.2, 0.3, 1e-5, 0.3, 0.2, 1e-7])
    v, c = drop_rare_outputs(values, weights, 1e-3, {-9.0: 0.5, 5.0: 0.4})
    assert [*v] == [-9, 0, 2, 5]
    assert c == pytest.approx([0.2, 0.300005, 0.300005, 0.2000001])
    rare = np.array([1e-6, 0.3, 0.2, 0.3, 0.2, 0.1])
    v, c = drop_rare_outputs(values, rare, 1e-3, {-9.0: 0.5, 5.0: 0.4})
    assert c[0] == pytest.approx(1e-3 * rare.sum()) and [*v] == [*values]
