"""Linear models with canonical links, from a statistic of the labels.

Ridge is the posterior mean itself. Softmax and Poisson minimise Σ w·A(x·W) − ⟨W, S⟩ with a convex
A. S is the posterior mean of the statistic, so that the model does not follow its noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Float64
from scipy.optimize import minimize

LEAST_PENALTY, PENALTY_OF_NOISE, MOST_PENALTY = 0.02, 2.5, 1e3
"""Chosen on the first 50,000 training rows of Fashion-MNIST, and on no test row."""
_ITERATIONS = 200
_LARGEST_EXPONENT = 30.0
_ROUNDING = 1e-6  # of the largest eigenvalue of a float32 sum; with few rows, many are below
_UNSURE = 3e-3
"""An agreement is kept this far below the largest score, as a share of the way to the mean."""
_MOST_OUTPUTS = 1 << 22  # numbers of a model, at a time
_MOST_SCORES = 1 << 23
_Slope = tuple[Float[Array, ""], Float[Array, "d k"]]


def penalty(unexplained: float) -> float:
    """The factor of ½·Σ w·(x·W)²: the noisier the statistic, the less the model follows it.

    If noise hides everything, the minimum is a multiple of the ridge solution.
    """
    odds = unexplained / max(1 - unexplained, 1e-6) ** 2
    return min(LEAST_PENALTY + PENALTY_OF_NOISE * odds, MOST_PENALTY)


def canonical(
    head: Literal["softmax", "poisson"],
    used: Float32[np.ndarray, "n d"],
    factors: Float32[np.ndarray, " n"],
    statistic: Float64[np.ndarray, "d k"],
    strength: float,
) -> Float64[np.ndarray, "d k"]:
    """[d, k] the W that minimises Σ w·A(x·W) − ⟨W, S⟩ + ½·strength·Σ w·‖x·W‖².

    A is the log-partition: log Σ exp (softmax) or exp (Poisson). ``statistic`` is Σ w·x ⊗ t(y).
    Solved in coordinates where Σ w·x·xᵀ is the identity, in which the problem is well conditioned.
    """
    total = float(factors.sum(dtype=np.float64))
    gram = np.zeros((used.shape[1], used.shape[1]))
    for start in range(0, len(used), 8192):
        rows = used[start : start + 8192]
        gram += (rows * factors[start : start + 8192, None]).T @ rows
    values, directions = np.linalg.eigh(gram / total)
    kept = values > _ROUNDING * values[-1]
    to_unit = directions[:, kept] / np.sqrt(values[kept])[None, :]
    goal = (to_unit.T @ statistic / total).astype(np.float32)
    rows, weights = used @ to_unit.astype(np.float32), factors / np.float32(total)
    chunk = min(max(_MOST_OUTPUTS // goal.shape[1], 1), len(rows))
    x = jnp.asarray(_in_chunks(rows, chunk))
    w = jnp.asarray(_in_chunks(weights, chunk))
    part = _PARTITIONS[head]

    def partition(
        weights: Float[Array, "d k"], x: Float[Array, "c d"], w: Float[Array, " c"]
    ) -> Float[Array, ""]:
        whole: Array = jnp.dot(w, part(x @ weights))
        return whole

    def linear(weights: Float[Array, "d k"]) -> Float[Array, ""]:
        fit: Array = 0.5 * jnp.float32(strength) * jnp.vdot(weights, weights)
        return fit - jnp.vdot(weights, jnp.asarray(goal))

    @jax.jit
    def gradient(
        weights: Float[Array, "d k"], x: Float[Array, "s c d"], w: Float[Array, "s c"]
    ) -> tuple[Float[Array, ""], Float[Array, "d k"]]:
        def add(sums: _Slope, rows: tuple[Array, Array]) -> tuple[_Slope, None]:
            more = jax.value_and_grad(partition)(weights, *rows)
            return (sums[0] + more[0], sums[1] + more[1]), None

        found: _Slope = jax.lax.scan(add, jax.value_and_grad(linear)(weights), (x, w))[0]
        return found

    shape = goal.shape

    def both(flat: Float64[np.ndarray, " dk"]) -> tuple[float, Float64[np.ndarray, " dk"]]:
        value, slope = gradient(jnp.asarray(flat.reshape(shape), jnp.float32), x, w)
        return float(value), np.asarray(slope, np.float64).ravel()

    options = {"maxiter": _ITERATIONS, "ftol": 1e-9, "gtol": 1e-6, "maxcor": 20}
    found = minimize(both, np.zeros(goal.size), jac=True, method="L-BFGS-B", options=options)
    solved: Float64[np.ndarray, "d k"] = to_unit @ found.x.reshape(shape)
    return solved


def _in_chunks(rows: Float32[np.ndarray, "n ..."], chunk: int) -> Float32[np.ndarray, "s c ..."]:
    """The rows in chunks of equal length; zeros fill the last one."""
    missing = -len(rows) % chunk
    filled = np.concatenate([rows, np.zeros((missing, *rows.shape[1:]), np.float32)])
    return filled.reshape(-1, chunk, *rows.shape[1:])


def _log_sum_exp(outputs: Float[Array, "n k"]) -> Float[Array, " n"]:
    return jax.nn.logsumexp(outputs, axis=1)


def _exponential(outputs: Float[Array, "n 1"]) -> Float[Array, " n"]:
    o = outputs[:, 0]
    cut = jnp.float32(_LARGEST_EXPONENT)
    # convex and finite for every step of the line search
    beyond = jnp.exp(cut) * (1 + (o - cut))
    return jnp.where(o < cut, jnp.exp(jnp.minimum(o, cut)), beyond)


_PARTITIONS: dict[str, Callable[[Float[Array, "n k"]], Float[Array, " n"]]] = {
    "softmax": _log_sum_exp,
    "poisson": _exponential,
}


def temperature(
    used: Float32[np.ndarray, "n d"],
    weights: Float64[np.ndarray, "d k"],
    factors: Float32[np.ndarray, " n"],
    agreement: float,
) -> float:
    """The β for logits β·xW that maximises β·agreement − Σ w·log Σ exp(β·xW).

    ``agreement`` is ⟨W, S⟩ = Σ w·(xW)[y]; β is between 10⁻² and 10⁴. If classes are far apart,
    noise can raise the agreement to that of a model that is certain of every class, or above, so it
    is capped. With very many outputs, a regular sample of the rows is enough.
    """
    step = -(-len(used) * weights.shape[1] // _MOST_SCORES)
    scores = (used[::step] @ weights).astype(np.float32)
    share = factors[::step] * np.float32(factors.sum() / factors[::step].sum())
    most, mean = (float((share * each).sum()) for each in (scores.max(axis=1), scores.mean(axis=1)))
    agreement = min(agreement, most - _UNSURE * (most - mean))

    def slope(beta: float) -> float:
        o = beta * scores.astype(np.float64)
        o -= o.max(axis=1, keepdims=True)
        e = np.exp(o)
        mean = (e * scores).sum(axis=1) / e.sum(axis=1)
        return agreement - float((share * mean).sum())

    low, high = 1e-2, 1e4
    for _ in range(40):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return low
