"""The networks: multilayer perceptrons and convolutional networks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax import Array
from jaxtyping import Float, PRNGKeyArray, PyTree, Shaped

from labeldp_trainer.data import FeatureShape
from labeldp_trainer.models.build import Params, flat_size, looked_up, numbers
from labeldp_trainer.models.layers import (
    conv,
    conv_init,
    dense,
    dense_init,
    dropout,
    group_norm,
    norm_init,
    pool_average,
    pool_max,
    relu,
    stack,
    stack_init,
)
from labeldp_trainer.operators import flat, joined

_EMBEDDING_SCALE = 0.05


@dataclass(frozen=True)
class Mlp:
    """Dense layers with ReLU between them; every categorical column is embedded.

    Appendix G.1 of the unbiased paper: embeddings of 8 and hidden layers of 128 and 64 for the
    census data, of 4, 64 and 32 for Criteo.
    """

    shape: FeatureShape
    outputs: int
    hidden: Sequence[int] = (128, 64)
    embedding: int = 8

    def init(self, key: PRNGKeyArray) -> Params:
        """Embeddings [categories of all columns, embedding] and dense layers."""
        table_key, layers_key = jax.random.split(key)
        sizes = self.shape.vocabularies
        table = jax.random.normal(table_key, (sum(sizes), self.embedding)) * _EMBEDDING_SCALE
        inputs = flat_size(self.shape) + self.embedding * len(sizes)
        layers = stack_init(layers_key, [inputs, *self.hidden, self.outputs])
        return {"embeddings": table, "layers": layers}

    def apply(
        self, params: Params, x: PyTree[Shaped[Array, "b ..."]], key: PRNGKeyArray | None = None
    ) -> Float[Array, "b k"]:
        """Logits, or one number per example."""
        parts = [numbers(x)] if flat_size(self.shape) else []
        if self.shape.vocabularies:
            parts.append(flat(looked_up(params["embeddings"], self.shape, x)))
        return stack(joined(*parts), params["layers"])


# Convolutional networks for images: those of the papers, and ResNet-18.

_KERNEL = 3


@dataclass(frozen=True)
class SmallCnn:
    """Convolutions with ReLU and pooling, and two dense layers: Table 10 of LabelDP-Pro.

    Attributes:
        shape, outputs: the shape of an example, and the number of logits.
        channels: of each convolution.
        hidden: width between the dense layers.
        largest: whether pooling takes the largest pixel instead of the mean.
        rate: of dropout after each layer except the last.
        listed: whether parameters hold the convolutions as a list.
    """

    shape: FeatureShape
    outputs: int
    channels: tuple[int, ...]
    hidden: int
    largest: bool = False
    rate: float = 0.0
    listed: bool = False

    def init(self, key: PRNGKeyArray) -> Params:
        """Convolutions, and two dense layers."""
        assert self.shape.image is not None
        height, width, inputs = self.shape.image
        halvings, sizes = len(self.channels), (inputs, *self.channels)
        keys = jax.random.split(key, halvings + 2)
        convs = [
            conv_init(keys[i], _KERNEL, sizes[i], outputs) for i, outputs in enumerate(sizes[1:])
        ]
        flat_size = (height >> halvings) * (width >> halvings) * sizes[-1]
        return {
            **({"convs": convs} if self.listed else dict(zip(_NAMES, convs, strict=False))),
            "dense1": dense_init(keys[-2], flat_size, self.hidden),
            "dense2": dense_init(keys[-1], self.hidden, self.outputs),
        }

    def apply(
        self, params: Params, x: Float[Array, "b h w c"], key: PRNGKeyArray | None = None
    ) -> Float[Array, "b k"]:
        """Logits of images."""
        count = len(self.channels)
        layers = params["convs"] if self.listed else [params[name] for name in _NAMES[:count]]
        drops = key if self.rate else None
        keys: Any = (
            jax.random.split(drops, count + 1) if drops is not None else [None] * (count + 1)
        )
        pool = pool_max if self.largest else pool_average
        y = x
        for layer, drop in zip(layers, keys, strict=False):
            y = dropout(pool(relu(conv(y, layer))), self.rate, drop)
        y = relu(dense(flat(y), params["dense1"]))
        return dense(dropout(y, self.rate, keys[-1]), params["dense2"])


_NAMES = ("conv1", "conv2")


def mnist_cnn(
    shape: FeatureShape, outputs: int, channels: tuple[int, ...] = (16, 16), hidden: int = 16
) -> SmallCnn:
    """Table 10 (a): 15,210 parameters on 28 × 28 images and 10 classes."""
    return SmallCnn(shape, outputs, channels, hidden)


def cifar_cnn(
    shape: FeatureShape, outputs: int, channels: tuple[int, ...] = (32, 64, 128), hidden: int = 80
) -> SmallCnn:
    """Table 10 (b): three convolutions with max pooling and dropout."""
    return SmallCnn(shape, outputs, channels, hidden, largest=True, rate=0.2, listed=True)


# ResNet-18 for small images, with group norm instead of batch norm.
#
# Batch norm mixes the examples of a batch, so per-example gradients would not exist.


_STRIDES = (1, 1, 2, 1, 2, 1, 2, 1)  # of the blocks: four stages of two


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
        stem_key, head_key, *keys = jax.random.split(key, 2 + len(_STRIDES))
        blocks: list[Params] = []
        inputs = self.width
        for block_key, stride in zip(keys, _STRIDES, strict=True):
            blocks.append(_block_init(block_key, inputs, inputs * stride, stride))
            inputs *= stride
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
        for block, stride in zip(params["blocks"], _STRIDES, strict=True):
            y = self._block(block, y, stride)
        return dense(y.mean(axis=(1, 2)), params["dense"])

    def _block(self, block: Params, x: Any, stride: int) -> Any:
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
    if stride != 1:
        block["shortcut"] = conv_init(keys[2], 1, inputs, outputs, bias=False)
        block["norm3"] = norm_init(outputs)
    return block
