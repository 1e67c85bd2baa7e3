"""What noisy gradient steps of two neighbouring tables tell apart, beside what they state.

A small table takes one step of DP-SGD with each of two neighbouring columns of labels: once with
all rows in a batch that is known, and once with a Poisson sample that stays secret. The sums of
integers come from the step's own code, each gets noise of the shipped sampler a million times, and
half-spaces across the difference of the two sums prove a lower bound on ε at the stated δ (Clopper
and Pearson, each wrong with a chance of 1e-10). Then the same with a third of the noise, which must
be found. Last, the residues of all released integers, modulo 2 to 64, are compared with uniform
ones. Prints two markdown tables.

    python benchmarks/gradient_audit.py [RELEASES]
"""

import dataclasses
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1]))

from labeldp_trainer.discrete_gaussian.sample import Words, discrete_gaussian, secret_key
from labeldp_trainer.dp_gradient.accounting import NoisePlan, calibrate_integers
from labeldp_trainer.dp_gradient.integer_sums import clipped_sum
from labeldp_trainer.dp_gradient.step import GradientProblem, StepConfig, poisson_batch

from benchmarks.one_release_audit import DELTA, least_epsilon

ROWS, FEATURES, CLASSES = 4, 2, 2
SIZE = FEATURES * CLASSES
X = jnp.asarray([[0.3, 1.0], [-1.2, 0.4], [2.0, -0.5], [0.9, 0.1]], jnp.float32)
PAIR = np.array([[0, 1, 1, 0], [0, 1, 0, 0]], np.int32)
PARAMS = {"w": jnp.zeros((FEATURES, CLASSES))}
_TOGETHER = 50_000
_MODULI = (2, 3, 5, 7, 16, 64)


def loss(params, x, y):
    """Cross-entropy of one example, long enough that clipping decides its length."""
    return -50 * jax.nn.log_softmax(jnp.dot(x, params["w"]))[y]


PROBLEM = GradientProblem(loss, tuple(range(CLASSES)))


@dataclasses.dataclass(frozen=True)
class Case:
    """One step: its plan."""

    plan: NoisePlan

    def config(self, epsilon: float) -> StepConfig:
        """With the noise that ε and δ ask for."""
        sigma = calibrate_integers(epsilon, self.plan, DELTA, SIZE)
        return StepConfig(self.plan, 1.0, sigma)


CASES = {
    "known batch": Case(NoisePlan(ROWS, ROWS, 1, ROWS)),
    "secret batch, q = 1/2": Case(NoisePlan(ROWS, 2, 1, ROWS)),
}


def sums_of(config: StepConfig, labels: np.ndarray) -> np.ndarray:
    """[16, size] the integer sum of every possible batch, by the step's own code."""

    def total(kept):
        y = jnp.asarray(labels)
        vector, options = (
            jax.grad(PROBLEM.unit_loss),
            {"lattice": config.lattice, "microbatch": 4},
        )
        return clipped_sum(vector, PARAMS, X, y, kept, **options)

    run = jax.jit(total)
    masks = (np.arange(2**ROWS)[:, None] >> np.arange(ROWS) & 1).astype(bool)
    return np.stack([np.asarray(run(jnp.asarray(mask))) for mask in masks])


class Audit:
    """Releases of both tables, counted."""

    def __init__(self, case: Case, config: StepConfig) -> None:
        """Sum what can be summed."""
        self.case, self.config, self.key = case, config, secret_key()
        self.sums = [sums_of(config, labels) for labels in PAIR]
        self.residues = {modulus: np.zeros(modulus, np.int64) for modulus in _MODULI}

    def proved(self, count: int, sigma: int) -> float:
        """The largest ε that half-spaces prove of ``count`` releases with noise of scale σ."""
        whole = 2**ROWS - 1
        step = (self.sums[0][whole] - self.sums[1][whole]).astype(np.float64)
        length = np.square(step).sum()
        middle = (self.sums[0][whole] + self.sums[1][whole]) / 2
        cuts = np.linspace(-3, 3, 13) * sigma / np.sqrt(length)
        hits = np.zeros((2, 2, len(cuts)), np.int64)  # [above or below, table, cut]
        for part, start in enumerate(range(0, count, _TOGETHER)):
            size = min(_TOGETHER, count - start)
            for table in (0, 1):
                released = self._released(table, part, size, sigma)
                places = (released - middle) @ step / length
                hits[0, table] += (places[:, None] > cuts).sum(axis=0)
                hits[1, table] += (-places[:, None] > cuts).sum(axis=0)
        pairs = [hits[0], hits[1][::-1]]
        return max(
            least_epsilon(int(one), int(other), count)
            for found in pairs
            for one, other in zip(*found, strict=True)
        )

    def _released(self, table: int, part: int, size: int, sigma: int) -> np.ndarray:
        batches = np.full(size, 2**ROWS - 1)
        if self.case.plan.batch < ROWS:
            batches = self._batches(table, part, size)
        words = Words(self.key, table, (sigma << 8) + part)
        noise = discrete_gaussian(words.draw, size * SIZE, sigma)
        released = self.sums[table][batches] + noise.reshape(size, SIZE)
        for modulus in _MODULI:
            residues = (released % modulus).ravel()
            self.residues[modulus] += np.bincount(residues, minlength=modulus)
        return released

    def _batches(self, table: int, part: int, size: int) -> np.ndarray:
        plan, words = self.case.plan, Words(self.key, 2 + table, part)
        found = np.empty(size, np.int64)
        for i in range(size):
            batch = poisson_batch(words, units=ROWS, batch=plan.batch, max_batch=ROWS)
            found[i] = (1 << batch.indices[batch.mask]).sum()
        return found


def main(count: int) -> None:
    """Audit all cases at two ε."""
    rows = []
    print("| step | ε | proved of the releases | with a third of the noise | seconds |")
    print("|---|---:|---:|---:|---:|")
    for epsilon in (0.3, 1.0):
        for name, case in CASES.items():
            started, config = time.monotonic(), case.config(epsilon)
            audit, sigma = Audit(case, config), config.lattice.sigma
            found = audit.proved(count, sigma)
            for modulus, seen in audit.residues.items():
                rows.append((name, epsilon, modulus, stats.chisquare(seen).pvalue))
            planted = audit.proved(count // 10, sigma // 3)
            seconds = time.monotonic() - started
            print(
                f"| {name} | {epsilon} | {found:.3f} | {planted:.3f} | {seconds:.0f} |", flush=True
            )
    print("\n| step | ε | p-value of uniform residues modulo", ", ".join(map(str, _MODULI)), "|")
    print("|---|---:|---|")
    for name in CASES:
        for epsilon in (0.3, 1.0):
            found = [f"{p:.2g}" for n, e, _, p in rows if (n, e) == (name, epsilon)]
            print(f"| {name} | {epsilon} | {', '.join(found)} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
