"""Linear functions of tables, flat arrays or flattened images, and the interface of all models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from jaxtyping import Float, Shaped

from labeldp_trainer.data import FeatureShape
from labeldp_trainer.models.operators import flat

if TYPE_CHECKING:  # these names import JAX
    from jaxtyping import Array, PRNGKeyArray, PyTree

Params = Any  # a pytree of float32 arrays


class Model(Protocol):
    """Any object with these two functions; both are pure.

    ``apply`` must treat every example separately. Batch norm is not allowed: it mixes examples, so
    one label would change the gradient of another.
    """

    def init(self, key: Any) -> Params:
        """Fresh parameters from a key of JAX, or from None: a closed form draws nothing."""
        ...

    def apply(
        self, params: Params, x: PyTree[Shaped[Array, "b ..."]], key: PRNGKeyArray | None = None
    ) -> Float[Array, "b k"]:
        """Outputs for features: logits, or one number (k = 1).

        ``key`` is given in training only, for dropout.
        """
        ...


@dataclass(frozen=True)
class Linear:
    """A linear function of the features; a categorical column has one weight per category."""

    shape: FeatureShape
    outputs: int

    def init(self, key: PRNGKeyArray | None = None) -> Params:
        """Zeros: the loss is convex, so any start is as good."""
        return {
            "categories": np.zeros((sum(self.shape.vocabularies), self.outputs), np.float32),
            "w": np.zeros((flat_size(self.shape), self.outputs), np.float32),
            "b": np.zeros(self.outputs, np.float32),
        }

    def apply(
        self, params: Params, x: PyTree[Shaped[Array, "b ..."]], key: PRNGKeyArray | None = None
    ) -> Float[Array, "b k"]:
        """Logits, or one number per example."""
        y: Any = params["b"][None, :]
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
