"""Softmax models from sums: how much they are penalised, and how sure they are."""

import numpy as np
import pytest
from labeldp_trainer.config import OneRelease
from labeldp_trainer.data.labels import Coded
from labeldp_trainer.linear.choice import CanonicalFit, likely, temperature, unit_coordinates
from labeldp_trainer.linear.fit import fitted_labels, label_sums
from labeldp_trainer.methods.corrections import added_variance
from labeldp_trainer.one_release.plan import drawn, fitted_release
from labeldp_trainer.one_release.rows import PublicRows
from scipy.special import expit, logsumexp


def test_noise_does_not_make_a_model_certain():
    """Far apart classes, and an agreement above the largest: no finite β would be the best."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 900)
    used = np.eye(3, dtype=np.float32)[labels] + random.normal(0, 0.1, (900, 3)).astype(np.float32)
    scores, factors = used, np.ones(900, np.float32)
    certain = float(scores.max(axis=1).sum())
    for agreement in (certain, 1.02 * certain):
        beta = temperature(scores, np.zeros(3), factors, agreement)
        logits = beta * scores
        logits -= logits.max(axis=1, keepdims=True)
        sure = 1 / np.exp(logits).sum(axis=1)
        assert 0.9 < sure.mean() < 0.999
    # below that, β makes the scores agree as much as they should
    agreement = 0.9 * certain
    beta = temperature(scores, np.zeros(3), factors, agreement)
    share = np.exp(beta * scores) / np.exp(beta * scores).sum(axis=1, keepdims=True)
    assert np.isclose((share * scores).sum(), agreement, rtol=1e-5)


def test_an_agreement_that_noise_hides_makes_a_model_unsure():
    """What is known stays; what is not lies between nothing and the most that can be."""
    assert np.isclose(likely(0.3, 1e-3, 0.5), 0.3, atol=1e-5)
    assert likely(0.9, 1e-3, 0.5) == 0.5
    assert likely(-0.9, 1e-3, 0.5) == 0
    assert np.isclose(likely(0.0, 100.0, 0.5), 1 / 6, atol=1e-3)  # a half of two thirds
    assert likely(3.0, 3.0, 0.5) < 0.25
    rising = [likely(z, 1.0, 0.5) for z in np.linspace(-3, 3, 13)]
    assert all(np.diff(rising) > 0)


@pytest.mark.slow
def test_private_labels_that_teach_nothing_leave_a_model_unsure():
    """Randomized response at ε = 0.05: the loss of equal probabilities is log 10."""
    random, rows, k = np.random.default_rng(4), 4000, 10
    labels = random.integers(0, k, 2 * rows)
    vectors = random.standard_normal((2 * rows, 40)).astype(np.float32)
    vectors[:, :k] += 2 * np.eye(k, dtype=np.float32)[labels]
    vectors /= vectors.std(axis=0)
    weight = (k - 1 + np.exp(0.05)) / (np.exp(0.05) - 1)
    debiased = weight * np.eye(k) + (1 - weight) / k
    losses = []
    for _ in range(2):
        keeps = random.random(rows) < 1 / weight
        private = np.where(keeps, labels[:rows], random.integers(0, k, rows)).astype(np.int32)
        coded = Coded(private, debiased)
        added = added_variance(coded, [], classes=True)
        known = {"shares": np.full(k, 1 / k), "added": added}
        sums = label_sums(vectors[:rows], 1 / np.arange(1.0, 41), coded, **known)
        w, b = fitted_labels(sums, "softmax")
        logits = vectors[rows:] @ w + b
        own = logits[np.arange(rows), labels[rows:]]
        losses.append(float((logsumexp(logits, axis=1) - own).mean()))
    assert max(losses) < np.log(k) + 0.3, losses


def test_a_model_of_all_rows_may_look_at_a_sample():
    """Almost as good as one that looks at all rows, and far better than one of the sample alone."""
    random, n, test = np.random.default_rng(0), 60_000, 20_000
    normal = random.standard_normal((n + test, 10)).astype(np.float32)
    vectors = np.concatenate([normal, np.abs(normal)], axis=1)
    odds = vectors @ random.normal(0, 0.5, 20) - 1
    labels = (random.random(n + test) < expit(odds)).astype(np.int32)
    coded, rows = Coded.one_hot(labels[:n], 2), np.arange(0, n, 15)
    known = {"shares": np.bincount(labels[:n]) / n}

    def excess(sums):
        w, b = fitted_labels(sums, "softmax")
        found, true = vectors[n:] @ (w[:, 1] - w[:, 0]) + b[1] - b[0], expit(odds[n:])
        own = np.logaddexp(0, found) - true * found
        return float((own - np.logaddexp(0, odds[n:]) + true * odds[n:]).mean())

    whole = label_sums(vectors[:n], None, coded, **known)
    alone = label_sums(vectors[rows], None, coded.part(rows), **known)
    each = lambda of: [of(vectors[:999], slice(999)), of(vectors[999:n], slice(999, n))]  # noqa: E731
    looked = label_sums(vectors[rows], None, coded, **known, streamed=(rows, each))
    np.testing.assert_allclose(looked.statistic, whole.statistic, rtol=1e-6, atol=1e-3)
    assert excess(looked) < 4 * excess(whole) < excess(alone) / 2


def test_fewer_rows_than_columns():
    """Sums are singular; rounding of float32 gives them small eigenvalues, which mean nothing."""
    random = np.random.default_rng(1)
    labels = random.integers(0, 3, 240).astype(np.int32)
    vectors = random.standard_normal((240, 160)).astype(np.float32)
    vectors[:, :3] += 6 * np.eye(3, dtype=np.float32)[labels]
    spectrum, groups = 1 / np.arange(1.0, 161), np.repeat([0, 1], 80).astype(np.int32)
    coded = Coded.one_hot(labels[:120], 3)
    sums = label_sums(vectors[:120], spectrum, coded, groups=groups, shares=np.full(3, 1 / 3))
    w, b = fitted_labels(sums, "softmax")
    assert ((vectors[120:] @ w + b).argmax(axis=1) == labels[120:]).mean() > 0.95


def test_the_response_is_the_slope_of_the_solution():
    random = np.random.default_rng(2)
    x = random.standard_normal((500, 6)).astype(np.float32) * np.geomspace(
        1, 30, 6, dtype=np.float32
    )
    factors = random.uniform(0.5, 2, 500).astype(np.float32)
    rows = x @ unit_coordinates(x, factors).astype(np.float32)
    goal, change = random.normal(0, 0.1, (2, 6, 3))
    for link, outputs in (("softmax", 3), ("poisson", 1)):
        fit = CanonicalFit(link, rows, factors, np.linspace(-1, 0, outputs))
        to, by = goal[:, :outputs], change[:, :outputs]
        ends = [fit.solve(to + side * 0.02 * by, 0.1, np.zeros_like(to)) for side in (-1, 1)]
        middle = fit.solve(to, 0.1, np.zeros_like(to))
        slope = (ends[1] - ends[0]) / 0.04
        error = np.abs(fit.response(middle, by, 0.1) - slope).max()
        assert error < 0.02 * np.abs(slope).max()


def measured(made, epsilon):
    """Log loss and accuracy of the softmax head and of ridge, on rows that did not train them."""
    vectors, spectrum, labels = made
    half = len(labels) // 2
    rows = PublicRows(count=half, vectors=vectors[:half], spectrum=spectrum, owners=None)
    method = OneRelease.model_validate({"kind": "one_release", "epsilon": epsilon, "delta": 1e-5})
    release = drawn(rows, method, tuple(range(labels.max() + 1)), "y", labels[:half])
    found = []
    for head in ("softmax", "ridge"):
        w, b = fitted_release(release, rows, head)
        logits = (vectors[half:] @ w + b).astype(float)
        logits -= logsumexp(logits, axis=1, keepdims=True)
        y = labels[half:]
        found.append((-logits[np.arange(len(y)), y].mean(), (logits.argmax(axis=1) == y).mean()))
    return found
