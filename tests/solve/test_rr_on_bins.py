"""RR-on-Bins against brute force, and in limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from labeldp_compile.solve.rr_on_bins import solve_rr_on_bins
from tests.solve.bins_reference import (
    LOSSES,
    by_brute_force,
    check_solution,
    problems,
    repeatable,
    unavoidable,
)


@pytest.mark.parametrize("loss", LOSSES)
@settings(repeatable, max_examples=120)
@given(problem=problems())
def test_equals_brute_force(loss, problem):
    labels, prior, epsilon = problem
    solution = solve_rr_on_bins(labels, prior, epsilon, loss)
    honest = check_solution(solution, labels, prior, epsilon, loss)
    # The reference rounds its outputs, and kl_div cancels: that is what large ε magnifies.
    noise = {"squared": 1e-30 * labels[-1] ** 2, "absolute": 0.0, "poisson": 1e-15 * labels[-1]}
    expected = by_brute_force(labels, prior, epsilon, loss)
    assert honest == pytest.approx(expected, rel=1e-9, abs=noise[loss])


@pytest.mark.parametrize("loss", LOSSES)
def test_cuts_outside_all_outputs_are_not_needed(loss, monkeypatch):
    labels = np.arange(600.0)
    args = labels, (1 + labels) ** -1.5, 0.3, loss
    expected = solve_rr_on_bins(*args).loss
    monkeypatch.setattr("labeldp_compile.solve.rr_on_bins._KEEP", 0)
    assert solve_rr_on_bins(*args).loss == pytest.approx(expected, rel=1e-12)


def test_example_of_the_paper():
    solution = solve_rr_on_bins(
        np.array([0.0, 1.0, 2.0]), np.array([0.6, 0.25, 0.15]), 0.5, "squared"
    )
    np.testing.assert_array_equal(solution.starts, [0, 1])
    np.testing.assert_allclose(solution.values, [0.396, 0.720], atol=5e-4)
    # Table 1: ½E(y − f(x))² of the best f on true labels, and of the best f on private ones.
    joint, labels, e = np.array([[0.35, 0.1, 0.05], [0.25, 0.15, 0.1]]), np.arange(3), np.exp(0.5)
    means = np.array([[e, 1], [1, e], [1, e]]) / (e + 1) @ solution.values
    true, private = (joint @ each / joint.sum(axis=1) for each in (labels, means))
    np.testing.assert_allclose(private, [0.542, 0.558], atol=5e-4)
    losses = [(joint * (labels - f[:, None]) ** 2).sum() / 2 for f in (true, private)]
    np.testing.assert_allclose(losses, [0.2625, 0.2726], atol=5e-5)  # in print 2.625 and 2.726


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("prior", [[3.0], [0.0, 2.0, 0.0, 0.0]])
@pytest.mark.parametrize("value", [0.0, 5.0])
def test_one_label_with_prior(loss, prior, value):
    labels = value + np.arange(len(prior)) * 2.0
    expected = labels[np.argmax(prior)]
    for epsilon in (0.0, 0.01, 1.0, 30.0):
        solution = solve_rr_on_bins(labels, np.array(prior), epsilon, loss)
        np.testing.assert_array_equal(solution.starts, [0])
        np.testing.assert_allclose(solution.values, [expected], rtol=1e-15)
        poisson = expected - expected * np.log(expected) if expected else 0.0
        assert solution.loss == pytest.approx(poisson if loss == "poisson" else 0.0, abs=1e-15)


@pytest.mark.parametrize(("prior", "chance", "values"), [([3, 1], 3, [0]), ([10, 9, 6], 4, [0, 1])])
def test_ties_go_to_fewer_bins(prior, chance, values):
    # One bin more has the same loss: 1/4 with two labels, 11/25 with three.
    labels = np.arange(len(prior)) * 1.0
    solution = solve_rr_on_bins(labels, np.array(prior), np.log(chance), "absolute")
    np.testing.assert_array_equal(solution.values, values)
    assert solution.loss == pytest.approx({2: 1 / 4, 3: 11 / 25}[len(prior)], rel=1e-12)


@pytest.mark.parametrize("prior", [[1e308] * 3, [5e-324] * 3, [1e-300, 1.0, 1e-300]])
def test_extreme_priors(prior):
    for loss in LOSSES:
        labels, prior = np.array([0.0, 1.0, 3.0]), np.array(prior)
        for epsilon in (1e-12, 1.0, 100.0):
            solution = solve_rr_on_bins(labels, prior, epsilon, loss)
            check_solution(solution, labels, prior / prior.max(), epsilon, loss)
        for epsilon in (740.0, 1e4):
            solution = solve_rr_on_bins(labels, prior, epsilon, loss)
            apart = unavoidable(loss, labels, prior / prior.max())
            assert solution.loss == pytest.approx(apart, rel=1e-12, abs=1e-290)


def test_labels_without_a_loss_are_refused():
    for labels in ([0.0, np.nan, 1.0], [0.0, 1.0, 1e151]):
        with pytest.raises(ValueError, match="at most 1e"):
            solve_rr_on_bins(np.array(labels), np.ones(3), 1.0, "squared")
    with pytest.raises(ValueError, match="poisson"):
        solve_rr_on_bins(np.array([-1.0, 0.0, 1.0]), np.ones(3), 1.0, "poisson")
