"""Classes that go together: what is found of them, and what it is worth."""

import numpy as np
import pytest
from labeldp_trainer.interactions.evidence import NoisySums, Outputs, coefficients
from labeldp_trainer.interactions.variances import together

CLASSES, COLUMNS, SUMS = 8, 120, 90
BASE = np.array([0.4, 0.2, 0.1, 0.1, 0.08, 0.06, 0.04, 0.02])
TERM_OF = np.concatenate([[-1], np.zeros(COLUMNS, int)])
VARIANCES = np.concatenate([[10.0], np.full(COLUMNS, 0.5)])


def released(seed, directions, *, privacy, label):
    """Noisy sums of classes whose coefficients lie in some directions, and the coefficients."""
    random = np.random.default_rng(seed)
    ways = np.linalg.qr(random.normal(size=(CLASSES, directions)))[0]
    effects = np.sqrt(0.5) * random.normal(size=(COLUMNS, directions)) @ ways.T
    cross = random.normal(size=(SUMS, COLUMNS + 1)) / np.sqrt(COLUMNS)
    gram = np.eye(SUMS)
    apart = (np.diag(BASE) - np.outer(BASE, BASE)) / (BASE * (1 - BASE)).mean()
    noise = np.sqrt(privacy) * random.normal(size=(SUMS, CLASSES))
    noise += np.sqrt(label) * random.multivariate_normal(np.zeros(CLASSES), apart, SUMS)
    scales = BASE * (1 - BASE) / (BASE * (1 - BASE)).mean()
    whole = np.concatenate([np.zeros((1, CLASSES)), effects])
    evidence = NoisySums(
        cross @ whole + noise, cross, privacy * gram, gram, label, Outputs.of_model(scales)
    )
    return evidence, whole


def error(evidence, effects):
    found = coefficients(evidence, TERM_OF, np.array([0.5]), 10.0)
    return float(np.square(found.mean - effects)[1:].sum())


@pytest.mark.parametrize(("privacy", "label"), [(0.1, 0.001), (0.01, 0.1), (0.05, 0.05)])
def test_errors_are_smaller_where_few_combinations_hold_what_is_learned(privacy, label):
    before = after = 0.0
    for seed in range(5):
        evidence, effects = released(seed, 2, privacy=privacy, label=label)
        before += error(evidence, effects)
        after += error(together(evidence, VARIANCES, BASE), effects)
    assert after < 0.8 * before


def test_combinations_are_turned_back():
    evidence, _ = released(0, 3, privacy=0.05, label=0.05)
    outputs = together(evidence, VARIANCES, BASE).outputs
    assert outputs.into @ outputs.back == pytest.approx(np.eye(CLASSES), abs=1e-9)
    assert np.square(outputs.into).sum(axis=0) == pytest.approx(np.ones(CLASSES))
