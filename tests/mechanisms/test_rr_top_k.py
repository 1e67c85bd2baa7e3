"""RRTop-k and RRWithPrior: the paper's probabilities, its choice of k, and its optimality."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labeldp_verify.analysis import dual_is_feasible
from labeldp_verify.forms.exact_numbers import exp_lower

from labeldp_compile.mechanisms.randomized_response import best_k, dual_of_zero_one
from labeldp_compile.rounding.windows import rr_top_k
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec
from verifier.tests.analysed import realised_ratio
from verifier.tests.integers import plain_counts

weights_lists = st.lists(st.integers(0, 30), min_size=2, max_size=9).filter(any)
epsilons = st.fractions(Fraction(1, 20), 8, max_denominator=50)


@given(
    st.integers(2, 7).flatmap(
        lambda k: st.tuples(st.just(k), st.sets(st.integers(0, k - 1), min_size=1, max_size=k))
    ),
    epsilons,
    st.integers(9, 14),
)
def test_probabilities_are_those_of_algorithm_1(k_and_kept, epsilon, bits):
    k, kept = k_and_kept[0], sorted(k_and_kept[1])
    randomizer = rr_top_k([float(i) for i in range(k)], kept, epsilon, bits)
    assert realised_ratio(randomizer) <= exp_lower(epsilon)
    e, m, unit = exp(epsilon), len(kept), 2**bits
    for y in range(k):
        counts = plain_counts(randomizer, y)
        for output in kept:
            ideal = 1 / m if y not in kept else (e if output == y else 1) / (e + m - 1)
            # The base weight is rounded up once; the own segment bears what that costs.
            assert counts[float(output)] / unit == pytest.approx(ideal, abs=(m + 1) / unit)


@given(weights_lists, epsilons)
def test_best_k_is_the_argmax_of_algorithm_2(weights, epsilon):
    k, e = best_k(weights, epsilon), exp(epsilon)
    ranked = np.cumsum(sorted(weights, reverse=True))
    scores = ranked / (e + np.arange(len(weights)))
    assert scores[k - 1] >= scores.max() * (1 - 1e-12)
    assert all(scores[: k - 1] < scores[k - 1] * (1 + 1e-12))


@given(weights_lists, epsilons)
def test_the_dual_meets_the_loss(weights, epsilon):
    prior = np.array(weights) / sum(weights)
    alpha = dual_of_zero_one(prior, float(epsilon))
    e, m = exp(epsilon), best_k(weights, epsilon)
    kept = e / (e + m - 1) * np.sort(prior)[::-1][:m].sum()
    assert alpha.sum() == pytest.approx(1 - kept, abs=1e-12)


@given(weights_lists, epsilons, st.fractions(Fraction(1, 10**6), 1))
def test_a_higher_bound_than_the_optimum_is_never_accepted(weights, epsilon, more):
    prior = np.array(weights) / sum(weights)
    alpha = [Fraction(a) for a in dual_of_zero_one(prior, float(epsilon)).tolist()]
    upper = exp_lower(epsilon)
    shifted = [a - Fraction(1, 10**12) for a in alpha]
    assert dual_is_feasible(weights, weights, upper, shifted, loss="zero_one")
    for place in range(len(alpha)):
        raised = [a + more * (i == place) for i, a in enumerate(alpha)]
        assert not dual_is_feasible(weights, weights, upper, raised, loss="zero_one")


def test_the_certificate_proves_that_no_randomizer_changes_fewer_labels():
    prior = {"kind": "public", "weights": [50, 3, 9, 9, 1]}
    text = spec(values=[*"abcde"], prior=prior, mechanism="rr_with_prior")
    artifact = compile_text(text)
    utility = artifact.certificate.to_json()["utility"]
    assert utility["certified_gap"] < 1e-14
    assert artifact.certificate.optimality.over == "any"
    e = exp(1)
    assert 1 - utility["noisy_label_loss"] == pytest.approx(
        max(e / (e + k - 1) * s / 72 for k, s in enumerate(np.cumsum([50, 9, 9, 3, 1]), 1))
    )


def test_a_cost_of_one_label_fewer_keeps_too_few_labels():
    """As benchmarks/notes/mechanisms.md says, on 300 priors of ten labels at ε = 1."""
    priors = np.round(np.random.default_rng(0).dirichlet(np.ones(10), 300) * 1e6).astype(int)
    right = np.array([best_k(prior.tolist(), Fraction(1)) for prior in priors])
    costs, ranked = exp(1) + np.arange(10), np.cumsum(-np.sort(-priors, axis=1), axis=1)
    wrong = 1 + np.argmax(ranked / (costs - 1), axis=1)
    assert (wrong <= right).all() and (wrong < right).sum() == 196
    kept = (np.choose(k - 1, (ranked / costs).T) for k in (wrong, right))
    assert round(1 - min(next(kept) / next(kept)), 3) == 0.18
