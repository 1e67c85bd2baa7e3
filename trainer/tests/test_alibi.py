"""ALIBI: the posterior against Bayes' rule in slow motion, and whole runs."""

import jax
import jax.numpy as jnp
import numpy as np
from labeldp_trainer.methods.published.label_noise import noisy_label_loss, posterior
from labeldp_trainer.randomize import STEPS

EPSILON = 1.7


def slow_posterior(noisy, prior):
    """Pr[c | noisy] for noisy entries in units, with the Laplace density of scale 2/ε."""
    joint = []
    for c, p in enumerate(prior):
        likelihood = p
        for entry, x in enumerate(noisy):
            likelihood *= np.exp(-abs(x - (entry == c)) * EPSILON / 2)
        joint.append(likelihood)
    return np.array(joint) / sum(joint)


def examples():
    """Noisy entries in lattice steps far inside and outside 0 … S, and logits."""
    random = np.random.default_rng(0)
    steps = np.round(random.laplace(scale=2 * STEPS / EPSILON, size=(6, 4))).astype(int)
    steps[np.arange(6), random.integers(0, 4, 6)] += STEPS
    return steps, random.normal(size=(6, 4)).astype(np.float32)


def test_the_posterior_needs_no_more_than_the_clamped_noise():
    steps, _ = examples()
    assert (steps < 0).any()
    assert (steps > STEPS).any()
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
