"""Seconds per training step: SGD, DP-SGD, label-free clipping, LabelDP-Pro (as in Table 11).

The model is the MNIST CNN of Table 10 of LabelDP-Pro (15,210 parameters), the data are noise: time
hardly depends on them. Prints a Markdown table with the hardware.

    python benchmarks/training.py steps [--batch 256] [--runs 5]
"""

import argparse
import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from labeldp_trainer.data import FeatureShape
from labeldp_trainer.dp_gradient.accounting import Plan, padded_batch
from labeldp_trainer.dp_gradient.noise import secret_key
from labeldp_trainer.dp_gradient.step import private_gradient
from labeldp_trainer.dp_gradient.step_config import Problem, StepConfig
from labeldp_trainer.models import MnistCnn
from training_studies.hardware import hardware

CLASSES = 10
MODEL = MnistCnn(FeatureShape(image=(28, 28, 1)), CLASSES)


def loss(params, x, y):
    """Cross-entropy of one example."""
    return -jax.nn.log_softmax(MODEL.apply(params, x[None])[0])[y]


def seconds(run: Callable[[int], object], runs: int) -> tuple[float, float, float]:
    """Median, least and most; the first call, which compiles, is left out."""
    jax.block_until_ready(run(0))
    times = []
    for step in range(1, runs + 1):
        start = time.perf_counter()
        jax.block_until_ready(run(step))
        times.append(time.perf_counter() - start)
    return statistics.median(times), min(times), max(times)


def main(given=None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="training.py steps", description=__doc__)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--units", type=int, default=4096)
    parser.add_argument("--hull", type=int, default=64)
    parser.add_argument("--microbatch", type=int, default=32)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args(given)
    rng = np.random.default_rng(0)
    params = MODEL.init(jax.random.key(0))
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
