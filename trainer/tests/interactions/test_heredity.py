"""The last fit: what main effects say of interactions, and what answers say beside it."""

from itertools import combinations

import numpy as np
import pytest
from labeldp_trainer.interactions.evidence import (
    NoisySums,
    Outputs,
    coefficients,
    log_likelihood,
    variances_by_evidence,
)
from labeldp_trainer.interactions.terms import Term
from labeldp_trainer.interactions.variances import variances_by_heredity

NAMES, WIDTH = 10, 12
PAIRS = list(combinations(range(NAMES), 2))
TERMS = [Term(columns) for columns in [*((c,) for c in range(NAMES)), *PAIRS]]
TERM_OF = np.concatenate([[-1], np.repeat(np.arange(len(TERMS)), WIDTH)])
MAINS = 2.0 ** -np.arange(NAMES)
CONSTANT = 10.0


def variances(pairs):
    """Of main effects, and of pairs: ``pairs`` times the geometric mean of their two columns."""
    found = [MAINS[list(t.columns)].prod() ** (1 / t.size) for t in TERMS]
    return np.array(found) * np.array([[1.0, pairs][t.size - 1] for t in TERMS])


def start(pairs):
    """Main effects that are known, and pairs of which only a size is guessed."""
    return np.array([MAINS[t.columns[0]] if t.size == 1 else pairs for t in TERMS])


def released(true, seed, noise=0.5):
    """Noisy sums, as many as columns, and the coefficients that they are of."""
    random = np.random.default_rng(seed)
    effects = np.sqrt(true[TERM_OF[1:]]) * random.normal(size=len(TERM_OF) - 1)
    statistic = np.concatenate([[0.0], effects]) + noise * random.normal(size=len(TERM_OF))
    return exact_sums(statistic, noise), effects


def exact_sums(statistic, noise):
    one = np.eye(len(statistic))
    return NoisySums(
        statistic[:, None], one, noise**2 * one, 0 * one, 1.0, Outputs.of_model(np.ones(1))
    )


def test_the_slope_is_that_of_the_likelihood():
    evidence, _ = released(variances(0.1), 0)
    at, step = np.log(start(0.1)), 1e-3
    _, slope = log_likelihood(evidence, TERM_OF, np.exp(at), CONSTANT)
    for term in (0, NAMES - 1, NAMES, len(TERMS) - 1):
        moved = np.zeros_like(at)
        moved[term] = step
        up, down = (
            log_likelihood(evidence, TERM_OF, np.exp(at + sign * moved), CONSTANT)[0]
            for sign in (1, -1)
        )
        assert slope[term] == pytest.approx((up - down) / (2 * step), rel=0.01, abs=0.01)


def test_variances_that_are_too_large_for_float32_have_a_likelihood():
    evidence, _ = released(variances(0.1), 0)
    random = np.random.default_rng(1)
    mixed = random.normal(size=(len(TERM_OF), len(TERM_OF)))
    evidence = NoisySums(
        evidence.statistic, mixed, evidence.noise, evidence.gram, 1.0, evidence.outputs
    )
    value, slope = log_likelihood(evidence, TERM_OF, np.full(len(TERMS), 1e12), CONSTANT)
    assert np.isfinite(value)
    assert np.all(np.isfinite(slope))


def test_errors_are_smaller_where_pairs_follow_their_columns_and_too_much_is_expected():
    errors = {"heredity": 0.0, "evidence of each term": 0.0, "known variances": 0.0}
    kinds = [term.size for term in TERMS]
    true, begun = variances(0.1), start(0.3)
    for seed in range(2):
        evidence, effects = released(true, seed)
        each = variances_by_evidence(evidence, TERM_OF, begun, kinds, CONSTANT, searched=False)
        found = variances_by_heredity(evidence, TERMS, TERM_OF, begun, CONSTANT)
        for name, these in zip(errors, (found, each, true), strict=True):
            mean = coefficients(evidence, TERM_OF, these, CONSTANT).mean[1:, 0]
            errors[name] += np.square(mean - effects).sum()
    assert errors["known variances"] < errors["heredity"] < errors["evidence of each term"]


def test_a_strong_pair_of_weak_columns_is_found():
    true = variances(0.01)
    strong = TERMS.index(Term((8, 9)))
    true[strong] = 10.0
    evidence, effects = released(true, 5)
    found = variances_by_heredity(evidence, TERMS, TERM_OF, start(0.01), CONSTANT)
    assert found[strong] == pytest.approx(np.square(effects[TERM_OF[1:] == strong]).mean(), rel=0.5)
    assert np.argmax(found) == strong
