"""What decides the bits of a step, besides the config and the data.

A private run that is resumed repeats steps with the same noise. If they gave other sums, the
difference of the two would have no noise at all; so whatever changes bits is written down, and the
run goes on only where all of it is the same.
"""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from labeldp_trainer.data import array_digest
from labeldp_trainer.models import Model, Params

_OPTIONS = (
    "jax_default_matmul_precision",
    "jax_disable_most_optimizations",
    "jax_enable_x64",
    "jax_threefry_partitionable",
)


def program_digest(model: Model, params: Params, features: Any) -> str:
    """SHA-256 of a model: fresh parameters, and its outputs and their gradient as XLA sees them.

    A model may come from Python: nothing else tells one from another with the same shapes.
    """
    first = jax.tree.map(lambda leaf: leaf[:1], features)

    def outputs(params: Params) -> jax.Array:
        return jnp.sum(model.apply(params, first))

    program = jax.jit(jax.value_and_grad(outputs)).lower(params).as_text()
    total = hashlib.sha256(array_digest(params).encode())
    total.update(program.encode())
    return total.hexdigest()


def environment() -> dict[str, Any]:
    """Options and hardware that change how XLA orders sums."""
    options = {name: str(jax.config.values[name]) for name in _OPTIONS}
    flags = {name: os.environ.get(name, "") for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")}
    return {**options, **flags, "processor": _processor(), "cores": os.cpu_count()}


def repeats_bits(kind: str) -> bool:
    """Whether a device of this kind gives the same sums twice (GPUs do only if told to)."""
    flags = os.environ.get("XLA_FLAGS", "")
    return kind.startswith(("cpu", "tpu")) or "--xla_gpu_deterministic_ops=true" in flags


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
