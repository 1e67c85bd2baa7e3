"""Losses against their formulas, and optimizers against theirs."""

import jax
import jax.numpy as jnp
import numpy as np
from labeldp_trainer.config.model import OptimizerConfig
from labeldp_trainer.data import Task
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods.stepped import build_optimizer
from labeldp_trainer.operators import POISSON_FLOOR

OUTPUTS = jnp.array([[-1.0], [0.5], [3.0]])
NUMBERS = jnp.array([0.0, 2.0, 3.0])


def test_regression():
    f, y = np.array(OUTPUTS)[:, 0], np.array(NUMBERS)
    squared = Loss("squared", Task()).per_example(OUTPUTS, NUMBERS)
    np.testing.assert_allclose(squared, (f - y) ** 2 / 2)
    np.testing.assert_allclose(
        Loss("absolute", Task()).per_example(OUTPUTS, NUMBERS), np.abs(f - y)
    )
    positive = np.log1p(np.exp(f)) + POISSON_FLOOR
    poisson = Loss("poisson", Task())
    np.testing.assert_allclose(
        poisson.per_example(OUTPUTS, NUMBERS), positive - y * np.log(positive), rtol=1e-6
    )
    assert set(poisson.metrics(OUTPUTS, NUMBERS)) == {"loss", "mse", "mae"}


def test_poisson_is_finite_for_negative_private_labels():
    loss = Loss("poisson", Task())
    values = loss.per_example(jnp.array([[-1e4]]), jnp.array([-50.0]))
    gradient = jax.grad(lambda o: loss.per_example(o, jnp.array([-50.0])).sum())(
        jnp.array([[-1e4]])
    )
    assert np.isfinite(values).all()
    assert np.isfinite(gradient).all()


def test_soft_labels_agree_with_classes():
    loss = Loss("cross_entropy", Task(("a", "b", "c")))
    logits = jax.random.normal(jax.random.key(0), (4, 3))
    classes = jnp.array([0, 2, 1, 1], jnp.int32)
    hard = loss.per_example(logits, classes)
    np.testing.assert_allclose(loss.per_example(logits, jnp.eye(3)[classes]), hard, rtol=1e-6)
    logs = np.array(logits) - np.log(np.exp(np.array(logits)).sum(1, keepdims=True))
    expected = -logs[np.arange(4), np.array(classes)]
    np.testing.assert_allclose(hard, expected, rtol=1e-5)
    accuracy = loss.metrics(logits, classes)["accuracy"]
    np.testing.assert_array_equal(accuracy, np.argmax(logits, 1) == np.array(classes))


def test_l2_acts_on_weights_only_and_in_front_of_the_optimizer():
    optimizer = build_optimizer(OptimizerConfig(learning_rate=0.1, l2=0.5), 1)
    params = {"w": jnp.ones((2, 1)), "b": jnp.ones(2)}
    zero = jax.tree.map(jnp.zeros_like, params)
    updates, _ = optimizer.update(zero, optimizer.init(params), params)
    np.testing.assert_allclose(updates["w"], -0.05)
    np.testing.assert_array_equal(updates["b"], 0)
