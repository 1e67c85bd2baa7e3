"""Seconds per training step: SGD, DP-SGD, label-free clipping, LabelDP-Pro (as in Table 11).

The model is the MNIST CNN of Table 10 of LabelDP-Pro (15,210 parameters), the data are noise: time
hardly depends on them. Prints a Markdown table with the hardware.

    PYTHONPATH=trainer python benchmarks/private_step.py [--batch 256] [--runs 5]
"""

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from labeldp_trainer.private.accounting import Plan, padded_batch
from labeldp_trainer.private.noise import secret_key
from labeldp_trainer.private.step import Problem, StepConfig, private_gradient

CHANNELS, HIDDEN, CLASSES = 16, 16, 10


def convolve(x, kernel, bias):
    """Convolve 3 × 3, padded, as patches times a matrix.

    Per-example gradients are then batched products; lax.conv would be a slow grouped one.
    """
    height, width, channels = x.shape
    padded = jnp.pad(x, ((1, 1), (1, 1), (0, 0)))
    patches = [padded[i : i + height, j : j + width] for i in range(3) for j in range(3)]
    stacked = jnp.concatenate(patches, axis=-1).reshape(height * width, 9 * channels)
    return jax.nn.relu(stacked @ kernel + bias).reshape(height, width, -1)


def pool(x):
    height, width, channels = x.shape
    return x.reshape(height // 2, 2, width // 2, 2, channels).mean(axis=(1, 3))


def loss(params, x, y):
    x = pool(convolve(x, params["conv1"], params["bias1"]))
    x = pool(convolve(x, params["conv2"], params["bias2"]))
    x = jax.nn.relu(x.reshape(-1) @ params["dense1"] + params["bias3"])
    return -jax.nn.log_softmax(x @ params["dense2"] + params["bias4"])[y]


def parameters(rng):
    def draw(rows, columns):
        return jnp.asarray(rng.normal(size=(rows, columns)) * np.sqrt(2 / rows), jnp.float32)

    return {
        "conv1": draw(9, CHANNELS),
        "bias1": jnp.zeros(CHANNELS),
        "conv2": draw(9 * CHANNELS, CHANNELS),
        "bias2": jnp.zeros(CHANNELS),
        "dense1": draw(7 * 7 * CHANNELS, HIDDEN),
        "bias3": jnp.zeros(HIDDEN),
        "dense2": draw(HIDDEN, CLASSES),
        "bias4": jnp.zeros(CLASSES),
    }


def seconds(run: Callable[[int], object], runs: int) -> tuple[float, float, float]:
    """Median, least and most; the first call, which compiles, is left out."""
    jax.block_until_ready(run(0))
    times = []
    for step in range(1, runs + 1):
        start = time.perf_counter()
        jax.block_until_ready(run(step))
        times.append(time.perf_counter() - start)
    return statistics.median(times), min(times), max(times)


def hardware() -> str:
    device = jax.devices()[0]
    name = device.device_kind
    if device.platform == "cpu":
        cpuinfo = Path("/proc/cpuinfo")
        lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
        models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        name = f"{models[0] if models else platform.processor()}, {os.cpu_count()} cores"
    return f"{name}; JAX {jax.__version__}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--units", type=int, default=4096)
    parser.add_argument("--hull", type=int, default=64)
    parser.add_argument("--microbatch", type=int, default=32)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    params = parameters(rng)
    size = sum(leaf.size for leaf in jax.tree.leaves(params))
    x = jnp.asarray(rng.normal(size=(arguments.units, 28, 28, 1)), jnp.float32)
    y = jnp.asarray(rng.integers(0, CLASSES, arguments.units), jnp.int32)
    most = padded_batch(arguments.units, arguments.batch, 100, 1e-5, arguments.microbatch)
    plan = Plan(arguments.units, arguments.batch, 100, most)
    problem = Problem(loss, tuple(range(CLASSES)))
    key = secret_key()

    def private(**choices):
        config = StepConfig(
            plan,
            1.0,
            3.0,
            hull_units=arguments.hull,
            centre_units=64,
            microbatch=arguments.microbatch,
            **choices,
        )
        step = jax.jit(lambda p, a, b, k, s: private_gradient(config, problem, p, a, b, k, s))
        return lambda s: step(params, x, y, key, s)

    def plain():
        def mean(p, xs, ys):
            return jnp.mean(jax.vmap(loss, (None, 0, 0))(p, xs, ys))

        step = jax.jit(jax.grad(mean))
        return lambda s: step(params, x[: arguments.batch], y[: arguments.batch])

    pro = {"denoiser": "alt_conv", "tolerance": 1e-2}
    methods = {
        "SGD": plain(),
        "DP-SGD": private(),
        "label-free clipping": private(clipping="label_free"),
        "LabelDP-Pro, gram": private(**pro, max_iterations=50),
        "LabelDP-Pro, matrix-free, to 1 %": private(
            **pro, projection="matrix_free", max_iterations=2000
        ),
        "LabelDP-Pro, matrix-free, 200 iterations": private(
            **{**pro, "tolerance": 0.0}, projection="matrix_free", max_iterations=200
        ),
        "LabelDP-Pro, gram, label-free": private(**pro, max_iterations=50, clipping="label_free"),
    }
    print(f"{hardware()}. {size:,} parameters, batch {arguments.batch} (padded to {most}),")
    print(f"n2 = {arguments.hull}, microbatches of {arguments.microbatch}; median (least–most) of")
    print(f"{arguments.runs} runs.\n")
    print("| step | seconds | times SGD | times DP-SGD | iterations | certified distance |")
    print("|---|---:|---:|---:|---:|---:|")
    medians: dict[str, float] = {}
    for name, run in methods.items():
        median, least, longest = seconds(run, arguments.runs)
        medians[name] = median
        told = ("", "")
        if "Pro" in name:
            report = run(1)[1]
            told = (str(int(report.iterations)), f"{float(report.distance):.2g}")
        of_dp_sgd = f"{median / medians['DP-SGD']:.2f}" if "DP-SGD" in medians else ""
        print(
            f"| {name} | {median:.3f} ({least:.3f}–{longest:.3f}) | {median / medians['SGD']:.2f} "
            f"| {of_dp_sgd} | {told[0]} | {told[1]} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
