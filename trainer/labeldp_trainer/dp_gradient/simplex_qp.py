"""min ½aᵀHa − bᵀa over the unit simplex, under jit.

Far from the hull the optimum has few vertices, and pairwise steps (Frank–Wolfe) find them without
any factorization; inside it they take more steps, each a few passes over m numbers.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int


class _Pairwise(NamedTuple):
    a: Array  # in the simplex
    r: Array  # Ha − b, kept up to date
    done: Array
    iterations: Array


def solve_simplex_qp(
    gram: Float[Array, "m m"],
    linear: Float[Array, " m"],
    *,
    tolerance: float,
    max_iterations: int,
) -> tuple[Float[Array, " m"], Int[Array, ""]]:
    """Return a and the number of steps; stops at a·r − min r ≤ `tolerance`²·aᵀHa, r = Ha − b.

    Each step moves weight from one vertex to another, as far as is best. The vertex that gains has
    the least slope; the one that loses, of those with weight, lets the objective fall most along
    the line between them (Fan, Chen and Lin 2005, for support vectors). Starts at the best single
    vertex.
    """
    # The solution depends on differences of r only, so bring their size near one.
    unit = jnp.maximum(jnp.max(jnp.abs(linear)), jnp.max(jnp.diagonal(gram)))
    unit = jnp.where(unit > 0, unit, jnp.ones_like(unit))
    h, b = gram / unit, linear / unit
    squares = jnp.diagonal(h)
    least_bend = float(np.finfo(h.dtype).eps) * jnp.max(squares)
    indices = jnp.arange(b.shape[0], dtype=jnp.int32)
    goal = (0.99 * tolerance) ** 2  # r is rounded in every step

    def where_least(values: Array) -> tuple[Array, Array]:
        # argmin keeps pairs of value and index, and takes several times as long.
        least = jnp.min(values)
        return least, jnp.min(jnp.where(values <= least, indices, indices[-1]))

    def step(state: _Pairwise) -> _Pairwise:
        a, r = state.a, state.r
        least, gains = where_least(r)
        gap, square = jnp.dot(a, r) - least, jnp.dot(a, r + b)
        row = h[gains]
        bend = jnp.maximum(squares + squares[gains] - 2 * row, least_bend)
        slope = jnp.where(a > 0, r - least, jnp.zeros_like(r))
        _, loses = where_least(-slope * slope / bend)
        best = slope[loses] / bend[loses]
        length = jnp.minimum(best, a[loses])
        moved = jnp.where(indices == gains, a + length, a)
        moved = jnp.where(indices == loses, jnp.maximum(a - length, 0.0), moved)
        # Not "gap <= …": a NaN ends it, too.
        done = ~((gap > goal * square) & (length > 0))
        return _Pairwise(
            jnp.where(done, a, moved),
            jnp.where(done, r, r + length * (row - h[loses])),
            done,
            state.iterations + 1,
        )

    _, start = where_least(0.5 * squares - b)
    first = _Pairwise(
        (indices == start).astype(b.dtype),
        h[start] - b,
        jnp.zeros((), bool),
        jnp.zeros((), jnp.int32),
    )
    last = lax.while_loop(lambda s: ~s.done & (s.iterations < max_iterations), step, first)
    return last.a / jnp.sum(last.a), last.iterations


def project_onto_simplex(v: Float[Array, " m"]) -> Float[Array, " m"]:
    """Return the point of the unit simplex nearest to v (Wang and Carreira-Perpiñán 2013)."""
    m = v.shape[0]
    descending = -jnp.sort(-v)
    ranks = jnp.arange(1, m + 1, dtype=v.dtype)
    shifts = (1.0 - jnp.cumsum(descending)) / ranks
    active = jnp.sum(descending + shifts > 0)
    return jnp.maximum(v + shifts[jnp.maximum(active - 1, 0)], 0.0)
