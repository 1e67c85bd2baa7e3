"""The last fit of more than two classes is a softmax."""

import numpy as np
import pytest
from labeldp_trainer.interactions.softmax import softmax_weights
from labeldp_trainer.methods.interactions import params_of
from scipy.special import logsumexp

from trainer.tests.staged_release.staged_helpers import own_noise, table

CLASSES = ("a", "b", "c", "rare")


def logits(x):
    """Main effects, and what two columns add together; the last class is one row in a hundred."""
    a, b = np.nan_to_num(x[:, 0]), np.nan_to_num(x[:, 1])
    return np.stack([1.5 * a, 1.5 * b, 2 * a * b, np.full(len(a), -3.0)], axis=1)


def drawn(own, random):
    return (own + random.gumbel(size=own.shape)).argmax(axis=1).astype(np.int32)


def loss(own, y):
    return (logsumexp(own, axis=1) - own[np.arange(len(y)), y]).mean()


def fitted(count, epsilon, seed, owners=None, *, truth=logits, classes=CLASSES):
    """Losses of true scores, of the softmax and of the fit by squares, on fresh labels."""
    own = table(3, count, classes=classes, owners=owners, epsilon=epsilon, delta=1e-5, order=2)
    random, scores = np.random.default_rng(seed), truth(own.public.features["numeric"])
    draws = own.draws(drawn(scores, random), add_noise=own_noise(random))
    fit, fresh = own.learn(draws), drawn(scores, random)
    weights, base = softmax_weights(fit, None)
    found = np.stack([fit.terms.weighted(w) for w in weights.T], axis=1) + base
    squares, bottom = fit.raw()
    shares = np.stack([fit.terms.weighted(w) for w in squares.T], axis=1) + bottom
    assert "softness" not in params_of(fit, "cross_entropy", None)
    positive = np.log(np.maximum(shares, 1e-3))
    return loss(scores, fresh), loss(found, fresh), loss(positive, fresh)


@pytest.mark.slow
def test_a_softmax_is_near_the_truth_and_better_than_squares_where_noise_is_large():
    for epsilon, most in ((0.5, 0.06), (2.0, 0.04), (8.0, 0.03)):
        truth, found, squares = fitted(6000, epsilon, 0)
        assert truth < found < min(squares + 0.003 * (epsilon > 2), truth + most)


@pytest.mark.slow
def test_rows_of_users_count_as_their_shares():
    owners = np.arange(2000) // 3
    truth, found, squares = fitted(2000, 4.0, 1, owners)
    assert truth < found < min(squares, truth + 0.06)


def test_where_noise_hides_everything_a_softmax_is_about_as_good_as_a_constant():
    losses = [
        fitted(300, 0.2, seed, truth=lambda x: np.zeros((len(x), 3)), classes=CLASSES[:3])
        for seed in range(12)
    ]
    truth, found, _ = np.mean(losses, axis=0)
    assert found < truth + 0.1
