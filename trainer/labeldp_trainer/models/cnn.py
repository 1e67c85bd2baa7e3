"""The convolutional networks of Table 10 of LabelDP-Pro (Ghazi et al., ICLR 2024).

The paper does not say how convolutions are padded. Here they keep the size ("same").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax

from labeldp_trainer.data import FeatureShape
from labeldp_trainer.models.layers import (
    conv,
    conv_init,
    dense,
    dense_init,
    dropout,
    pool_average,
    pool_max,
)
from labeldp_trainer.models.model import Params

_KERNEL = 3


@dataclass(frozen=True)
class MnistCnn:
    """Table 10 (a): 15,210 parameters on 28 × 28 images and 10 classes."""

    shape: FeatureShape
    outputs: int
    channels: int = 16
    hidden: int = 16

    def init(self, key: jax.Array) -> Params:
        """Two convolutions and two dense layers."""
        assert self.shape.image is not None
        height, width, inputs = self.shape.image
        keys, c = jax.random.split(key, 4), self.channels
        flat = (height // 2 // 2) * (width // 2 // 2) * c
        return {
            "conv1": conv_init(keys[0], _KERNEL, inputs, c),
            "conv2": conv_init(keys[1], _KERNEL, c, c),
            "dense1": dense_init(keys[2], flat, self.hidden),
            "dense2": dense_init(keys[3], self.hidden, self.outputs),
        }

    def apply(self, params: Params, x: Any, key: jax.Array | None = None) -> jax.Array:
        """Logits [b, outputs] of images [b, height, width, channels]."""
        y = pool_average(jax.nn.relu(conv(params["conv1"], x)))
        y = pool_average(jax.nn.relu(conv(params["conv2"], y)))
        y = jax.nn.relu(dense(params["dense1"], y.reshape(y.shape[0], -1)))
        return dense(params["dense2"], y)


@dataclass(frozen=True)
class CifarCnn:
    """Table 10 (b): three convolutions with max pooling and dropout."""

    shape: FeatureShape
    outputs: int
    channels: tuple[int, int, int] = (32, 64, 128)
    hidden: int = 80
    rate: float = 0.2

    def init(self, key: jax.Array) -> Params:
        """Three convolutions and two dense layers."""
        assert self.shape.image is not None
        height, width, inputs = self.shape.image
        keys = jax.random.split(key, 5)
        a, b, c = self.channels
        flat = (height // 2 // 2 // 2) * (width // 2 // 2 // 2) * c
        return {
            "convs": [
                conv_init(keys[0], _KERNEL, inputs, a),
                conv_init(keys[1], _KERNEL, a, b),
                conv_init(keys[2], _KERNEL, b, c),
            ],
            "dense1": dense_init(keys[3], flat, self.hidden),
            "dense2": dense_init(keys[4], self.hidden, self.outputs),
        }

    def apply(self, params: Params, x: Any, key: jax.Array | None = None) -> jax.Array:
        """Logits [b, outputs] of images [b, height, width, channels]."""
        keys = [None] * 4 if key is None else list(jax.random.split(key, 4))
        y = x
        for layer, drop in zip(params["convs"], keys[:3], strict=True):
            y = dropout(pool_max(jax.nn.relu(conv(layer, y))), self.rate, drop)
        y = jax.nn.relu(dense(params["dense1"], y.reshape(y.shape[0], -1)))
        return dense(params["dense2"], dropout(y, self.rate, keys[3]))
