"""Networks on JAX's devices: how batches are split over them, and outputs and metrics of many rows.

Parameters and data are on each device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Float, Float32, PyTree, Real, Shaped

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.data import DataPart
from labeldp_trainer.data.features import batches
from labeldp_trainer.losses import Loss
from labeldp_trainer.models import Model, Params

CHUNK = 1024  # examples
_AXIS = "batch"
Apply = Callable[..., Float[Array, "b k"]]
"""That of a model."""
Means = dict[str, Float[Array, ""]]
Measure = Callable[[Float[Array, "b k"], Real[Array, "b ..."]], dict[str, Float[Array, " b"]]]
"""Quantities of each example, from a model's outputs and the targets."""


@dataclass(frozen=True)
class Devices:
    """The devices of a run as a mesh of one axis."""

    mesh: Mesh

    @classmethod
    def for_batch(cls, batch_size: int) -> Devices:
        """As many local devices as divide the batch evenly."""
        devices = jax.local_devices()
        count = max(n for n in range(1, len(devices) + 1) if batch_size % n == 0)
        return cls(Mesh(np.array(devices[:count]), (_AXIS,)))

    @classmethod
    def of(cls, loaded: LoadedConfig) -> Devices:
        """Those for the batches of a config."""
        return cls.for_batch(loaded.config.training.batch_size)

    @property
    def count(self) -> int:
        """Devices in use."""
        return int(self.mesh.size)

    @property
    def kind(self) -> str:
        """Their kind and number: results are bitwise the same on the same ones."""
        device = self.mesh.devices.flat[0]
        return f"{device.platform}: {device.device_kind}"

    def everywhere(self, tree: Any) -> Any:
        """Put a whole copy of every array on each device."""
        return jax.device_put(tree, NamedSharding(self.mesh, _spec()))

    def split(self, tree: Any) -> Any:
        """Inside jit: split arrays [b, …] by their rows."""
        if self.count == 1:
            return tree
        rows = NamedSharding(self.mesh, _spec(_AXIS))
        return jax.lax.with_sharding_constraint(tree, rows)  # type: ignore[no-untyped-call]

    def split_if_even(self, tree: Any) -> Any:
        """Inside jit: split arrays [b, …] by their rows, if the devices get equally many."""
        rows = jax.tree.leaves(tree)[0].shape[0]
        return self.split(tree) if rows % self.count == 0 else tree


def _spec(*axes: str) -> PartitionSpec:
    return PartitionSpec(*axes)  # type: ignore[no-untyped-call]


def mean_metrics(
    apply: Apply,
    measure: Measure,
    params: Params,
    x: PyTree[Shaped[Array, "n ..."]],
    targets: Real[Array, "n ..."],
) -> Means:
    """The means over all n examples of what ``measure(outputs, targets)`` gives for each."""
    n = targets.shape[0]
    chunk = min(CHUNK, n)
    steps = -(-n // chunk)

    def add(totals: Means, start: Array) -> tuple[Means, None]:
        places = start + jnp.arange(chunk, dtype=jnp.int32)
        inside = places < n
        rows = jnp.minimum(places, n - 1)
        outputs = apply(params, jax.tree.map(lambda leaf: leaf[rows], x))
        values = measure(outputs, targets[rows])
        sums = {
            name: jnp.sum(jnp.where(inside, value, jnp.zeros_like(value)))
            for name, value in values.items()
        }
        return {name: totals[name] + value for name, value in sums.items()}, None

    first = jax.tree.map(lambda leaf: leaf[:1], (x, targets))
    names = jax.eval_shape(lambda: measure(apply(params, first[0]), first[1]))
    zeros = {name: jnp.zeros((), jnp.float32) for name in names}
    starts = jnp.arange(steps, dtype=jnp.int32) * chunk
    totals, _ = jax.lax.scan(add, zeros, starts)
    return {name: total / n for name, total in totals.items()}


@partial(jax.jit, static_argnums=(0, 1))
def evaluated(
    apply: Apply,
    loss: Loss,
    params: Params,
    x: PyTree[Shaped[Array, "n ..."]],
    targets: Real[Array, " n"],
) -> Means:
    """The metrics of a test set of features [n, …] and targets [n, …]."""
    return mean_metrics(apply, loss.metrics, params, x, targets)


def network_outputs(model: Model, params: Params, part: DataPart) -> Float32[np.ndarray, "n k"]:
    """The outputs of a network for all rows, batch by batch."""
    outputs = [
        np.asarray(_applied(model.apply, params, batch))[:count]
        for batch, count in batches(part.features, part.rows, max(min(CHUNK, part.rows), 1))
    ]
    return np.concatenate(outputs)


@partial(jax.jit, static_argnums=0)
def _applied(apply: Apply, params: Params, x: PyTree) -> Array:
    return apply(params, x)
