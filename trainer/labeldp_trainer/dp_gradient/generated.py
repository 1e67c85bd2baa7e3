"""Projecting onto the hull of many vertices, few of which are ever computed.

Column generation: a quadratic program over a working set of vertices, then one JVP over all rows
that finds the vertices with the least slope, which replace unused ones. The projection of a noisy
gradient has some hundred vertices, however many the hull has.

One JVP gives ⟨∇ℓ, z − g̃⟩ of every vertex before clipping. The clipping factor of a vertex is only
bounded: it is at most C over the norm of a part of its gradient that is cheap to compute. So a
negative slope, times that bound, is at most the vertex's slope. The certificate of `projection.py`
needs no more than a lower bound of min r: it holds for all vertices, computed or not.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, PyTree

from labeldp_trainer.dp_gradient.integer_sums import Loss, flat, tiny, unflat
from labeldp_trainer.dp_gradient.projection import (
    HullRows,
    MatrixFree,
    Projection,
    gradient_vectors,
    least_norms,
    matrix_free,
    solve_simplex_qp,
)

_LEAST_SET, WORKING_SET = 64, 1024  # vertices in memory; a hull with no more is materialised
_SET_BYTES = 1 << 30  # what they and their Gram matrix may take in float32
_ROWS = 16  # at a time on a CPU, so that intermediate results fit its cache
_ROUNDS = 24  # at most: 4 to 7 are usual
_ROUNDING = 1e-5  # of a bound, in float32
_STEPS = 32 * WORKING_SET  # of a quadratic program, as in `project_gram`


def working_set_of(params: PyTree) -> int:
    """How many vertices are in memory: as many as fit, from 64 to WORKING_SET."""
    half = sum(leaf.size for leaf in jax.tree.leaves(params)) / 2
    fits = math.isqrt(int(half * half) + _SET_BYTES // 4) - int(half)
    return min(max(fits, _LEAST_SET), WORKING_SET)


class _Round(NamedTuple):
    """The working set, and the solution on it."""

    chosen: Array  # [w] of all vertices
    vertices: Array  # [w, d]
    gram: Array  # [w, w]
    linear: Array  # [w]
    a: Array  # [w] in the simplex
    tight: Array  # [m]: true factors over their bounds where they are known, otherwise 1
    bounds: Array  # [m]: at most the slope of each vertex; infinite for those in the working set
    gap: Array
    square: Array
    rounds: Array
    steps: Array


@dataclass(frozen=True)
class _Generator:
    """The maker of vertices of `rows`, which improves the working set."""

    free: MatrixFree  # with bounds of the clipping factors as weights
    rows: HullRows
    aim: Array
    tolerance: float

    def vertices_of(self, chosen: Array) -> tuple[Array, Array]:
        """The vertices, and their factors over the bounds of these."""
        free, labels = self.free, len(self.free.labels)
        i, bounds = chosen // labels, free.weights.reshape(-1)[chosen]
        x = jax.tree.map(lambda leaf: leaf[i], free.x)
        found = gradient_vectors(free.loss, free.params, x, free.labels[chosen % labels])
        length = jnp.linalg.norm(found, axis=1)
        factors = bounds
        if self.rows.clip_norm is not None:
            factors = jnp.where(length > self.rows.clip_norm, self.rows.clip_norm / length, 1.0)
        # What overflows in spite of a finite bound is left out; that puts zero into the hull.
        usable = jnp.isfinite(length) & (bounds != 0)
        kept = jnp.where(usable[:, None], found * factors[:, None], jnp.zeros_like(found))
        return kept, jnp.where(usable, factors / bounds, jnp.ones_like(bounds))

    def solved(self, state: _Round) -> _Round:
        """The state with its program solved, and the slopes of all vertices bounded there."""
        a, steps = solve_simplex_qp(
            state.gram,
            state.linear,
            start=state.a,
            tolerance=0.7 * self.tolerance,  # the rest is for vertices outside the working set
            max_iterations=_STEPS,
        )
        z = a @ state.vertices
        r = state.vertices @ (z - self.aim)
        bounds = state.tight * self.free.correlate(unflat(z - self.aim, self.free.params))
        if self.rows.clip_norm is not None:
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

    def improved(self, state: _Round) -> _Round:
        """The least slopes outside the working set replace the largest of those without weight."""
        r = state.gram @ state.a - state.linear
        new = max(len(r) // 8, 1)
        _, leaves = lax.top_k(jnp.where(state.a > 0, -jnp.inf, r), new)
        _, enters = lax.top_k(-state.bounds, new)
        enters = jnp.where(state.a[leaves] > 0, state.chosen[leaves], enters.astype(jnp.int32))
        found, tight = self.vertices_of(enters)
        vertices = state.vertices.at[leaves].set(found)
        products = found @ vertices.T
        gram = state.gram.at[leaves].set(products)
        return self.solved(
            state._replace(
                chosen=state.chosen.at[leaves].set(enters),
                vertices=vertices,
                gram=gram.at[:, leaves].set(products.T),
                linear=state.linear.at[leaves].set(found @ self.aim),
                tight=state.tight.at[enters].set(tight),
            )
        )

    def certified(self, state: _Round) -> Array:
        """Whether the gap is small enough."""
        return state.gap <= self.tolerance**2 * state.square

    def begun(self, first: Array, begin: Array, tight: Array, working_set: int) -> _Round:
        """The state with the vertices `begin`; copies of one fill up the working set, which changes
        no hull."""
        slots = jnp.arange(working_set)
        slots = jnp.where(slots < first.size, slots, jnp.zeros_like(slots))
        gram, linear = begin @ begin.T, begin @ self.aim
        best = jnp.argmin(0.5 * jnp.diagonal(gram) - linear)
        zero, none = jnp.zeros((), begin.dtype), jnp.zeros((), jnp.int32)
        return _Round(
            chosen=first[slots],
            vertices=begin[slots],
            gram=gram[slots][:, slots],
            linear=linear[slots],
            a=(jnp.arange(working_set) == best).astype(begin.dtype),
            tight=jnp.ones_like(self.free.uniform).at[first].set(tight),
            bounds=jnp.zeros(self.free.uniform.shape, begin.dtype),
            gap=zero,
            square=zero,
            rounds=none,
            steps=none,
        )


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
    `smoothing` mixes in is an estimate of the mean of all vertices, unbiased for rows in random
    order: the mean with bounds in the place of clipping factors, plus the mean of what the bounds
    are wrong by on the first rows, as many as fill half the working set.
    """
    most = _ROUNDS if max_iterations is None else max_iterations
    if jax.default_backend() == "cpu":
        microbatch = min(microbatch, _ROWS)
    norms = least_norms(loss, params, rows, microbatch=microbatch)
    free = matrix_free(loss, params, rows, microbatch=microbatch, norms=norms)
    generator = _Generator(free, rows, flat(target), tolerance)
    half, labels = working_set // 2, len(rows.labels)
    first = jnp.arange(half // labels * labels or half, dtype=jnp.int32)
    begin, tight = generator.vertices_of(first)
    last = lax.while_loop(
        lambda state: ~generator.certified(state) & (state.rounds <= most),
        generator.improved,
        generator.solved(generator.begun(first, begin, tight, working_set)),
    )
    distance = jnp.sqrt(
        jnp.maximum(last.gap, 0.0) / jnp.maximum(last.square, tiny(last.square.dtype))
    )
    z = last.a @ last.vertices
    a = jnp.zeros_like(free.uniform).at[last.chosen].add(last.a)
    if smoothing != 1.0:
        centre = flat(free.combine(free.uniform))
        centre += (_equal(free.uniform[: first.size]) * (1 - 1 / tight)) @ begin
        a = smoothing * a + (1 - smoothing) * free.uniform
        z = smoothing * z + (1 - smoothing) * centre
    return Projection(unflat(z, params), a, last.steps, distance, generator.certified(last))


def _equal(uniform: Float[Array, " c"]) -> Float[Array, " c"]:
    """Equal weights of the vertices that are used, adding up to 1; zero if none is."""
    used = (uniform > 0).astype(uniform.dtype)
    return used / jnp.maximum(jnp.sum(used), 1)
