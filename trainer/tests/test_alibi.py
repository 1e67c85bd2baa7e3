"""ALIBI: the posterior against Bayes' rule in slow motion, and whole runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from labeldp_trainer.methods.published.label_noise import noisy_label_loss, posterior
from labeldp_trainer.randomize import STEPS

from trainer.tests.label_method_helpers import kept, problem, run, statement, write_problem

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


@pytest.mark.slow
def test_a_run_and_its_repetition(tmp_path, drawn):
    write_problem(tmp_path)
    result = run(tmp_path, f"kind: alibi, epsilon: {EPSILON}")
    assert drawn == [(3000, 12)]  # one word an entry, each label once
    assert result.metrics["test_accuracy"] > 0.7
    noisy = kept(result.folder)["private_labels"]
    assert (noisy.shape, noisy.dtype, noisy.max()) == ((3000, 12), np.uint8, STEPS)
    mine = noisy[np.arange(3000), problem(3000, 1)["y"]]
    shift = -np.expm1(-EPSILON / 4)  # Pr[entry > S/2 | 1] − Pr[entry > S/2 | 0]
    assert abs((mine > STEPS / 2).mean() - (noisy > STEPS / 2).mean() - shift * 11 / 12) < 0.04
    said = statement(result.folder)
    assert (said["method"], said["epsilon"], said["delta"]) == ("alibi", EPSILON, 0.0)
    assert said["details"]["l1_sensitivity"] == 2
    assert "3,000 labels was written as 12 entries 0 and 1" in said["statement"]
    again = run(tmp_path, f"kind: alibi, epsilon: {EPSILON}", resume=True)
    assert len(drawn) == 1
    jax.tree.map(np.testing.assert_array_equal, result.params, again.params)
