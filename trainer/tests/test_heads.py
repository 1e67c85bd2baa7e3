"""How sure a model is of its classes, where noise makes sums say more than they can."""

import numpy as np
from labeldp_trainer.data.coded import Coded
from labeldp_trainer.linear.heads import temperature
from labeldp_trainer.linear.labels import fitted_labels


def test_noise_does_not_make_a_model_certain():
    """Far apart classes, and an agreement above the largest: no finite β would be the best."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 900)
    used = np.eye(3, dtype=np.float32)[labels] + random.normal(0, 0.1, (900, 3)).astype(np.float32)
    weights, factors = np.eye(3), np.ones(900, np.float32)
    scores = used @ weights
    certain = float(scores.max(axis=1).sum())
    for agreement in (certain, 1.02 * certain):
        beta = temperature(used, weights, factors, agreement)
        logits = beta * scores
        logits -= logits.max(axis=1, keepdims=True)
        sure = 1 / np.exp(logits).sum(axis=1)
        assert 0.9 < sure.mean() < 0.999
    # below that, β makes the scores agree as much as they should
    agreement = 0.9 * certain
    beta = temperature(used, weights, factors, agreement)
    share = np.exp(beta * scores) / np.exp(beta * scores).sum(axis=1, keepdims=True)
    assert np.isclose((share * scores).sum(), agreement, rtol=1e-5)


def test_fewer_rows_than_columns():
    """Sums are singular; rounding of float32 gives them small eigenvalues, which mean nothing."""
    random = np.random.default_rng(1)
    labels = random.integers(0, 3, 240).astype(np.int32)
    vectors = random.standard_normal((240, 160)).astype(np.float32)
    vectors[:, :3] += 6 * np.eye(3, dtype=np.float32)[labels]
    spectrum, groups = 1 / np.arange(1.0, 161), np.repeat([0, 1], 80).astype(np.int32)
    coded = Coded.one_hot(labels[:120], 3)
    w, b = fitted_labels(
        vectors[:120], spectrum, coded, "softmax", groups=groups, shares=np.full(3, 1 / 3)
    )
    assert ((vectors[120:] @ w + b).argmax(axis=1) == labels[120:]).mean() > 0.95
