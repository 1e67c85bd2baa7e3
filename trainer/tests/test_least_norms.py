import jax
import jax.numpy as jnp
import numpy as np
import pytest
from labeldp_trainer.data import FeatureShape
from labeldp_trainer.dp_gradient.hull import HullRows
from labeldp_trainer.dp_gradient.least_norms import least_norms
from labeldp_trainer.models import mnist_cnn

CLASSES, ROWS = 3, 5
CNN = mnist_cnn(FeatureShape(image=(8, 8, 1)), CLASSES, channels=(2, 3), hidden=4)


def weights(*shapes):
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes]


def entropy(logits, y):
    return -jax.nn.log_softmax(logits)[y]


def perceptron(p, x, y):
    return entropy(jax.nn.relu(x[None] @ p[0] + p[1][None])[0] @ p[2], y)


def shared(p, x, y):
    return entropy(jnp.tanh(jnp.tanh(x @ p[0]) @ p[0]) @ p[1], y)


def used_elsewhere(p, x, y):
    return entropy(x @ p[0], y) + jnp.sum(p[0] ** 2)


def a_set(p, x, y):
    return entropy(jax.nn.relu(x.reshape(2, 2) @ p[0]).sum(axis=0) @ p[1], y)


def looked_up(p, x, y):
    return entropy(p[0][jnp.argmax(x)] @ p[1], y)


def within_jit(p, x, y):
    return jax.jit(perceptron)(p, x, y)


def transposed(p, x, y):
    return entropy(x @ p[0].T, y)


def without_matrices(p, x, y):
    return entropy(x[:CLASSES] * p[0], y)


def convolutions(p, x, y):
    return entropy(CNN.apply(p, x[None])[0], y)


@pytest.mark.parametrize(
    ("loss", "params", "shape"),
    [
        (perceptron, weights((4, 6), (6,), (6, CLASSES)), (4,)),
        (within_jit, weights((4, 6), (6,), (6, CLASSES)), (4,)),
        (shared, weights((4, 4), (4, CLASSES)), (4,)),
        (used_elsewhere, weights((4, CLASSES)), (4,)),
        (a_set, weights((2, 6), (6, CLASSES)), (4,)),
        (looked_up, weights((4, 6), (6, CLASSES)), (4,)),
        (transposed, weights((CLASSES, 4)), (4,)),
        (without_matrices, weights((CLASSES,)), (4,)),
        (convolutions, CNN.init(jax.random.key(0)), (8, 8, 1)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_norms_of_all_matrices(loss, params, shape):
    """The norm of the gradients of all matrices, so at most that of the whole gradient."""
    x = jnp.asarray(np.random.default_rng(1).normal(size=(ROWS, *shape)), jnp.float32)
    labels = jnp.arange(CLASSES, dtype=jnp.int32)
    rows = HullRows(x, labels, jnp.ones(ROWS, bool), 1.0)
    found = jax.jit(lambda p: least_norms(loss, p, rows, microbatch=2))(params)
    gradients = jax.jit(jax.vmap(jax.vmap(jax.grad(loss), (None, None, 0)), (None, 0, None)))(
        params, x, labels
    )

    def length(some):
        leaves = [leaf for leaf in jax.tree.leaves(gradients) if some(leaf.ndim - 2)]
        return np.sqrt(sum(np.square(leaf).reshape(ROWS, CLASSES, -1).sum(-1) for leaf in leaves))

    matrices = length(lambda ndim: ndim == 2)
    np.testing.assert_allclose(found, matrices + np.zeros((ROWS, CLASSES)), rtol=1e-5)
    assert np.all(np.asarray(found) <= length(lambda ndim: True) * (1 + 1e-5))


def test_what_is_not_finite():
    """A row whose loss or gradients overflow has no finite bound; an empty one has zero."""
    x = jnp.asarray([[0.0] * 4, [jnp.inf] * 4, [jnp.nan] * 4], jnp.float32)
    rows = HullRows(x, jnp.arange(CLASSES, dtype=jnp.int32), jnp.ones(3, bool), 1.0)
    for loss, shapes in (
        (perceptron, [(4, 6), (6,), (6, CLASSES)]),
        (without_matrices, [(CLASSES,)]),
    ):
        found = np.asarray(least_norms(loss, weights(*shapes), rows, microbatch=1))
        assert np.isfinite(found).all(axis=1).tolist() == [True, False, False]
