"""Builds the model of a config, and the model of interactions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from jaxtyping import Float, Shaped

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.model import (
    CnnConfig,
    InteractionsConfig,
    LinearConfig,
    MlpConfig,
    NetworkConfig,
)
from labeldp_trainer.data import FeatureShape
from labeldp_trainer.data.features import named_arrays
from labeldp_trainer.operators import (
    POISSON_FLOOR,
    binned,
    clip,
    flat,
    log,
    log_softplus,
    matmul,
    namespace,
    softplus_of_log,
)

if TYPE_CHECKING:  # these names import JAX
    from jaxtyping import Array, PRNGKeyArray, PyTree


# A sum of effects of columns, pairs and triples: what ``interactions`` learns, as a model.

_TWO = 2  # classes, whose terms add up to log-odds


@dataclass(frozen=True)
class Interactions:
    """f = base + Σ (product of basis functions of a term's columns)·weights.

    The parameters say which terms there are. ``columns`` have ``edges`` of numbers or the ``bins``
    of codes; ``terms`` are named by their columns, as in "0x3", and hold a table [bins, rank] for
    each of them and weights [rank, k]. Numbers are clipped to ``ends``. Of classes f are logits.
    Counts are softplus(f/s)·s with s the ``softness``, so that they are positive. Their logarithms
    are clipped to ``ends``, unless rows have an ``exposure``, which multiplies the counts. More
    than two classes are kept positive likewise where parameters have a ``softness``: those of
    private labels. Of numbers on another scale a ``curve`` gives the mean label, or its logarithm
    of counts: ``first``, and ``slopes`` over ``widths`` from ``starts`` on.
    """

    loss: str
    shape: FeatureShape
    outputs: int

    def init(self, key: Any = None) -> Params:
        """No terms: the model before it is fitted."""
        del key
        start: Params = {"base": np.zeros(self.outputs, np.float32), "columns": {}, "terms": {}}
        if self.loss == "cross_entropy":
            return start
        return start | {
            "softness": np.ones(self.outputs, np.float32),
            "log_softness": np.zeros(self.outputs, np.float32),
            "ends": np.array([-np.inf, np.inf], np.float32),
        }

    def apply(self, params: Params, x: Any, key: PRNGKeyArray | None = None) -> Float[Any, "b k"]:
        """Logits, or one number an example."""
        y = self._sum(params, x)
        if "curve" in params:
            curve = params["curve"]
            steps = clip(y - curve["starts"][None, :], 0.0, curve["widths"][None, :])
            y = matmul(steps, curve["slopes"]) + curve["first"]
        elif self.loss == "squared":
            y = clip(y, params["ends"][0], params["ends"][1])
        elif self.loss == "poisson" or (self.outputs > _TWO and "softness" in params):
            softness = params["softness"]
            y = log_softplus(y / softness[None, :]) + params["log_softness"][None, :]
        if self.loss != "poisson":
            return y
        if "exposure" in x:
            y = y + log(x["exposure"])[:, None]
        elif "ends" in params:
            y = clip(y, params["ends"][0], params["ends"][1])
        return softplus_of_log(y, POISSON_FLOOR)

    def _sum(self, params: Params, x: Any) -> Any:
        y: Any = params["base"][None, :]
        if not params["terms"]:
            rows = len(x["categorical"])
            return namespace(y).broadcast_to(y, (rows, self.outputs))
        codes = {
            name: self._bins(int(name), column, x) for name, column in params["columns"].items()
        }
        for name, term in params["terms"].items():
            product: Any = None
            for column, table in zip(name.split("x"), term["tables"].values(), strict=True):
                values = table[codes[column]]
                product = values if product is None else product * values
            y = y + matmul(product, term["weights"])
        return y

    def _bins(self, number: int, column: Params, x: Any) -> Any:
        if number < self.shape.numeric:
            return binned(x["numeric"][:, number], column["edges"])
        return column["bins"][x["categorical"][:, number - self.shape.numeric]]


# Builds the model that the part ``model`` of a config describes.

Outputs = Float[Any, "b k"]
_LARGEST_LOG = 30.0
_KNOWN: dict[Model, Model] = {}
_LEAST_SIDE = {"mnist": 4, "cifar": 8}  # pixels, so that at least one is left after pooling


@dataclass(frozen=True)
class _Around:
    """A model whose outputs are transformed."""

    model: Model

    def init(self, key: Any = None) -> Params:
        """Those of the inner model; a linear one needs no key."""
        return self.model.init(key)


@dataclass(frozen=True)
class Scaled(_Around):
    """offset + scale · model: public constants that bring outputs to the size of labels."""

    scale: float
    offset: float

    def apply(self, params: Params, x: Any, key: PRNGKeyArray | None = None) -> Outputs:
        """Those of the inner model, scaled and moved."""
        return self.offset + self.scale * self.model.apply(params, x, key)


@dataclass(frozen=True)
class Clamped(_Around):
    """A model whose outputs are clamped to a range, which is part of its parameters."""

    def init(self, key: Any = None) -> Params:
        """Those of the inner model, and two infinite ends."""
        ends = np.array([-np.inf, np.inf], np.float32)
        return {"model": self.model.init(key), "ends": ends}

    def apply(self, params: Params, x: Any, key: PRNGKeyArray | None = None) -> Outputs:
        """Those of the inner model, between the two ends."""
        low, high = params["ends"][0], params["ends"][1]
        return clip(self.model.apply(params["model"], x, key), low, high)


@dataclass(frozen=True)
class LogLink(_Around):
    """A model that predicts exp(model). ``Loss.predictions`` takes the softplus of outputs, so
    these are the softplus⁻¹ of the prediction.
    """

    def apply(self, params: Params, x: Any, key: PRNGKeyArray | None = None) -> Outputs:
        """softplus⁻¹(exp(model) − floor)."""
        o = clip(self.model.apply(params, x, key), -_LARGEST_LOG, _LARGEST_LOG)
        return softplus_of_log(o, POISSON_FLOOR)


def build_model(loaded: LoadedConfig, shape: FeatureShape, outputs: int) -> Model:
    """The model that a config asks for. Raises ConfigError if it does not fit the data.

    Equal models are one object: what was compiled for it once is not compiled again.
    """
    model = _built(loaded, shape, outputs)
    return _KNOWN.setdefault(model, model)


def _built(loaded: LoadedConfig, shape: FeatureShape, outputs: int) -> Model:
    config = loaded.config.model
    if loaded.config.interactions is not None:
        return Interactions(loaded.config.loss, shape, outputs)
    if config is None and loaded.config.closed_form:
        return closed_form_model(loaded.config.loss, shape, outputs)
    if config is None:
        raise loaded.error(
            ("model",), "this key is missing (Python code may pass a model to train instead)"
        )
    assert not isinstance(config, InteractionsConfig)  # ``interactions`` is not None with it
    model = _build(loaded, config, shape, outputs)
    if config.scale != 1 or config.offset != 0:
        return Scaled(model, config.scale, config.offset)
    return model


def initial_params(loaded: LoadedConfig, model: Model) -> Params:
    """The parameters before training; those of a closed form are numpy's arrays."""
    if loaded.config.closed_form:
        return model.init(None)
    return fresh_params(loaded, model)


def fresh_params(loaded: LoadedConfig, model: Model, number: int = 0) -> Params:
    """The parameters that training starts from, with a key of the config's seed."""
    import jax  # noqa: PLC0415

    key = jax.random.key(loaded.config.training.seed)
    return _compiled()(model.init, jax.random.fold_in(key, number))


@functools.cache
def _compiled() -> Callable[[Callable[[PRNGKeyArray], Params], PRNGKeyArray], Params]:
    """(init, key) → init(key), compiled once for each model."""
    import jax  # noqa: PLC0415

    return jax.jit(lambda init, key: init(key), static_argnums=0)


def closed_form_model(loss: str, shape: FeatureShape, outputs: int) -> Clamped | LogLink | Linear:
    """The model whose parameters are computed from sums over all rows, without steps."""
    linear = Linear(shape, outputs)
    if loss == "cross_entropy":
        return linear
    return LogLink(linear) if loss == "poisson" else Clamped(linear)


def _build(loaded: LoadedConfig, config: NetworkConfig, shape: FeatureShape, outputs: int) -> Model:
    if isinstance(config, LinearConfig):
        return Linear(shape, outputs)
    from labeldp_trainer.models.networks import (  # noqa: PLC0415  # they need JAX
        Mlp,
        ResNet18,
        cifar_cnn,
        mnist_cnn,
    )

    if isinstance(config, MlpConfig):
        return Mlp(shape, outputs, tuple(config.hidden), config.embedding)
    if shape.image is None:
        raise loaded.error(("model", "kind"), f"{config.kind} needs images; use mlp or linear")
    if isinstance(config, CnnConfig):
        least = _LEAST_SIDE[config.variant]
        if min(shape.image[:2]) < least:
            reason = f"needs images of at least {least} × {least} pixels"
            raise loaded.error(("model", "variant"), f"{config.variant} {reason}")
        return (mnist_cnn if config.variant == "mnist" else cifar_cnn)(shape, outputs)
    if config.width % config.groups:
        raise loaded.error(("model", "groups"), f"must divide the width {config.width}")
    return ResNet18(shape, outputs, config.width, config.groups)


def count_parameters(params: Params) -> int:
    """How many numbers a pytree of parameters has."""
    return sum(math.prod(leaf.shape) for _, leaf in named_arrays(params))


# Linear functions of tables, flat arrays or flattened images, and the interface of all models.

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
