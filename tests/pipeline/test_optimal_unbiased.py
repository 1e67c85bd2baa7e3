"""The optimal unbiased randomizer from a spec to the running graph, with its proof."""

import math

import numpy as np
import pytest
from labeldp_verify import check_bytes

from labeldp_compile.errors import SpecError
from labeldp_compile.rounding.windows import even_outputs
from labeldp_compile.spec import parse_spec
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec as stated
from verifier.tests.files import rebuilt


def spec(epsilon=1, weights=(6, 3, 2, 1, 1, 4), options="", loss="squared"):
    options = f", {options}" if options else ""
    mechanism = f"{{kind: optimal_unbiased{options}}}"
    return stated(epsilon=epsilon, weights=list(weights), mechanism=mechanism, loss=loss)


def utility(text, **arguments):
    artifact = compile_text(text, **arguments)
    report = check_bytes(artifact.model)
    assert report.ok, report.checks[-1]
    return artifact.certificate.to_json()["utility"]


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1, 2, 4, 8])
@pytest.mark.parametrize("kind", ["uniform", "spiked", "zeros"])
def test_certified_gap_and_bias(epsilon, kind):
    weights = {
        "uniform": [1] * 20,
        "spiked": [50, *[1] * 18, 30],
        "zeros": [0, 3, 0, 0, 7, 1, 0, 2, 0, 0],
    }[kind]
    found = utility(spec(epsilon, weights))
    assert found["certified_gap"] <= 1e-8
    assert found["loss_lower_bound"] <= found["noisy_label_loss"] * (1 + 1e-12)
    assert found["largest_bias"] <= 1e-9 * (len(weights) - 1)


def test_the_loss_falls_with_the_grid_towards_the_exact_one():
    exact = utility(spec())["noisy_label_loss"]
    sizes = (9, 33, 129)
    losses = [utility(spec(options=f"outputs: {{grid: {n}}}"))["noisy_label_loss"] for n in sizes]
    assert losses[0] > losses[1] > losses[2] > exact
    grid = even_outputs(range(6), 1, 2)
    for loss, size in zip(losses, sizes, strict=True):
        # Lemma 8: rounding the exact outputs at random to a grid of step Δ costs at most Δ²/8.
        assert loss - exact <= ((grid[1] - grid[0]) / (size - 1)) ** 2 / 8


def test_real_labels_are_rounded_without_bias():
    domain = "{kind: real, min: 0, max: 5, points: 6}"
    text = spec().replace('{"kind": "integer", "min": 0, "max": 5}', domain)
    artifact = compile_text(text)
    assert artifact.certificate.label.domain["rounding"] == "unbiased"
    assert check_bytes(artifact.model).ok
    with pytest.raises(SpecError, match="nearest point is biased"):
        parse_spec(text.replace("points: 6", "points: 6, rounding: nearest"))


def test_large_epsilon_is_debiased_randomized_response_and_small_epsilon_two_outputs():
    large = utility(spec(12))["noisy_label_loss"]
    low = 1 / math.exp(12)  # debiased RR: y's own output most often, all others with odds e^−ε
    values = np.array([((math.expm1(12) + 6) * y - 15) / math.expm1(12) for y in range(6)])
    matrix = (np.ones((6, 6)) * low + np.eye(6) * (1 - low)) / (1 + 5 * low)
    weights = np.array([6, 3, 2, 1, 1, 4]) / 17
    errors = 0.5 * (values[None, :] - np.arange(6)[:, None]) ** 2
    assert large == pytest.approx(float((weights[:, None] * matrix * errors).sum()), rel=1e-6)
    small = compile_text(spec(0.01))
    reach = 5 / math.expm1(0.01)
    assert small.randomizer.values[0] == pytest.approx(-reach, rel=0.01)
    two_points = [(y + reach) * (5 + reach - y) / 2 for y in range(6)]
    expected = float(np.dot(weights, two_points))
    assert small.certificate.utility.noisy_label_loss == pytest.approx(expected, rel=1e-3)
    assert small.certificate.utility.noisy_label_loss <= expected


@pytest.fixture(scope="module")
def model():
    return compile_text(spec()).model


class TestCorruptedDuals:
    """A changed dual value makes the bound fail or weaken, never pass as it was."""

    @pytest.mark.parametrize("key", ["alpha", "beta"])
    @pytest.mark.parametrize("index", range(6))
    def test_one_value(self, model, key, index):
        for delta in (1e-9, -1e-9, 1e-3, -1e-3, 10.0):

            def change(certificate, delta=delta):
                values = certificate["optimality"][key]
                values[index] = repr(float(values[index]) + delta)

            assert not check_bytes(rebuilt(model, change)).ok

    @pytest.mark.parametrize(
        "change",
        [
            lambda c: c["optimality"].update(over="any"),
            lambda c: c["optimality"].update(over="penalty", amount="1"),
            lambda c: c["optimality"].update(over="everything"),
            lambda c: c["optimality"].update(amount="-1", over="max"),
            lambda c: c["optimality"].update(alpha=[]),
            lambda c: c["optimality"].update(alpha=["nan"] * 6),
            lambda c: c["optimality"].update(alpha=["1e999999999"] * 6),
            lambda c: c.update(optimality=None),
            lambda c: c["utility"].update(certified_gap=0.0, loss_lower_bound=1e9),
            lambda c: c["exact"].update(loss_lower_bound="1000000"),
            lambda c: c["prior"].update(weights=[1] * 6),
        ],
    )
    def test_other_claims(self, model, change):
        assert not check_bytes(rebuilt(model, change)).ok


@pytest.mark.parametrize("epsilon", [20, 31, 45, 60])
@pytest.mark.parametrize("outputs", ["grid: 9", "values: [-1, 3, 4, 30]"])
def test_given_outputs_at_an_epsilon_beyond_the_solver(epsilon, outputs):
    """HiGHS takes no coefficient as large as e^ε there, or finds one output: a constant."""
    text = spec(epsilon, [1] * 30, f"outputs: {{{outputs}}}", "absolute")
    assert utility(text)["largest_bias"] < 1e-12
