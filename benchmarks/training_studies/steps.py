"""Seconds per training step: SGD, DP-SGD, LabelDP-Pro (as in Table 11).

The model is the MNIST CNN of Table 10 of LabelDP-Pro (15,210 parameters), the data are noise: only
the rounds of a hull of more than 1,024 vertices depend on them. Steps "with float noise" are those
of version 0.2, which show labels: clipped gradients summed as floats, with float32 noise of JAX, on
batches that were drawn before the clock starts. All others draw their batches and noise within
their time. The steps take turns, so that what else runs on the machine meets all of them alike.
Ratios are to SGD in the same microbatches, and to DP-SGD. Prints a Markdown table with the
hardware.

    python benchmarks/training.py steps [--batch 256] [--hull 32,64] [--runs 5] [--gram]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from labeldp_trainer.data import FeatureShape
from labeldp_trainer.discrete_gaussian.sample import secret_key
from labeldp_trainer.dp_gradient.accounting import NoisePlan, padded_batch
from labeldp_trainer.dp_gradient.integer_sums import clip, in_microbatches
from labeldp_trainer.dp_gradient.step import (
    GradientProblem,
    Randomness,
    StepConfig,
    private_gradient,
)
from labeldp_trainer.models import mnist_cnn
from training_studies.hardware import hardware

CLASSES = 10
MODEL = mnist_cnn(FeatureShape(image=(28, 28, 1)), CLASSES)


def loss(params, x, y):
    """Cross-entropy of one example."""
    return -jax.nn.log_softmax(MODEL.apply(params, x[None])[0])[y]


def float_mean(config, problem, params, xs, ys, draws):
    """The noisy mean of version 0.2: the sum and its noise are floats."""

    def one(x, y):
        return clip(jax.grad(problem.loss)(params, x, y), config.clip_norm)

    def body(total, part):
        inside, labels, kept = part
        chosen = jax.tree.map(
            lambda g: jnp.where(kept.reshape(-1, *(1,) * (g.ndim - 1)), g, 0.0),
            jax.vmap(one)(inside, labels),
        )
        return jax.tree.map(lambda t, g: t + g.sum(axis=0), total, chosen), None

    parts = in_microbatches((xs, ys, draws.mask), ys.shape[0], config.microbatch)
    total = lax.scan(body, jax.tree.map(jnp.zeros_like, params), parts)[0]
    leaves, structure = jax.tree.flatten(total)
    keys = jax.random.split(jax.random.key(0), len(leaves))
    deviation = config.noise_multiplier * config.clip_norm
    noisy = [
        (leaf + deviation * jax.random.normal(k, leaf.shape)) / config.plan.batch
        for k, leaf in zip(keys, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, noisy)


def take_turns(
    methods: dict[str, Callable[[int], object]], runs: int
) -> dict[str, list[tuple[float, float]]]:
    """Seconds on the clock and of the processor; the first calls, which compile, are left out."""
    for run in methods.values():
        jax.block_until_ready(run(0))
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    for step in range(1, runs + 1):
        for name, run in methods.items():
            start, busy = time.perf_counter(), time.process_time()
            jax.block_until_ready(run(step))
            end = time.perf_counter()
            times[name].append((end - start, time.process_time() - busy))
    return times


def median_and_range(values: list[float], digits: int) -> str:
    """As text."""
    middle = statistics.median(values)
    return f"{middle:.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def show(
    methods: dict[str, Callable[[int], object]], times: dict[str, list[tuple[float, float]]]
) -> None:
    """Print the table."""
    print("| step | ms | ms of processor | times SGD | times DP-SGD | iterations | distance |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, run in methods.items():
        told = ("", "")
        if "Pro" in name:
            report = run(1)[1]
            told = (str(int(report.iterations)), f"{float(report.distance):.2g}")
        clock = median_and_range([1e3 * wall for wall, _ in times[name]], 0)
        busy = median_and_range([1e3 * cpu for _, cpu in times[name]], 0)
        ratios = [
            median_and_range(
                [a / b for (a, _), (b, _) in zip(times[name], times[anchor], strict=True)], 2
            )
            for anchor in ("SGD", "DP-SGD")
        ]
        print(f"| {name} | {clock} | {busy} | {' | '.join((*ratios, *told))} |", flush=True)


def read_options(given):
    """The command line."""
    parser = argparse.ArgumentParser(prog="training.py steps", description=__doc__)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--units", type=int, default=4096)
    parser.add_argument("--hull", default="64", help="n2, one or several")
    parser.add_argument("--gram", action="store_true", help="leave out what takes many times SGD")
    parser.add_argument("--microbatch", type=int, default=32)
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args(given)


def main(given=None) -> None:
    """Measure and print."""
    arguments = read_options(given)
    rng = np.random.default_rng(0)
    params = MODEL.init(jax.random.key(0))
    size = sum(leaf.size for leaf in jax.tree.leaves(params))
    x = jnp.asarray(rng.normal(size=(arguments.units, 28, 28, 1)), jnp.float32)
    y = jnp.asarray(rng.integers(0, CLASSES, arguments.units), jnp.int32)
    most = padded_batch(arguments.units, arguments.batch, 100, 1e-5, arguments.microbatch)
    plan = NoisePlan(arguments.units, arguments.batch, 100, most)
    problem = GradientProblem(loss, tuple(range(CLASSES)))
    key = secret_key()

    hulls = [int(hull) for hull in arguments.hull.split(",")]

    def private(hull=hulls[0], drawn_before=False, **choices):
        config = StepConfig(
            plan,
            1.0,
            3.0,
            hull_units=hull,
            microbatch=arguments.microbatch,
            **choices,
        )
        step = jax.jit(lambda p, a, b, d: private_gradient(config, problem, p, a, b, d))
        randomness = Randomness(key, config, size)
        if drawn_before:
            draws = jax.tree.map(jnp.asarray, randomness.step(0))
            return lambda s: step(params, x, y, draws)
        return lambda s: step(params, x, y, randomness.step(s))

    def with_float_noise(**choices):
        """As it was. Only time is measured; it shows labels."""
        run = private(drawn_before=True, **choices)
        with mock.patch("labeldp_trainer.dp_gradient.step._noisy_mean", float_mean):
            run(0)  # traced with it
        return run

    def summed(p, xs, ys, kept):
        losses = jax.vmap(loss, (None, 0, 0))(p, xs, ys)
        return jnp.sum(jnp.where(kept, losses, 0.0)) / arguments.batch

    def plain():
        """No padding, and a sum of losses: what nobody's privacy costs."""

        def step(p, xs, ys):
            def body(total, part):
                return jax.tree.map(jnp.add, total, jax.grad(summed)(p, *part)), None

            rows = arguments.batch
            parts = in_microbatches((xs, ys, jnp.ones(rows, bool)), rows, arguments.microbatch)
            return lax.scan(body, jax.tree.map(jnp.zeros_like, p), parts)[0]

        run = jax.jit(step)
        return lambda s: run(params, x[: arguments.batch], y[: arguments.batch])

    def whole():
        run = jax.jit(lambda p, xs, ys: jax.grad(summed)(p, xs, ys, jnp.ones(ys.shape, bool)))
        return lambda s: run(params, x[: arguments.batch], y[: arguments.batch])

    pro = {"denoiser": "alt_conv", "tolerance": 1e-2}
    methods = {"SGD": plain(), "SGD, the batch at once": whole(), "DP-SGD": private()}
    methods |= {"DP-SGD with float noise": with_float_noise()}
    methods |= {f"LabelDP-Pro, gram, n2 = {hull}": private(hull, **pro) for hull in hulls}
    methods |= {
        f"LabelDP-Pro, gram, n2 = {hull}, with float noise": with_float_noise(hull=hull, **pro)
        for hull in hulls[:1]
    }
    times = take_turns(methods, arguments.runs)
    print(f"{hardware()}. {size:,} parameters, batch {arguments.batch} (padded to {most}),")
    print(f"n2 = {hulls[0]} if not stated, microbatches of {arguments.microbatch}; median")
    print(f"(least–most) of {arguments.runs} rounds, ratios within a round.\n")
    show(methods, times)
