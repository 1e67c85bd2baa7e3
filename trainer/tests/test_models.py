"""Shapes, parameter counts, and that no example sees another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from labeldp_trainer import ConfigError, FeatureShape, parse_config
from labeldp_trainer.models import (
    Linear,
    Mlp,
    ResNet18,
    build_model,
    cifar_cnn,
    count_parameters,
    layers,
    mnist_cnn,
)
from labeldp_trainer.models.layers import conv, conv_init, pool_average, pool_max

from trainer.tests.trainer_helpers import CONFIG

TABLE = FeatureShape(numeric=2, vocabularies=(4, 3))
IMAGE = FeatureShape(image=(8, 8, 3))
MODELS = [
    Linear(TABLE, 2),
    Mlp(TABLE, 2, (5,), 3),
    Mlp(IMAGE, 2, (5,)),
    mnist_cnn(IMAGE, 2, (4, 4), 4),
    cifar_cnn(IMAGE, 2, (4, 4, 4), 4),
    ResNet18(IMAGE, 2, width=4, groups=2),
]


def features(shape, rows):
    key = jax.random.key(1)
    if shape.image is not None:
        return jax.random.normal(key, (rows, *shape.image))
    codes = jnp.arange(rows * 2, dtype=jnp.int32).reshape(rows, 2) % 3
    return {"numeric": jax.random.normal(key, (rows, shape.numeric)), "categorical": codes}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_examples_are_independent(model):
    params = jax.jit(model.init)(jax.random.key(0))
    params = jax.tree.map(lambda leaf: leaf + 0.01, params)  # Linear starts at zero
    x, apply = features(model.shape, 3), jax.jit(model.apply)
    whole = apply(params, x)
    assert whole.shape == (3, 2)
    assert np.isfinite(whole).all()
    assert np.ptp(whole, axis=0).all()
    others = jax.tree.map(lambda leaf: leaf.at[1:].set(0), x)
    np.testing.assert_array_equal(apply(params, others)[0], whole[0])
    assert not np.array_equal(apply(params, others)[1:], whole[1:])


def test_table_10():
    mnist = mnist_cnn(FeatureShape(image=(28, 28, 1)), 10)
    assert count_parameters(jax.eval_shape(mnist.init, jax.random.key(0))) == 15_210
    cifar = cifar_cnn(FeatureShape(image=(32, 32, 3)), 10)
    # 896 + 18,496 + 73,856 for the convolutions, 163,920 + 810 for the dense layers
    assert count_parameters(jax.eval_shape(cifar.init, jax.random.key(0))) == 257_978


def test_pools_see_their_block_and_drop_what_is_left():
    x = np.random.default_rng(0).normal(size=(1, 5, 4, 2)).astype(np.float32)
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        block = x[0, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        np.testing.assert_allclose(pool_average(x)[0, i, j], block.mean(axis=(0, 1)), rtol=1e-5)
        np.testing.assert_array_equal(pool_max(x)[0, i, j], block.max(axis=(0, 1)))
    assert pool_max(x).shape == (1, 2, 2, 2)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("side", [5, 8])
def test_one_example_is_convolved_like_many(side, stride):
    """One alone goes another way, which is quicker for its gradient."""
    layer = conv_init(jax.random.key(0), 3, 2, 4)
    x = features(FeatureShape(image=(side, side, 2)), 2)

    @jax.jit
    def both(layer):
        def total(layer, x):
            y = conv(x, layer, stride)
            return jnp.sum(jnp.sin(y)), y

        many = jax.grad(total, has_aux=True)(layer, x)
        one = [jax.grad(total, has_aux=True)(layer, x[i : i + 1]) for i in range(2)]
        return many, (jax.tree.map(jnp.add, one[0][0], one[1][0]), [y for _, y in one])

    (slope, y), (slopes, ys) = both(layer)
    np.testing.assert_allclose(y, np.concatenate(ys), rtol=1e-5, atol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), slope, slopes)


def test_dropout_only_with_a_key():
    model = cifar_cnn(IMAGE, 2, (4, 4, 4), 64)
    params, x = jax.jit(model.init)(jax.random.key(0)), features(IMAGE, 2)
    a, b = jax.jit(lambda: [model.apply(params, x, jax.random.key(k)) for k in (1, 2)])()
    assert not np.allclose(a, b)


@pytest.mark.parametrize(
    ("model", "shape", "expected"),
    [
        ("{kind: cnn, variant: mnist}", TABLE, "model.kind: cnn needs images"),
        ("{kind: cnn, variant: cifar}", FeatureShape(image=(7, 7, 1)), "at least 8 × 8 pixels"),
        ("{kind: resnet18, width: 6, groups: 4}", IMAGE, "model.groups: must divide the width 6"),
        ("null", TABLE, "this key is missing"),
    ],
)
def test_models_that_do_not_fit(model, shape, expected):
    text = CONFIG.replace("{kind: mlp, hidden: [8], embedding: 2, offset: 4.5}", model)
    with pytest.raises(ConfigError, match=expected):
        build_model(parse_config(text), shape, 1)


def test_scale_and_offset():
    text = CONFIG.replace("hidden: [8]", "hidden: [], scale: 3")
    model = build_model(parse_config(text), TABLE, 1)
    params = jax.tree.map(jnp.zeros_like, jax.jit(model.init)(jax.random.key(0)))
    assert model.apply(params, features(TABLE, 1)).tolist() == [[4.5]]
    params["layers"][0]["b"] = jnp.ones(1)
    assert model.apply(params, features(TABLE, 1)).tolist() == [[7.5]]


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [1, 3, 4])
def test_a_convolution_by_pieces_is_one(monkeypatch, stride, size):
    """On a CPU it is a product with patches, of a few examples at a time."""
    keys = jax.random.split(jax.random.key(0), 2)
    layer = conv_init(keys[0], size, 3, 4)
    x = jax.random.normal(keys[1], (5, 7, 6, 3))

    def whole(w, x):
        y = jax.lax.conv_general_dilated(
            x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return jnp.square(y).sum(), y

    def by_pieces(w, x):
        y = conv(x, {"w": w, "b": layer["b"]}, stride)
        return jnp.square(y).sum(), y

    def slopes(function):
        return jax.jit(jax.grad(function, (0, 1), has_aux=True))(layer["w"], x)

    expected, found = slopes(whole), slopes(by_pieces)
    monkeypatch.setattr(layers, "_PATCHES", 2 * 42 * size**2 * 3)
    few = slopes(by_pieces)
    for a, b, c in zip(*map(jax.tree.leaves, (expected, found, few)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-4)
