"""Convolutional networks for images: those of the papers, and ResNet-18."""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jax import Array
from jaxtyping import Float, PRNGKeyArray

from labeldp_trainer.data import FeatureShape
from labeldp_trainer.models.dense import Params
from labeldp_trainer.models.layers import (
    conv,
    conv_init,
    dense,
    dense_init,
    dropout,
    flat,
    group_norm,
    norm_init,
    pool_average,
    pool_max,
    relu,
    stack,
)

_KERNEL = 3


@dataclass(frozen=True)
class MnistCnn:
    """Table 10 (a): 15,210 parameters on 28 × 28 images and 10 classes."""

    shape: FeatureShape
    outputs: int
    channels: int = 16
    hidden: int = 16

    def init(self, key: PRNGKeyArray) -> Params:
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

    def apply(
        self, params: Params, x: Float[Array, "b h w c"], key: PRNGKeyArray | None = None
    ) -> Float[Array, "b k"]:
        """Logits of images."""
        y = x
        for name in ("conv1", "conv2"):
            y = pool_average(relu(conv(y, params[name])))
        return stack(flat(y), [params["dense1"], params["dense2"]])


@dataclass(frozen=True)
class CifarCnn:
    """Table 10 (b): three convolutions with max pooling and dropout."""

    shape: FeatureShape
    outputs: int
    channels: tuple[int, int, int] = (32, 64, 128)
    hidden: int = 80
    rate: float = 0.2

    def init(self, key: PRNGKeyArray) -> Params:
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

    def apply(
        self, params: Params, x: Float[Array, "b h w c"], key: PRNGKeyArray | None = None
    ) -> Float[Array, "b k"]:
        """Logits of images."""
        keys = [None] * 4 if key is None else list(jax.random.split(key, 4))
        y = x
        for layer, drop in zip(params["convs"], keys[:3], strict=True):
            y = dropout(pool_max(relu(conv(y, layer))), self.rate, drop)
        y = relu(dense(flat(y), params["dense1"]))
        return dense(dropout(y, self.rate, keys[3]), params["dense2"])


# ResNet-18 for small images, with group norm in the place of batch norm.
#
# Batch norm mixes the examples of a batch, so that per-example gradients do not exist.


BLOCKS_PER_STAGE = 2
STRIDES = (1, 2, 2, 2)


@dataclass(frozen=True)
class ResNet18:
    """He et al. 2016 with a 3 × 3 stem and no pooling in front, as usual for 32 × 32 images."""

    shape: FeatureShape
    outputs: int
    width: int = 64
    groups: int = 16

    def init(self, key: PRNGKeyArray) -> Params:
        """A stem, four stages of two blocks, and a dense layer."""
        assert self.shape.image is not None
        stem_key, head_key, *keys = jax.random.split(key, 2 + len(STRIDES) * BLOCKS_PER_STAGE)
        blocks: list[Params] = []
        inputs = self.width
        for stage, stride in enumerate(STRIDES):
            outputs = self.width * 2**stage
            for position in range(BLOCKS_PER_STAGE):
                first = stride if position == 0 else 1
                blocks.append(_block_init(keys[len(blocks)], inputs, outputs, first))
                inputs = outputs
        return {
            "stem": conv_init(stem_key, 3, self.shape.image[2], self.width, bias=False),
            "norm": norm_init(self.width),
            "blocks": blocks,
            "dense": dense_init(head_key, inputs, self.outputs),
        }

    def apply(
        self, params: Params, x: Float[Array, "b h w c"], key: PRNGKeyArray | None = None
    ) -> Float[Array, "b k"]:
        """Logits of images."""
        y = relu(group_norm(conv(x, params["stem"]), params["norm"], self.groups))
        for index, block in enumerate(params["blocks"]):
            stage, position = divmod(index, BLOCKS_PER_STAGE)
            y = self._block(block, y, STRIDES[stage] if position == 0 else 1)
        return dense(y.mean(axis=(1, 2)), params["dense"])

    def _block(self, block: Params, x: Array, stride: int) -> Array:
        y = relu(group_norm(conv(x, block["conv1"], stride), block["norm1"], self.groups))
        y = group_norm(conv(y, block["conv2"]), block["norm2"], self.groups)
        if "shortcut" in block:
            x = group_norm(conv(x, block["shortcut"], stride), block["norm3"], self.groups)
        return relu(x + y)


def _block_init(key: PRNGKeyArray, inputs: int, outputs: int, stride: int) -> Params:
    keys = jax.random.split(key, 3)
    block = {
        "conv1": conv_init(keys[0], 3, inputs, outputs, bias=False),
        "norm1": norm_init(outputs),
        "conv2": conv_init(keys[1], 3, outputs, outputs, bias=False),
        "norm2": norm_init(outputs),
    }
    if stride != 1 or inputs != outputs:
        block["shortcut"] = conv_init(keys[2], 1, inputs, outputs, bias=False)
        block["norm3"] = norm_init(outputs)
    return block
