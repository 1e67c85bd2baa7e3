"""Small models: ordinary ones, and some that do their worst."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from labeldp_trainer.dp_gradient.integer_sums import Halves


def network(params, x):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def cross_entropy(params, x, y):
    return -jax.nn.log_softmax(network(params, x))[y]


def squared(params, x, y):
    return 0.5 * jnp.square(network(params, x)[0] - y)


def poisson(params, x, y):
    log_rate = network(params, x)[0]
    return jnp.exp(log_rate) - y * log_rate


def parameters(features=5, hidden=4, outputs=3, seed=0, scale=1.0, dtype=np.float32):
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return jnp.asarray(rng.normal(size=shape) * scale, dtype)

    return {
        "w1": draw(features, hidden),
        "b1": draw(hidden),
        "w2": draw(hidden, outputs),
        "b2": draw(outputs),
    }


def examples(n, features=5, seed=1, dtype=np.float32):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, features)), dtype)


def flat(tree):
    leaves = [np.asarray(leaf, np.float64).reshape(-1) for leaf in jax.tree.leaves(tree)]
    return np.concatenate(leaves)


@functools.cache
def _gradient_of(loss):
    return jax.jit(jax.grad(loss))


def slow_gradient(loss, params, x, y):
    return flat(_gradient_of(loss)(params, x, y))


def slow_clip(vector, bound):
    if not np.all(np.isfinite(vector)):
        return np.zeros_like(vector)
    size = np.linalg.norm(vector)
    return vector if size <= bound else vector * (bound / size)


@functools.cache  # one function a kind, which is compiled once
def adversary(kind):
    """Return a loss whose gradient in params depends wildly on the label (0, 1, 2 or more)."""

    def loss(params, x, y):
        w = params["w1"]
        sign = jnp.where(y % 2 == 0, 1.0, -1.0)
        linear = jnp.sum(w * x[:, None])
        return {
            "opposite": sign * 1e20 * linear,
            "tiny or huge": jnp.where(y == 0, 1e-30, 5e37) * sign * linear,
            "infinite": jnp.where(y == 0, 1.0, jnp.inf) * linear,
            "nan": jnp.where(y == 0, 1.0, jnp.nan) * linear,
            "overflow": jnp.exp(sign * 1e3 * jnp.square(linear)) * linear,
            "logarithm of zero": jnp.log(jnp.where(y == 0, 1.0, 0.0) * jnp.square(linear)),
            "one entry": sign * jnp.where(y > 1, 1e38, 1.0) * w[0, 0],
            "other entry": jnp.where(y == 0, w[0, 0], w[1, 1]) * 1e10,
        }[kind]

    return loss


ADVERSARIES = (
    "opposite",
    "tiny or huge",
    "infinite",
    "nan",
    "overflow",
    "logarithm of zero",
    "one entry",
    "other entry",
)


def without_noise(lattice, total, params):
    """A sum of integers as a gradient."""
    size = sum(leaf.size for leaf in jax.tree.leaves(params))
    none = Halves(jnp.zeros(size, jnp.int32), jnp.zeros(size, jnp.uint32))
    return lattice.noisy_mean(total, none, params, 1)
