"""How sure a model is of its classes, where noise makes sums say more than they can."""

import numpy as np
from labeldp_trainer.config import OneRelease
from labeldp_trainer.linear.heads import temperature
from labeldp_trainer.one_release.fit import fitted_release
from labeldp_trainer.one_release.make import drawn, planned
from labeldp_trainer.one_release.rows import PublicRows


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


def three_data_sets():
    """Vectors and classes of training and of test rows: clouds, closer ones, and curves."""
    random = np.random.default_rng(3)

    def clouds(rows, distance):
        centres = np.random.default_rng(4).normal(size=(5, 20)) * distance
        y = random.integers(0, 5, rows)
        return (random.normal(size=(rows, 20)) + centres[y]).astype(np.float32), y

    def curves(rows):
        x = random.uniform(-1, 1, (rows, 2))
        y = (np.sin(4 * x[:, 0]) > x[:, 1]).astype(int) + (x[:, 0] > 0.3)
        wide = np.cos(x @ np.random.default_rng(5).normal(size=(2, 60)) * 3)
        return wide.astype(np.float32), y

    yield 5, clouds(3_000, 0.8), clouds(2_000, 0.8)
    yield 5, clouds(3_000, 0.4), clouds(2_000, 0.4)
    yield 3, curves(3_000), curves(2_000)


def released(vectors, labels, classes, epsilon, head, repeats=3):
    """Weights and biases of models of as many releases."""
    method = OneRelease.model_validate({"kind": "one_release", "epsilon": epsilon, "delta": 1e-5})
    rows = PublicRows(count=len(vectors), vectors=vectors, spectrum=None, sha256="0" * 64)
    plan = planned(rows, method, tuple(range(classes)))
    return [fitted_release(drawn(plan, rows, labels, method), rows, head) for _ in range(repeats)]


def judged(models, vectors, labels):
    """Mean accuracy and log loss."""
    found = []
    for w, b in models:
        logits = vectors @ w + b
        logits -= logits.max(axis=1, keepdims=True)
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        right = logits.argmax(axis=1) == labels
        found.append((right.mean(), -logs[np.arange(len(labels)), labels].mean()))
    return np.mean(found, axis=0)


def test_softmax_is_as_good_as_ridge_and_surer_only_with_less_noise():
    """On three data sets: accuracy, and the log loss falls as ε grows."""
    for classes, (rows, y), (others, truth) in three_data_sets():
        mean, deviation = rows.mean(axis=0), rows.std(axis=0)
        x, test = (rows - mean) / deviation, (others - mean) / deviation
        losses = []
        for epsilon in (0.2, 1.0, 8.0):
            of_heads = {
                head: judged(released(x, y, classes, epsilon, head), test, truth)
                for head in ("softmax", "ridge")
            }
            noisy = 0.03 if epsilon < 1 else 0.01
            assert of_heads["softmax"][0] >= of_heads["ridge"][0] - noisy
            losses.append(of_heads["softmax"][1])
        assert losses[0] > losses[1] > losses[2]
        assert losses[0] < np.log(classes)  # no worse than no model
