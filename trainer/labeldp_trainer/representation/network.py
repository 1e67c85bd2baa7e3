"""A small convolutional network that is trained without labels, by VICReg.

Bardes, Ponce and LeCun 2022: two random views of an image should have the same code (invariance),
each coordinate of a code a deviation of at least 1 over a batch (variance), and no two of them be
correlated (covariance). Codes are those of a head on top of the network, which is left out in the
end. All that is drawn is a function of the seed and the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Float32
from numpy.typing import NDArray

from labeldp_trainer.config.model import OptimizerConfig
from labeldp_trainer.config.representation import SelfSupervised
from labeldp_trainer.losses import build_optimizer
from labeldp_trainer.representation.kind import Kind, Learnt, Source

Weights = dict[str, jax.Array]

_DIMENSIONS = ("NHWC", "HWIO", "NHWC")
_LAYERS = 3  # each halves the sides, but for the first
_LEAST_SIDE = 8
_LARGEST_ZOOM, _GAIN = 1.4, 0.4  # of a view: a crop of 1/1.4 of each side, brightness 1 ± 0.4
_INVARIANCE, _VARIANCE, _COVARIANCE = 25.0, 25.0, 1.0  # as in the paper
_RATE = 1e-3  # of Adam
_WORD = "network"


def _learn(source: Source) -> Learnt:
    """conv0 … conv2 with biases, mean and deviation of pixels. Raises InputError."""
    config = source.loaded.config.representation
    assert isinstance(config, SelfSupervised)
    if source.shape.image is None:
        reason = "self_supervised is for images [n, height, width, channels]"
        raise source.loaded.error(("representation", "kind"), reason)
    height, width, channels = source.shape.image
    if min(height, width) < _LEAST_SIDE:
        reason = f"self_supervised needs images of at least {_LEAST_SIDE} × {_LEAST_SIDE} pixels"
        raise source.loaded.error(("representation", "kind"), reason)
    rows = sum(part.rows for part in source.parts)
    if config.batch > rows:
        reason = f"{config.batch:,} is larger than the {rows:,} images"
        raise source.loaded.error(("representation", "batch"), reason)
    mean = np.mean([np.mean(part, dtype=np.float64) for part in source.features])
    deviation = max(float(np.std(part, dtype=np.float64)) for part in source.features)
    if deviation == 0:
        raise source.loaded.error(("representation",), "no image has any contrast: all are flat")
    pixels = {
        "pixel_mean": np.array(mean, np.float32),
        "pixel_deviation": np.array(deviation, np.float32),
    }
    trained = _trained(source, config, channels, pixels)
    return Learnt({**pixels, **{name: np.asarray(leaf) for name, leaf in trained.items()}})


def _raw(arrays: Mapping[str, jax.Array], images: Float32[jax.Array, "b h w c"]) -> jax.Array:
    """[b, w]: the last layer, and that before it, in means of 2 × 2 regions."""
    x = (images - arrays["pixel_mean"]) / arrays["pixel_deviation"]
    layers = _layers(arrays, x)
    return jnp.concatenate([_quarters(layers[-2]), _quarters(layers[-1])], axis=1)


SELF_SUPERVISED = Kind(_learn, _raw, chunk=32)


def _layers(arrays: Mapping[str, jax.Array], x: jax.Array) -> list[jax.Array]:
    found = []
    for layer in range(_LAYERS):
        if layer:
            x = _halved(x)
        x = lax.conv_general_dilated(
            x,
            arrays[f"conv{layer}"],
            (1, 1),
            "SAME",
            dimension_numbers=_DIMENSIONS,
            precision=lax.Precision.HIGHEST,
        )
        x = jax.nn.relu(x + arrays[f"bias{layer}"][None, None, None, :])
        found.append(x)
    return found


def _halved(x: jax.Array) -> jax.Array:
    """Means of 2 × 2 pixels; an odd last row or column is left out."""
    b, height, width, channels = x.shape
    even = x[:, : height // 2 * 2, : width // 2 * 2]
    return even.reshape(b, height // 2, 2, width // 2, 2, channels).mean(axis=(2, 4))


def _quarters(x: jax.Array) -> jax.Array:
    """[b, 4·c]: the means of the four quarters of an image."""
    rows, columns = x.shape[1] // 2, x.shape[2] // 2
    parts = [
        x[:, top, left].mean(axis=(1, 2))
        for top in (slice(0, rows), slice(rows, None))
        for left in (slice(0, columns), slice(columns, None))
    ]
    return jnp.concatenate(parts, axis=1)


def _trained(
    source: Source, config: SelfSupervised, channels: int, pixels: dict[str, NDArray[Any]]
) -> Weights:
    """The weights after all epochs, without the head."""
    weights = _fresh(config, channels, source.seed)
    rows = sum(part.rows for part in source.parts)
    steps = rows // config.batch
    total = config.epochs * steps
    adam = OptimizerConfig(kind="adam", learning_rate=_RATE, schedule="cosine")
    optimizer = build_optimizer(adam, total)
    state = optimizer.init(weights)
    key = jax.random.key(source.seed)

    @jax.jit
    def step(weights: Weights, state: Any, images: jax.Array, key: jax.Array) -> Any:
        images = (images - pixels["pixel_mean"]) / pixels["pixel_deviation"]
        gradient = jax.grad(partial(_loss, flips=config.flips))(weights, images, key)
        updates, state = optimizer.update(gradient, state, weights)
        return optax.apply_updates(weights, updates), state

    random = np.random.default_rng(source.seed)
    bounds = np.cumsum([0, *(part.rows for part in source.parts)])
    for epoch in range(config.epochs):
        order = random.permutation(rows)
        for number in range(steps):
            chosen = np.sort(order[number * config.batch : (number + 1) * config.batch])
            images = np.concatenate(
                [
                    part[chosen[(chosen >= start) & (chosen < end)] - start]
                    for part, start, end in zip(
                        source.features, bounds[:-1], bounds[1:], strict=True
                    )
                ]
            )
            done = epoch * steps + number
            weights, state = step(weights, state, images, jax.random.fold_in(key, done))
            source.steps(_WORD, done + 1, total)
    return {name: leaf for name, leaf in weights.items() if not name.startswith("head")}


def _fresh(config: SelfSupervised, channels: int, seed: int) -> Weights:
    random = np.random.default_rng([seed, 1])
    widths = [channels, config.width // 2, config.width, 2 * config.width]
    weights = {}
    for layer in range(_LAYERS):
        shape = (3, 3, widths[layer], widths[layer + 1])
        drawn = random.standard_normal(shape) * np.sqrt(2 / (9 * widths[layer]))
        weights[f"conv{layer}"] = jnp.asarray(drawn, jnp.float32)
        weights[f"bias{layer}"] = jnp.zeros(shape[-1], jnp.float32)
    inputs, code = 4 * (widths[-1] + widths[-2]), 4 * config.width
    for layer, (before, after) in enumerate(((inputs, code), (code, code))):
        drawn = random.standard_normal((before, after)) * np.sqrt(2 / before)
        weights[f"head{layer}"] = jnp.asarray(drawn, jnp.float32)
    return weights


def _loss(weights: Weights, images: jax.Array, key: jax.Array, *, flips: bool) -> jax.Array:
    codes = []
    for view in range(2):
        seen = _views(images, jax.random.fold_in(key, view), flips=flips)
        layers = _layers(weights, seen)
        x = jnp.concatenate([_quarters(layers[-2]), _quarters(layers[-1])], axis=1)
        x = (x - x.mean(axis=1, keepdims=True)) / (x.std(axis=1, keepdims=True) + 1e-3)
        codes.append(jax.nn.relu(x @ weights["head0"]) @ weights["head1"])
    loss: jax.Array = _INVARIANCE * jnp.square(codes[0] - codes[1]).mean()
    for code in codes:
        centred = code - code.mean(axis=0, keepdims=True)
        n, d = centred.shape
        covariance = centred.T @ centred / (n - 1)
        variance = jnp.diagonal(covariance)
        loss += _VARIANCE / 2 * jax.nn.relu(1 - jnp.sqrt(variance + 1e-4)).mean()
        loss += _COVARIANCE * (jnp.square(covariance).sum() - jnp.square(variance).sum()) / d
    return loss


def _views(images: jax.Array, key: jax.Array, *, flips: bool) -> jax.Array:
    """Random crops, enlarged and shifted, brighter or darker, and mirrored if ``flips``."""
    b, height, width, channels = images.shape
    zoom_key, shift_key, gain_key, flip_key = jax.random.split(key, 4)
    zoom = jax.random.uniform(zoom_key, (b,), minval=1.0, maxval=_LARGEST_ZOOM)
    room = (zoom[:, None] - 1) * jnp.asarray([[height, width]], jnp.float32)
    # Up to an eighth of a side beyond the crop: shifts of the whole image, too.
    beyond = jnp.asarray([[height, width]], jnp.float32) / 8
    where = jax.random.uniform(shift_key, (b, 2))
    shift = -where * (room + 2 * beyond) + beyond

    def one(image: jax.Array, zoom: jax.Array, shift: jax.Array) -> jax.Array:
        shape = (height, width, channels)
        both = jnp.stack([zoom, zoom])
        view: jax.Array = jax.image.scale_and_translate(image, shape, (0, 1), both, shift, "linear")
        return view

    seen = jax.vmap(one)(images, zoom, shift)
    gain = jax.random.uniform(gain_key, (b, 1, 1, 1), minval=1 - _GAIN, maxval=1 + _GAIN)
    if flips:
        mirrored = jax.random.bernoulli(flip_key, 0.5, (b, 1, 1, 1))
        seen = jnp.where(mirrored, seen[:, :, ::-1], seen)
    brighter: jax.Array = seen * gain
    return brighter
