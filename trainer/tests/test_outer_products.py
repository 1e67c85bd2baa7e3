import jax
import jax.numpy as jnp
import numpy as np
import pytest
from labeldp_trainer.data import FeatureShape
from labeldp_trainer.dp_gradient.hull import HullRows, materialise
from labeldp_trainer.dp_gradient.outer_products import LossProgram
from labeldp_trainer.models import mnist_cnn

from trainer.tests.models import examples, flat, parameters, slow_clip, slow_gradient

CLASSES = 3
LABELS = jnp.arange(CLASSES, dtype=jnp.int32)


def loss_of(logits):
    return lambda params, x, y: -jax.nn.log_softmax(logits(params, x))[y]


def rows_times(params, x):
    return jnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def times_columns(params, x):
    hidden = jnp.tanh(params["w1"].T @ x + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def transposed(params, x):
    hidden = jnp.tanh(jax.lax.dot_general(x[None], params["v1"], (((1,), (1,)), ((), ())))[0])
    return hidden @ params["w2"] + params["b2"]


def twice(params, x):
    hidden = jnp.tanh(x @ params["w1"]) + jnp.tanh((2 * x) @ params["w1"])
    return hidden @ params["w2"] + params["b2"] + params["b1"][:CLASSES]


def wide(dtype=np.float64):
    params = parameters(features=40, hidden=30, outputs=CLASSES, dtype=dtype, scale=0.3)
    return params, examples(4, features=40, dtype=dtype)


@pytest.mark.parametrize(
    ("logits", "outer"), [(rows_times, 1), (times_columns, 0), (transposed, 1), (twice, 0)]
)
def test_hulls_of_dense_layers_against_a_loop_of_gradients(x64, logits, outer):
    params, x = wide()
    if logits is transposed:
        params = {"v1": params["w1"].T, "w2": params["w2"], "b2": params["b2"]}
    loss = loss_of(logits)
    assert len(LossProgram(loss, params, x[0], LABELS[0]).outer) == outer
    slow = np.stack(
        [slow_clip(slow_gradient(loss, params, xi, k), 0.9) for xi in x for k in LABELS]
    )
    vector = jax.tree.map(
        lambda p: jnp.cos(jnp.arange(p.size, dtype=p.dtype)).reshape(p.shape), params
    )
    a = jnp.sin(jnp.arange(len(slow), dtype=x.dtype))

    @jax.jit
    def products():
        vertices = materialise(loss, params, HullRows(x, LABELS, jnp.ones(4, bool), 0.9))
        return vertices.gram(), vertices.correlate(vector), vertices.combine(a)

    gram, correlated, combined = products()
    np.testing.assert_allclose(gram, slow @ slow.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(correlated, slow @ flat(vector), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(flat(combined), slow.T @ a, rtol=1e-9, atol=1e-12)


def test_a_vector_that_depends_on_the_label():
    params, x = wide(np.float32)

    def loss(params, x, y):
        return jnp.sum(jnp.square((x * (1 + y.astype(x.dtype))) @ params["w1"]))

    program = LossProgram(loss, params, x[0], LABELS[0])
    assert not program.outer
    found = jax.jit(lambda x: program.gradients(x, LABELS))(x[0])
    for k in range(CLASSES):
        own = np.concatenate([np.asarray(leaf[k]).reshape(-1) for leaf in found.whole])
        np.testing.assert_allclose(own, slow_gradient(loss, params, x[0], k), rtol=1e-4, atol=1e-4)


def test_a_network_of_convolutions(x64):
    model = mnist_cnn(FeatureShape(image=(8, 8, 1)), CLASSES)
    params = jax.tree.map(lambda p: p.astype(jnp.float64), model.init(jax.random.key(0)))
    image = jnp.asarray(np.random.default_rng(1).normal(size=(8, 8, 1)))
    loss = loss_of(lambda params, x: model.apply(params, x[None])[0])
    program = LossProgram(loss, params, image, LABELS[0])
    (use,) = program.outer
    assert jax.tree.leaves(params)[use.leaf].shape == (64, 16)
    found = jax.jit(lambda x: program.gradients(x, LABELS))(image)
    for k in range(CLASSES):
        outer = np.outer(found.inputs[0], found.slopes[0][k]).reshape(-1)
        parts = [np.asarray(leaf[k]) for leaf in found.whole]
        parts.insert(use.leaf, outer)
        expected = slow_gradient(loss, params, image, k)
        np.testing.assert_allclose(np.concatenate(parts), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_dense_layer_on_features_that_are_not_finite(x64, bad):
    """The row is left out, whichever of its factors is not finite."""
    params, x = wide()
    loss = loss_of(rows_times)
    rows = HullRows(x.at[2].set(bad), LABELS, jnp.ones(4, bool))
    gram = jax.jit(lambda: materialise(loss, params, rows).gram())()
    used = [x[i] for i in (0, 1, 0, 3)]
    slow = np.stack([slow_gradient(loss, params, xi, k) for xi in used for k in LABELS])
    np.testing.assert_allclose(gram, slow @ slow.T, rtol=1e-9, atol=1e-12)
