"""Where the time of a projection onto a large hull goes: milliseconds of processor time.

The network of ``steps`` (15,210 parameters), 1,024 rows of noise and ten labels, one thread. Prints
a Markdown table: least and median of three runs.

    python benchmarks/training_studies/hull_parts.py
"""

import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

sys.path.insert(0, str(Path(__file__).parents[1]))

from labeldp_trainer.dp_gradient.generated import project_generated
from labeldp_trainer.dp_gradient.integer_sums import (
    STEPS,
    NoiseLattice,
    clipped_sum,
    in_microbatches,
    unflat,
)
from labeldp_trainer.dp_gradient.projection import (
    HullRows,
    gradient_vectors,
    least_norms,
    matrix_free,
)
from training_studies.hardware import hardware
from training_studies.steps import CLASSES, MODEL, loss

ROWS, BATCH, SIGMA = 1024, 1248, 3.0


def timed(name, function, *arguments):
    """Print a line of the table, and return the result."""
    run = jax.jit(function)
    jax.block_until_ready(run(*arguments))
    times = []
    for _ in range(3):
        began = time.process_time()
        found = jax.block_until_ready(run(*arguments))
        times.append(1e3 * (time.process_time() - began))
    print(f"| {name} | {min(times):.0f} | {sorted(times)[1]:.0f} |", flush=True)
    return found


def main():
    """Measure and print."""
    random = np.random.default_rng(0)
    params, labels = MODEL.init(jax.random.key(0)), jnp.arange(CLASSES)
    x = jnp.asarray(random.normal(size=(BATCH, 28, 28, 1)), jnp.float32)
    y = jnp.asarray(random.integers(0, CLASSES, BATCH), jnp.int32)
    rows = HullRows(x[:ROWS], labels, jnp.ones(ROWS, bool), 1.0)
    print(f"{hardware()}\n\n| part | least | median |\n|---|---:|---:|")

    def summed(p):
        every = jnp.ones(BATCH, bool)
        lattice = NoiseLattice(1.0, SIGMA)
        return clipped_sum(jax.grad(loss), p, x, y, every, lattice=lattice, microbatch=32)

    total = np.asarray(timed("the sum of DP-SGD, without draws", summed, params), float)
    noise = random.normal(size=total.size) * SIGMA
    target = unflat(jnp.asarray((total / STEPS + noise) / ROWS, jnp.float32), params)
    norms = timed(
        "bounds of all clipping factors",
        lambda p: least_norms(loss, p, rows, microbatch=16),
        params,
    )

    def passes(p, v, times):
        free = matrix_free(loss, p, rows, microbatch=16, norms=norms)
        return _repeated(free.correlate, v, times)

    def linearized(p, v, times):
        free = matrix_free(loss, p, rows, microbatch=16, norms=norms)
        parts = in_microbatches(free.x, ROWS, 16)
        _, along = jax.linearize(lambda q: lax.map(lambda part: free._losses(q, part), parts), p)
        return _repeated(lambda v: along(v).reshape(-1), v, times)

    for name, function in (("a pass", passes), ("linearized once", linearized)):
        timed(f"slopes of all vertices, {name}", function, params, target, 1)
        timed(f"the same five times, {name}", function, params, target, 5)
    found = timed(
        "512 vertices",
        lambda p: gradient_vectors(loss, p, jnp.repeat(x[:52], CLASSES, 0)[:512], y[:512]),
        params,
    )
    timed("their Gram matrix", lambda v: v @ v.T, found)
    timed("products of 128 with 1,024", lambda v: v[:128] @ jnp.concatenate([v, v]).T, found)
    for rounds in (0, 1, 2, 24):

        def projected(p, v, most=rounds):
            return project_generated(loss, p, rows, v, microbatch=32, max_iterations=most)

        done = timed(f"a projection of at most {rounds} rounds", projected, params, target)
        print(f"|   its certified distance: {float(done.distance):.2g} | | |")


def _repeated(function, v, times):
    """Called one after another, so that no call can be left out."""

    def again(_, total):
        return total + function(jax.tree.map(lambda leaf: leaf * (1 + 1e-9 * total[0]), v))

    return lax.fori_loop(0, times, again, jnp.zeros(ROWS * CLASSES))


if __name__ == "__main__":
    main()
