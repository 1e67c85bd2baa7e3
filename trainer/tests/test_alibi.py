"""ALIBI: the posterior against Bayes' rule, and how far a step goes."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from labeldp_trainer.methods.published.label_noise import information, noisy_label_loss, posterior
from labeldp_trainer.randomize import STEPS, NoisyOneHot

from trainer.tests.label_method_helpers import CONFIG, problem, run
from trainer.tests.trainer_helpers import INTEGERS, write_artifact

EPSILON = 1.7


def slow_posterior(noisy, prior):
    """Pr[c | noisy] for noisy entries in units, with the Laplace density of scale 2/ε."""
    joint = prior * np.exp(-np.abs(noisy - np.eye(len(prior))).sum(axis=1) * EPSILON / 2)
    return joint / joint.sum()


def examples():
    """Noisy entries in lattice steps far inside and outside 0 … S, and logits."""
    random = np.random.default_rng(0)
    steps = np.round(random.laplace(scale=2 * STEPS / EPSILON, size=(6, 4))).astype(int)
    steps[np.arange(6), random.integers(0, 4, 6)] += STEPS
    return steps, random.normal(size=(6, 4)).astype(np.float32)


def test_the_posterior_needs_no_more_than_the_clamped_noise():
    steps, _ = examples()
    assert (steps < 0).any() and (steps > STEPS).any()
    fast = posterior(np.clip(steps, 0, STEPS).astype(np.uint8), EPSILON)
    for row, found in zip(steps, fast, strict=True):
        np.testing.assert_allclose(found, slow_posterior(row / STEPS, np.full(4, 0.25)), rtol=1e-6)


def test_the_gradient_is_that_of_cross_entropy_with_the_posterior():
    steps, logits = examples()
    noisy = jnp.asarray(np.clip(steps, 0, STEPS), jnp.uint8)

    def loss(outputs):
        return noisy_label_loss(outputs, noisy, jnp.float32(EPSILON)).sum()

    found = jax.grad(loss)(jnp.asarray(logits))
    for row, output, gradient in zip(steps, logits, found, strict=True):
        model = np.exp(output) / np.exp(output).sum()
        soft = slow_posterior(row / STEPS, model)
        np.testing.assert_allclose(gradient, model - soft, atol=2e-6)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_information_is_the_variance_of_the_posterior_relative_to_that_of_the_class(epsilon):
    labels = np.repeat(np.arange(2, dtype=np.int32), 50_000)
    noisy = NoisyOneHot(Fraction(epsilon)).randomize(labels, 2)
    variance = np.square(posterior(noisy, epsilon)[:, 0] - 0.5).mean()
    assert information(epsilon) == pytest.approx(variance / 0.25, rel=0.05)


@pytest.mark.parametrize("method", ["alibi, epsilon: 2", "privatized, artifact: numbers.onnx"])
def test_a_first_step_is_as_long_as_with_true_labels(tmp_path, method):
    text = INTEGERS.replace("max: 9", "max: 1").replace("squared", "zero_one").replace("3.0", "2")
    write_artifact(tmp_path, text.replace("optimal_unbiased", "randomized_response"))
    rows = problem(6000, 1)
    two = {name: array[rows["y"] < 2] for name, array in rows.items()}
    np.savez(tmp_path / "train.npz", **two)
    base = CONFIG.replace(", test: test.npz, classes: 12", ", classes: 2")
    base = base.replace("adam, learning_rate: 0.05", "sgd, learning_rate: 0.01")
    base = base.replace("epochs: 4, batch_size: 100", f"epochs: 1, batch_size: {len(two['y'])}")
    noisy, true = (
        run(tmp_path, f"kind: {each}", each[:4], base).params["w"] for each in (method, "none")
    )
    assert np.linalg.norm(noisy - true) < 0.3 * np.linalg.norm(true)
