"""Who knows the features, the other labels and the released gradient reads no label off its digits.

Noise of floats has few values, so that each coordinate says which sums are possible (Mironov 2012
found this for Laplace noise): with `jax.random.normal` in float32 the attack below reads every
label at ε = 0.1. The same attack, one that asks which integers are possible, and the most likely
candidate must find no more than (ε, δ) allows.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from labeldp_trainer.discrete_gaussian.sample import secret_key
from labeldp_trainer.dp_gradient.accounting import NoisePlan, calibrate_integers
from labeldp_trainer.dp_gradient.integer_sums import STEPS
from labeldp_trainer.dp_gradient.step import (
    GradientProblem,
    Randomness,
    StepConfig,
    private_gradient,
)
from scipy import stats

pytestmark = pytest.mark.slow

ROWS, CLASSES, FEATURES, CLIP, DELTA = 256, 10, 12, 1.0, 1e-5
RELEASES = 200
RANDOM = np.random.default_rng(5)
X = jnp.asarray(RANDOM.normal(size=(ROWS, FEATURES)), jnp.float32)
Y = RANDOM.integers(0, CLASSES, ROWS).astype(np.int32)
Y_DEVICE = jnp.asarray(Y)
PARAMS = {"w": jnp.zeros((FEATURES, CLASSES)), "b": jnp.zeros(CLASSES)}
SIZE = sum(leaf.size for leaf in jax.tree.leaves(PARAMS))


def loss(params, x, y):
    return -jax.nn.log_softmax(jnp.dot(x, params["w"]) + params["b"])[y]


def float_noise():
    """All 2^23 values of ``jax.random.normal`` in float32: the error function's inverse of those of
    a uniform number."""
    unit = (np.arange(2**23, dtype=np.uint32) | np.uint32(0x3F800000)).view(np.float32) - 1
    low = np.nextafter(np.float32(-1), np.float32(0))
    spread = jnp.maximum(low, jnp.asarray(unit) * (np.float32(1) - low) + low)
    values = np.float32(np.sqrt(2)) * np.asarray(jax.lax.erf_inv(spread))
    assert np.isin(np.asarray(jax.random.normal(jax.random.key(1), (1000,))), values).all()
    return values


class Attacker:
    """Knows everything but one label: the integer sums for each of its candidates."""

    def __init__(self, config):
        self.lattice = config.lattice
        gradients = jax.vmap(lambda x, y: self.lattice.integers(jax.grad(loss)(PARAMS, x, y)))
        every = [
            np.asarray(gradients(X, jnp.full(ROWS, c, jnp.int32)), np.int64) for c in range(10)
        ]
        self.every = np.stack(every)  # [candidate, row, coordinate]
        self.total = self.every[Y, np.arange(ROWS)].sum(axis=0)
        self.unit = np.float32(CLIP / STEPS / ROWS)

    def sums(self, row):
        return self.total - self.every[Y[row], row] + self.every[:, row]

    def by_possible_noise(self, row, released, noise):
        """The candidate with which most coordinates are a sum and a possible noise, rounded."""
        sums = (self.sums(row).astype(np.float32) * self.unit).astype(np.float64)
        place = np.clip(np.searchsorted(noise, released - sums), 1, len(noise) - 1)
        near = [(sums + noise[place - side]).astype(np.float32) for side in (0, 1)]
        return np.argmax(((near[0] == released) | (near[1] == released)).sum(axis=1))

    def by_possible_integers(self, row, released):
        """The same for noise that is a whole number of lattice steps."""
        sums = self.sums(row)
        noise = np.rint(released.astype(np.float64) / self.unit) - sums
        again = (sums + noise).astype(np.float32) * self.unit
        return np.argmax((again == released).sum(axis=1))

    def by_likelihood(self, row, released):
        away = released.astype(np.float64) / self.unit - self.sums(row)
        return np.argmin(np.square(away).sum(axis=1))


def flat(tree):
    return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(tree)])


@pytest.mark.parametrize("epsilon", [1.0, 0.1])
def test_no_attack_finds_more_labels_than_epsilon_allows(epsilon):
    plan = NoisePlan(ROWS, ROWS, 1, ROWS)
    sigma = calibrate_integers(epsilon, plan, DELTA, SIZE)
    config = StepConfig(plan, CLIP, sigma)
    attacker, problem = Attacker(config), GradientProblem(loss, tuple(range(CLASSES)))
    step = jax.jit(lambda draws: private_gradient(config, problem, PARAMS, X, Y_DEVICE, draws)[0])
    deviation = np.float32(sigma * CLIP / ROWS)
    noise = np.unique(float_noise() * deviation).astype(np.float64)
    found = {"float": 0, "noise": 0, "integers": 0, "likelihood": 0}
    for row in range(RELEASES):
        # What a step with noise of floats would release, as a check of the attack.
        plain = attacker.total.astype(np.float32) * attacker.unit
        drawn = jax.random.normal(jax.random.key(row), (SIZE,), jnp.float32)
        floats = plain + np.asarray(drawn) * deviation
        found["float"] += attacker.by_possible_noise(row, floats, noise) == Y[row]
        released = flat(step(Randomness(secret_key(), config, SIZE).step(0)))
        found["noise"] += attacker.by_possible_noise(row, released, noise) == Y[row]
        found["integers"] += attacker.by_possible_integers(row, released) == Y[row]
        found["likelihood"] += attacker.by_likelihood(row, released) == Y[row]
    assert found.pop("float") > 0.95 * RELEASES
    # Of ten candidates that are equally likely before: Pr[right] ≤ e^ε/(e^ε + 9) + δ.
    most = np.exp(epsilon) / (np.exp(epsilon) + CLASSES - 1) + DELTA
    allowed = stats.binom.isf(1e-9, RELEASES, most)
    assert all(count <= allowed for count in found.values()), (found, allowed)
