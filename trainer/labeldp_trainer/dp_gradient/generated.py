"""Projecting onto the hull of many vertices, few of which are ever computed.

Column generation: a quadratic program over a working set of vertices, then one JVP over all rows
that finds the vertices with the least slope, which replace unused ones. The projection of a noisy
gradient has some hundred vertices, however many the hull has.

One JVP gives ⟨∇ℓ, z − g̃⟩ of every vertex before clipping. The clipping factor of a vertex is only
bounded: it is at most C over the norm of a part of its gradient that is cheap to compute. So a
negative slope, times that bound, is at most the vertex's slope. The certificate of `projection.py`
needs no more than a lower bound of min r: it holds for all vertices, computed or not.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, PyTree

from labeldp_trainer.dp_gradient.hull import (
    HullRows,
    gradient_vectors,
    least_norms,
    matrix_free,
)
from labeldp_trainer.dp_gradient.projection import Projection, solve_simplex_qp
from labeldp_trainer.dp_gradient.tree import Loss, flat, tiny, unflat

WORKING_SET = 1024  # vertices in memory; a hull with no more is materialised
_ROUNDS = 24  # at most: 4 to 7 are usual
_ROUNDING = 1e-5  # of a bound, in float32
_STEPS = 32 * WORKING_SET  # of a quadratic program, as in `project_gram`


class _Round(NamedTuple):
    """The working set, and the solution on it."""

    chosen: Array  # [w] of all vertices
    vertices: Array  # [w, d]
    gram: Array  # [w, w]
    linear: Array  # [w]
    a: Array  # [w] in the simplex
    bounds: Array  # [m]: at most the slope of each vertex; infinite for those in the working set
    gap: Array
    square: Array
    rounds: Array
    steps: Array


def project_generated(
    loss: Loss,
    params: PyTree,
    rows: HullRows,
    target: PyTree,
    *,
    microbatch: int,
    smoothing: float = 1.0,
    tolerance: float = 1e-2,
    max_iterations: int | None = None,
    working_set: int = WORKING_SET,
) -> Projection:
    """Project `target` onto the hull of the vertices of `rows`, more than `working_set` of them.

    As `project_gram`, with two differences. `max_iterations` counts rounds. The centre that
    `smoothing` mixes in is the mean of the vertices of the first rows, as many as fill half the
    working set: an unbiased estimate of the mean over all.
    """
    labels, new = len(rows.labels), max(working_set // 8, 1)  # vertices that enter in a round
    most = _ROUNDS if max_iterations is None else max_iterations
    norms = least_norms(loss, params, rows, microbatch=microbatch)
    free = matrix_free(loss, params, rows, microbatch=microbatch, norms=norms)
    aim = flat(target)

    def vertices_of(chosen: Array) -> Array:
        i = chosen // labels
        scales = None if rows.scales is None else free.weights.reshape(-1)[chosen]
        x = jax.tree.map(lambda leaf: leaf[i], free.x)
        found = gradient_vectors(loss, params, (x, rows.labels[chosen % labels]))
        length = jnp.linalg.norm(found, axis=1)
        if scales is None:
            clip_norm = jnp.inf if rows.clip_norm is None else rows.clip_norm
            scales = jnp.where(length > clip_norm, clip_norm / length, jnp.ones_like(length))
        any_row = jnp.any(free.weights != 0)
        usable = (any_row & jnp.isfinite(length))[:, None]
        return jnp.where(usable, found * scales[:, None], jnp.zeros_like(found))

    def solved(state: _Round) -> _Round:
        """The state with its program solved, and the slopes of all vertices bounded there."""
        a, steps = solve_simplex_qp(
            state.gram,
            state.linear,
            start=state.a,
            tolerance=0.7 * tolerance,  # the rest is for vertices outside the working set
            max_iterations=_STEPS,
        )
        z = a @ state.vertices
        r = state.vertices @ (z - aim)
        bounds = free.correlate(unflat(z - aim, params))
        if rows.scales is None and rows.clip_norm is not None:
            bounds = jnp.minimum(bounds, jnp.zeros_like(bounds))  # no factor is negative
        bounds = bounds.at[state.chosen].set(jnp.inf)
        outside = jnp.min(bounds)
        least = jnp.minimum(jnp.min(r), outside - _ROUNDING * jnp.abs(outside))
        return state._replace(
            a=a,
            bounds=bounds,
            gap=jnp.dot(a, r) - least,
            square=jnp.dot(z, z),
            rounds=state.rounds + 1,
            steps=state.steps + steps,
        )

    def improved(state: _Round) -> _Round:
        """The least slopes outside the working set replace the largest of those without weight."""
        r = state.gram @ state.a - state.linear
        _, leaves = lax.top_k(jnp.where(state.a > 0, -jnp.inf, r), new)
        _, enters = lax.top_k(-state.bounds, new)
        enters = jnp.where(state.a[leaves] > 0, state.chosen[leaves], enters.astype(jnp.int32))
        found = vertices_of(enters)
        vertices = state.vertices.at[leaves].set(found)
        products = found @ vertices.T
        gram = state.gram.at[leaves].set(products)
        return solved(
            state._replace(
                chosen=state.chosen.at[leaves].set(enters),
                vertices=vertices,
                gram=gram.at[:, leaves].set(products.T),
                linear=state.linear.at[leaves].set(found @ aim),
            )
        )

    # Copies of the first vertex fill up the working set: they change no hull.
    first = jnp.arange(working_set // 2 // labels * labels, dtype=jnp.int32)
    begin = vertices_of(first)
    slots = jnp.arange(working_set)
    slots = jnp.where(slots < first.size, slots, jnp.zeros_like(slots))
    gram, linear = begin @ begin.T, begin @ aim
    best = jnp.argmin(0.5 * jnp.diagonal(gram) - linear)
    zero, none = jnp.zeros((), begin.dtype), jnp.zeros((), jnp.int32)
    start = _Round(
        chosen=first[slots],
        vertices=begin[slots],
        gram=gram[slots][:, slots],
        linear=linear[slots],
        a=(jnp.arange(working_set) == best).astype(begin.dtype),
        bounds=jnp.zeros(free.uniform.shape, begin.dtype),
        gap=zero,
        square=zero,
        rounds=none,
        steps=none,
    )

    def certified(state: _Round) -> Array:
        return state.gap <= tolerance**2 * state.square

    last = lax.while_loop(
        lambda state: ~certified(state) & (state.rounds <= most), improved, solved(start)
    )
    distance = jnp.sqrt(
        jnp.maximum(last.gap, 0.0) / jnp.maximum(last.square, tiny(last.square.dtype))
    )
    z = last.a @ last.vertices
    a = jnp.zeros_like(free.uniform).at[last.chosen].add(last.a)
    if smoothing != 1.0:
        centre = _centre(free.uniform, first.size)
        a = smoothing * a + (1 - smoothing) * jnp.zeros_like(a).at[first].set(centre)
        z = smoothing * z + (1 - smoothing) * (centre @ begin)
    return Projection(unflat(z, params), a, last.steps, distance, certified(last))


def _centre(uniform: Float[Array, " m"], count: int) -> Float[Array, " c"]:
    """Equal weights of those of the first vertices that are used, of all if none is."""
    used = uniform[:count] > 0
    used = (used | ~jnp.any(used)).astype(uniform.dtype)
    return used / jnp.sum(used)
