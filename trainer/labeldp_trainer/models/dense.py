"""Linear functions and multilayer perceptrons on tables, flat arrays or flattened images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from labeldp_trainer.data import FeatureShape
from labeldp_trainer.models.layers import stack, stack_init
from labeldp_trainer.models.model import Params

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

    def init(self, key: jax.Array) -> Params:
        """Embedding tables [categories, embedding] and dense layers."""
        tables_key, layers_key = jax.random.split(key)
        sizes = self.shape.vocabularies
        keys = jax.random.split(tables_key, max(len(sizes), 1))
        tables = [
            jax.random.normal(k, (size, self.embedding)) * _EMBEDDING_SCALE
            for k, size in zip(keys, sizes, strict=False)
        ]
        inputs = flat_size(self.shape) + self.embedding * len(sizes)
        layers = stack_init(layers_key, [inputs, *self.hidden, self.outputs])
        return {"embeddings": tables, "layers": layers}

    def apply(self, params: Params, x: Any, key: jax.Array | None = None) -> jax.Array:
        """[b, outputs]."""
        parts = [numbers(x)]
        if self.shape.vocabularies:
            codes = x["categorical"]
            parts += [table[codes[:, j]] for j, table in enumerate(params["embeddings"])]
        return stack(params["layers"], jnp.concatenate(parts, axis=1))


@dataclass(frozen=True)
class Linear:
    """A linear function of the features; a categorical column has one weight a category."""

    shape: FeatureShape
    outputs: int

    def init(self, key: jax.Array) -> Params:
        """Zeros: the loss is convex, and every start is as good."""
        return {
            "categories": [jnp.zeros((size, self.outputs)) for size in self.shape.vocabularies],
            "w": jnp.zeros((flat_size(self.shape), self.outputs)),
            "b": jnp.zeros(self.outputs),
        }

    def apply(self, params: Params, x: Any, key: jax.Array | None = None) -> jax.Array:
        """[b, outputs]."""
        y: jax.Array = numbers(x) @ params["w"] + params["b"][None, :]
        for j, table in enumerate(params["categories"]):
            y = y + table[x["categorical"][:, j]]
        return y


def flat_size(shape: FeatureShape) -> int:
    """Numbers in one example, categories apart."""
    if shape.image is None:
        return shape.numeric
    height, width, channels = shape.image
    return height * width * channels


def numbers(x: Any) -> jax.Array:
    """[b, numbers]: the numeric features, or the pixels."""
    array: jax.Array = x["numeric"] if isinstance(x, dict) else x
    return array.reshape(array.shape[0], -1)
