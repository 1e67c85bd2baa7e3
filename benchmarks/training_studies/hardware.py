"""What a figure was measured on."""

import os
import platform
from pathlib import Path

import jax


def hardware():
    """The device's model, cores of a CPU, and the version of JAX."""
    device = jax.devices()[0]
    name = device.device_kind
    if device.platform == "cpu":
        cpuinfo = Path("/proc/cpuinfo")
        lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
        models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        name = f"{models[0] if models else platform.processor()}, {os.cpu_count()} cores"
    return f"{name}; JAX {jax.__version__}"
