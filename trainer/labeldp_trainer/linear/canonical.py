"""Linear models with canonical links, from a statistic of the labels.

Softmax and Poisson minimise Σ w·A(x·W) − ⟨W, S⟩ + ½·strength·Σ w·‖x·W‖², with the log-partition A:
log Σ exp, or exp. The coordinates are those in which Σ w·x·xᵀ is the identity: the problem is
well conditioned in them, and weights that give nearly the same predictions are near. Products with
rows are in float32, and sums over chunks of rows in float64.
"""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float32, Float64
from scipy.optimize import minimize

Link = Literal["softmax", "poisson"]
_ITERATIONS = 200
_LARGEST_EXPONENT = np.float32(30)
_ROUNDING = 1e-6  # of the largest eigenvalue of a float32 sum; with few rows, many are below
_MOST_OUTPUTS = 1 << 20  # numbers of a model, at a time
_MOST_KEPT = 1 << 26  # means of all rows, that are not computed again
_ANSWERED = 1e-2  # accuracy of a response, relatively: noise decides what it is for


def unit_coordinates(
    used: Float32[np.ndarray, "n d"], factors: Float32[np.ndarray, " n"]
) -> Float64[np.ndarray, "d r"]:
    """U with Σ w·(x·U)ᵀ(x·U) / Σ w = 1, without directions that no row has."""
    gram = np.zeros((used.shape[1], used.shape[1]))
    for start in range(0, len(used), 8192):
        rows = used[start : start + 8192]
        gram += (rows * factors[start : start + 8192, None]).T @ rows
    values, directions = np.linalg.eigh(gram / factors.sum(dtype=np.float64))
    large = values > _ROUNDING * values[-1]
    return directions[:, large] / np.sqrt(values[large])[None, :]


class _Chunk(NamedTuple):
    """Some rows with their weights, and A and its slope, the mean of a label, at their outputs."""

    rows: Float32[np.ndarray, "c r"]
    weights: Float32[np.ndarray, " c"]
    partition: Float32[np.ndarray, " c"]
    means: Float32[np.ndarray, "c k"]


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
        self._link: Link = link
        self._rows, self._offset = rows, offset.astype(np.float32)
        self._weights = (factors / factors.sum(dtype=np.float64)).astype(np.float32)
        self._chunk = min(max(_MOST_OUTPUTS // len(offset), 1), len(rows))

    def solve(
        self,
        goal: Float64[np.ndarray, "r k"],
        strength: float,
        start: Float64[np.ndarray, "r k"],
    ) -> Float64[np.ndarray, "r k"]:
        """The weights for a statistic ``goal``, divided by Σ w."""

        def objective(flat: Float64[np.ndarray, " rk"]) -> tuple[float, Float64[np.ndarray, " rk"]]:
            weights = flat.reshape(goal.shape)
            value, slope = 0.5 * strength * flat @ flat - flat @ goal.ravel(), -goal
            slope = slope + strength * weights
            for x, w, partition, means in self._chunks(weights):
                value += float(w @ partition)
                slope += x.T @ (w[:, None] * means)
            return float(value), slope.ravel()

        options = {"maxiter": _ITERATIONS, "ftol": 1e-8, "gtol": 1e-6, "maxcor": 20}
        solution = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
        return solution.x.reshape(goal.shape)

    def partition(self, weights: Float64[np.ndarray, "r k"]) -> float:
        """Σ w·A(x·W) / Σ w."""
        return sum(float(w @ partition) for _, w, partition, _ in self._chunks(weights))

    def response(
        self,
        weights: Float64[np.ndarray, "r k"],
        change: Float64[np.ndarray, "r k"],
        strength: float,
    ) -> Float64[np.ndarray, "r k"]:
        """How solved weights move, to first order, if the goal moves by ``change``."""
        few = len(self._rows) * len(self._offset) <= _MOST_KEPT
        kept = list(self._chunks(weights)) if few else None

        def bent(direction: Float64[np.ndarray, "r k"]) -> Float64[np.ndarray, "r k"]:
            curved = strength * direction
            for x, w, _, means in kept or self._chunks(weights):
                curved += x.T @ (w[:, None] * self._moved(means, x @ direction.astype(np.float32)))
            return curved

        return _conjugate_gradients(bent, change)

    def _chunks(self, weights: Float64[np.ndarray, "r k"]) -> Iterator[_Chunk]:
        own = weights.astype(np.float32)
        for start in range(0, len(self._rows), self._chunk):
            part = slice(start, start + self._chunk)
            outputs = self._rows[part] @ own + self._offset
            with np.errstate(over="ignore"):  # the line search turns back
                values = _softmax(outputs) if self._link == "softmax" else _exponential(outputs)
            yield _Chunk(self._rows[part], self._weights[part], *values)

    def _moved(
        self, means: Float32[np.ndarray, "c k"], outputs: Float32[np.ndarray, "c k"]
    ) -> Float32[np.ndarray, "c k"]:
        """How means move if outputs move by this."""
        if self._link == "softmax":
            return means * (outputs - (means * outputs).sum(axis=1, keepdims=True))
        return np.where(means < np.exp(_LARGEST_EXPONENT), means * outputs, np.float32(0))


def _conjugate_gradients(
    bent: Callable[[Float64[np.ndarray, "r k"]], Float64[np.ndarray, "r k"]],
    goal: Float64[np.ndarray, "r k"],
) -> Float64[np.ndarray, "r k"]:
    """The x with bent(x) = goal, for a positive linear function."""
    x, left = np.zeros_like(goal), goal.copy()
    direction, size = left, float(np.square(left).sum())
    least = _ANSWERED**2 * size
    for _ in range(_ITERATIONS):
        if size <= least:
            break
        curved = bent(direction)
        step = size / float((direction * curved).sum())
        x, left = x + step * direction, left - step * curved
        size, before = float(np.square(left).sum()), size
        direction = left + size / before * direction
    return x


def _softmax(
    outputs: Float32[np.ndarray, "c k"],
) -> tuple[Float32[np.ndarray, " c"], Float32[np.ndarray, "c k"]]:
    largest = outputs.max(axis=1)
    means = np.exp(outputs - largest[:, None])
    total = means.sum(axis=1)
    means /= total[:, None]
    return np.log(total) + largest, means


def _exponential(
    outputs: Float32[np.ndarray, "c 1"],
) -> tuple[Float32[np.ndarray, " c"], Float32[np.ndarray, "c 1"]]:
    """e^o; from a large o on its tangent, which is finite for every step of a line search."""
    cut = _LARGEST_EXPONENT
    means = np.exp(np.minimum(outputs, cut))
    return (means * (1 + np.maximum(outputs - cut, 0)))[:, 0], means
