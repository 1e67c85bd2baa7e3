"""One device or many: batches are split over them, parameters and data are on each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

_AXIS = "batch"


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

    @property
    def count(self) -> int:
        """Devices in use."""
        return int(self.mesh.size)

    @property
    def kind(self) -> str:
        """What they are: results are bitwise the same on the same kind and number."""
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
