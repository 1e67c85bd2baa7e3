"""Linear functions and multilayer perceptrons on tables, flat arrays or flattened images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, PRNGKeyArray, PyTree, Shaped

from labeldp_trainer.data import FeatureShape
from labeldp_trainer.models.layers import flat, joined, stack, stack_init

Params = Any  # a pytree of float32 arrays


class Model(Protocol):
    """Any object with these two functions; both are pure.

    ``apply`` must treat every example separately. Batch norm is not allowed: it mixes examples, so
    one label would change the gradient of another.
    """

    def init(self, key: PRNGKeyArray) -> Params:
        """Fresh parameters."""
        ...

    def apply(
        self, params: Params, x: PyTree[Shaped[Array, "b ..."]], key: PRNGKeyArray | None = None
    ) -> Float[Array, "b k"]:
        """Outputs for features: logits, or one number (k = 1).

        ``key`` is given in training only, for dropout.
        """
        ...


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


@dataclass(frozen=True)
class Linear:
    """A linear function of the features; a categorical column has one weight per category."""

    shape: FeatureShape
    outputs: int

    def init(self, key: PRNGKeyArray) -> Params:
        """Zeros: the loss is convex, so any start is as good."""
        return {
            "categories": jnp.zeros((sum(self.shape.vocabularies), self.outputs)),
            "w": jnp.zeros((flat_size(self.shape), self.outputs)),
            "b": jnp.zeros(self.outputs),
        }

    def apply(
        self, params: Params, x: PyTree[Shaped[Array, "b ..."]], key: PRNGKeyArray | None = None
    ) -> Float[Array, "b k"]:
        """Logits, or one number per example."""
        y: Array = params["b"][None, :]
        if flat_size(self.shape):
            y = numbers(x) @ params["w"] + y
        if self.shape.vocabularies:
            y = y + looked_up(params["categories"], self.shape, x).sum(axis=1)
        return y


def looked_up(
    table: Float[Array, "categories width"],
    shape: FeatureShape,
    x: dict[str, Shaped[Array, "b ..."]],
) -> Float[Array, "b columns width"]:
    """The rows of a table that holds the categories of all columns, one column after another.

    One table for all columns compiles and runs many times as fast as one per column.
    """
    starts = np.cumsum([0, *shape.vocabularies], dtype=np.int32)[:-1]
    return table[x["categorical"] + starts[None, :]]


def flat_size(shape: FeatureShape) -> int:
    """How many numbers one example has, without categories."""
    if shape.image is None:
        return shape.numeric
    height, width, channels = shape.image
    return height * width * channels


def numbers(x: PyTree[Shaped[Array, "b ..."]]) -> Float[Any, "b d"]:
    """The numeric features, or the pixels."""
    return flat(x["numeric"] if isinstance(x, dict) else x)
