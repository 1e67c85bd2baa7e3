"""The probabilities that are nearest to predictions of classes, which may be below 0 or above 1."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32


def project_onto_simplex(v: Float[Array, " m"]) -> Float[Array, " m"]:
    """Return the point of the unit simplex nearest to v (Wang and Carreira-Perpiñán 2013)."""
    m = v.shape[0]
    descending = -jnp.sort(-v)
    ranks = jnp.arange(1, m + 1, dtype=v.dtype)
    shifts = (1.0 - jnp.cumsum(descending)) / ranks
    active = jnp.sum(descending + shifts > 0)
    return jnp.maximum(v + shifts[jnp.maximum(active - 1, 0)], 0.0)


def nearest_probabilities(predicted: Float32[np.ndarray, "n k"]) -> Float32[np.ndarray, "n k"]:
    """Of every row, the nearest point of the unit simplex."""
    return np.asarray(_nearest(predicted))


def probabilities_moved(
    predicted: Float32[np.ndarray, "n k"], change: Float32[np.ndarray, "n k"]
) -> Float32[np.ndarray, "n k"]:
    """How these points move, to first order, if predictions do."""
    return np.asarray(_moved(predicted, change))


_nearest = jax.jit(jax.vmap(project_onto_simplex))


@jax.jit
def _moved(predicted: Float[Array, "n k"], change: Float[Array, "n k"]) -> Float[Array, "n k"]:
    return jax.jvp(jax.vmap(project_onto_simplex), (predicted,), (change,))[1]
