"""Linear models with canonical links, from a statistic of the labels.

Softmax and Poisson minimise Σ w·A(x·W) − ⟨W, S⟩ + ½·strength·Σ w·‖x·W‖², with the log-partition A:
log Σ exp, or exp. The coordinates are those in which Σ w·x·xᵀ is the identity: the problem is
well conditioned in them, and weights that give nearly the same predictions are near.
"""

import functools
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.sparse.linalg import cg
from jaxtyping import Array, Float, Float32, Float64
from scipy.optimize import minimize

Link = Literal["softmax", "poisson"]
_ITERATIONS = 200
_LARGEST_EXPONENT = 30.0
_ROUNDING = 1e-6  # of the largest eigenvalue of a float32 sum; with few rows, many are below
_MOST_OUTPUTS = 1 << 22  # numbers of a model, at a time
_ANSWERED = 1e-2  # accuracy of a response, relatively: noise decides what it is for
_Rows = tuple[Float[Array, "s c r"], Float[Array, "s c"], Float[Array, " k"]]


def unit_coordinates(
    used: Float32[np.ndarray, "n d"], factors: Float32[np.ndarray, " n"]
) -> Float64[np.ndarray, "d r"]:
    """U with Σ w·(x·U)ᵀ(x·U) / Σ w = 1, without directions that no row has."""
    gram = np.zeros((used.shape[1], used.shape[1]))
    for start in range(0, len(used), 8192):
        rows = used[start : start + 8192]
        gram += (rows * factors[start : start + 8192, None]).T @ rows
    values, directions = np.linalg.eigh(gram / factors.sum(dtype=np.float64))
    kept = values > _ROUNDING * values[-1]
    return directions[:, kept] / np.sqrt(values[kept])[None, :]


class CanonicalFit:
    """The problem for rows, with Σ w scaled to 1; weights [r, k] are in unit coordinates."""

    def __init__(
        self,
        link: Link,
        rows: Float32[np.ndarray, "n r"],
        factors: Float32[np.ndarray, " n"],
        offset: Float64[np.ndarray, " k"],
    ) -> None:
        """Rows x·U in unit coordinates, their factors w, and what is added to all outputs."""
        chunk = min(max(_MOST_OUTPUTS // len(offset), 1), len(rows))
        weights = (factors / factors.sum(dtype=np.float64)).astype(np.float32)
        x, w = jnp.asarray(_in_chunks(rows, chunk)), jnp.asarray(_in_chunks(weights, chunk))
        self._rows = x, w, jnp.asarray(offset, jnp.float32)
        self._link: Link = link

    def solve(
        self,
        goal: Float64[np.ndarray, "r k"],
        strength: float,
        start: Float64[np.ndarray, "r k"],
    ) -> Float64[np.ndarray, "r k"]:
        """The weights for a statistic ``goal``, divided by Σ w."""
        wanted = jnp.asarray(goal, jnp.float32)

        def both(flat: Float64[np.ndarray, " rk"]) -> tuple[float, Float64[np.ndarray, " rk"]]:
            weights = jnp.asarray(flat.reshape(goal.shape), jnp.float32)
            value, slope = _gradient(self._link, weights, wanted, strength, self._rows)
            return float(value), np.asarray(slope, np.float64).ravel()

        options = {"maxiter": _ITERATIONS, "ftol": 1e-8, "gtol": 1e-6, "maxcor": 20}
        found = minimize(both, start.ravel(), jac=True, method="L-BFGS-B", options=options)
        return found.x.reshape(goal.shape)

    def partition(self, weights: Float64[np.ndarray, "r k"]) -> float:
        """Σ w·A(x·W) / Σ w."""
        at = jnp.asarray(weights, jnp.float32)
        return float(_partition(self._link, at, self._rows))

    def response(
        self,
        weights: Float64[np.ndarray, "r k"],
        change: Float64[np.ndarray, "r k"],
        strength: float,
    ) -> Float64[np.ndarray, "r k"]:
        """How solved weights move, to first order, if the goal moves by ``change``."""
        at, by = (jnp.asarray(each, jnp.float32) for each in (weights, change))
        return np.asarray(_response(self._link, at, by, strength, self._rows), np.float64)


@functools.partial(jax.jit, static_argnames="link")
def _gradient(
    link: Link,
    weights: Float[Array, "r k"],
    goal: Float[Array, "r k"],
    strength: float,
    rows: _Rows,
) -> tuple[Float[Array, ""], Float[Array, "r k"]]:
    def objective(weights: Float[Array, "r k"]) -> Float[Array, ""]:
        fit: Array = 0.5 * strength * jnp.vdot(weights, weights) - jnp.vdot(weights, goal)
        return fit + _partition_sum(link, weights, rows)

    return jax.value_and_grad(objective)(weights)


@functools.partial(jax.jit, static_argnames="link")
def _response(
    link: Link,
    weights: Float[Array, "r k"],
    change: Float[Array, "r k"],
    strength: float,
    rows: _Rows,
) -> Float[Array, "r k"]:
    slope = jax.grad(lambda weights: _partition_sum(link, weights, rows))

    def bent(direction: Float[Array, "r k"]) -> Float[Array, "r k"]:
        curved: Array = jax.jvp(slope, (weights,), (direction,))[1]
        return curved + strength * direction

    return cg(  # type: ignore[no-untyped-call]
        bent, change, tol=_ANSWERED, maxiter=_ITERATIONS
    )[0]


def _partition_sum(link: Link, weights: Float[Array, "r k"], rows: _Rows) -> Float[Array, ""]:
    @jax.checkpoint
    def of_chunk(total: Array, chunk: tuple[Array, Array]) -> tuple[Array, None]:
        x, w = chunk
        return total + jnp.dot(w, _PARTITIONS[link](x @ weights + rows[2][None, :])), None

    return jax.lax.scan(of_chunk, jnp.float32(0), rows[:2])[0]


_partition = jax.jit(_partition_sum, static_argnums=0)


def _in_chunks(rows: Float32[np.ndarray, "n ..."], chunk: int) -> Float32[np.ndarray, "s c ..."]:
    """The rows in chunks of equal length; zeros fill the last one."""
    missing = -len(rows) % chunk
    filled = np.concatenate([rows, np.zeros((missing, *rows.shape[1:]), np.float32)])
    return filled.reshape(-1, chunk, *rows.shape[1:])


def _exponential(outputs: Float[Array, "n 1"]) -> Float[Array, " n"]:
    o = outputs[:, 0]
    cut = jnp.float32(_LARGEST_EXPONENT)
    # convex and finite for every step of the line search
    beyond = jnp.exp(cut) * (1 + (o - cut))
    return jnp.where(o < cut, jnp.exp(jnp.minimum(o, cut)), beyond)


_PARTITIONS: dict[str, Callable[[Float[Array, "n k"]], Float[Array, " n"]]] = {
    "softmax": functools.partial(jax.nn.logsumexp, axis=1),
    "poisson": _exponential,
}
