"""Projecting a noisy gradient onto the hull or the span of public vertices (LabelDP-Pro, Section
3.2).

Post-processing of the noisy gradient: nothing here sees a label. All norms are over the whole
pytree.

The certificate of a projection onto the hull. Let z = Ga, r = Gᵀ(z − g̃) and gap(a) = a·r − min r.
The projection z* of g̃ onto the hull satisfies ⟨z* − g̃, z − z*⟩ ≥ 0. As z* is a convex combination
of vertices, ⟨z − g̃, z − z*⟩ ≤ max_v ⟨z − g̃, z − v⟩ = a·r − min r. Subtracting, ‖z − z*‖² ≤ gap(a).
So gap(a) ≤ τ²‖z‖² certifies ‖z − z*‖ ≤ τ‖z‖, however a was found.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int, PyTree

from labeldp_trainer.dp_gradient.hull import Materialised, Vertices
from labeldp_trainer.dp_gradient.integer_sums import dot, tiny

_STEPS_A_VERTEX = 32  # of `project_gram`: a target inside a hull of 640 vertices takes 17


class Projection(NamedTuple):
    """`value` like params; `distance` bounds ‖value − projection‖/‖value‖.

    `distance` is measured before smoothing. `certified` says whether it is at most the tolerance.
    """

    value: PyTree
    coefficients: Float[Array, " m"]
    iterations: Int[Array, ""]
    distance: Float[Array, ""]
    certified: Bool[Array, ""]


class _Pairwise(NamedTuple):
    a: Array  # in the simplex
    r: Array  # Ha − b, kept up to date
    done: Array
    iterations: Array


class _Conjugate(NamedTuple):
    u: Array
    z: PyTree
    p: Array
    square: Array
    iterations: Array


def project_gram(
    vertices: Materialised,
    target: PyTree,
    *,
    smoothing: float = 1.0,
    tolerance: float = 1e-2,
    max_iterations: int | None = None,
) -> Projection:
    """Project `target` onto the convex hull by a quadratic program on the Gram matrix.

    `smoothing` is λ of Section 3.3: the coefficients become λ·a + (1 − λ)·uniform; 1 leaves them
    unchanged. `max_iterations` None means 32 pairwise steps per vertex.
    """
    most = _STEPS_A_VERTEX * vertices.uniform.shape[0] if max_iterations is None else max_iterations
    a, iterations = solve_simplex_qp(
        vertices.gram(), vertices.correlate(target), tolerance=tolerance, max_iterations=most
    )
    z = vertices.combine(a)
    r = vertices.correlate(jax.tree.map(jnp.subtract, z, target))
    gap, square = jnp.dot(a, r) - jnp.min(r), dot(z, z)
    distance = jnp.sqrt(jnp.maximum(gap, 0.0) / jnp.maximum(square, tiny(square.dtype)))
    certified = gap <= tolerance**2 * square
    if smoothing != 1.0:
        a = smoothing * a + (1.0 - smoothing) * vertices.uniform
        z = vertices.combine(a)
    return Projection(z, a, iterations, distance, certified)


def project_onto_span(
    vertices: Vertices,
    target: PyTree,
    *,
    tolerance: float = 1e-4,
    max_iterations: int | None = None,
) -> Projection:
    """Project `target` onto the linear span: least squares by conjugate gradients (CGLS).

    Stops at ‖Gᵀ(g̃ − Gu)‖ ≤ `tolerance`·‖Gᵀg̃‖, or after `max_iterations` (200 if None). `distance`
    is the ratio of these two norms. It does not bound the distance to the projection: a span's
    small directions are found last, or never.
    """
    most = 200 if max_iterations is None else max_iterations

    def step(state: _Conjugate) -> _Conjugate:
        image = vertices.combine(state.p)
        length = state.square / jnp.maximum(dot(image, image), tiny(state.square.dtype))
        u = state.u + length * state.p
        z = jax.tree.map(lambda old, q: old + length.astype(q.dtype) * q, state.z, image)
        slope = vertices.correlate(jax.tree.map(jnp.subtract, target, z))
        square = jnp.dot(slope, slope)
        p = slope + (square / state.square) * state.p
        return _Conjugate(u, z, p, square, state.iterations + 1)

    slope = vertices.correlate(target)
    start = jnp.dot(slope, slope)
    zeros = jax.tree.map(jnp.zeros_like, target)
    first = _Conjugate(jnp.zeros_like(slope), zeros, slope, start, jnp.zeros((), jnp.int32))
    goal = tolerance**2 * start
    last = lax.while_loop(lambda s: (s.square > goal) & (s.iterations < most), step, first)
    distance = jnp.sqrt(last.square / jnp.maximum(start, tiny(start.dtype)))
    return Projection(last.z, last.u, last.iterations, distance, last.square <= goal)


def solve_simplex_qp(
    gram: Float[Array, "m m"],
    linear: Float[Array, " m"],
    *,
    tolerance: float,
    max_iterations: int,
    start: Float[Array, " m"] | None = None,
) -> tuple[Float[Array, " m"], Int[Array, ""]]:
    """Return an a for min ½aᵀHa − bᵀa over the unit simplex, and the number of steps.

    Stops at a·r − min r ≤ `tolerance`²·aᵀHa, r = Ha − b. Far from the hull, the optimum has few
    vertices, and pairwise steps (Frank–Wolfe) find them without any factorization. Inside the hull,
    more steps are needed; each is a few passes over m numbers.

    Each step moves the best amount of weight from one vertex to another. The vertex with the least
    slope gains. Of the vertices with weight, the one loses for which the objective falls most along
    the line between the two (Fan, Chen and Lin 2005, for support vectors). Begins at `start`, or
    at the best single vertex.
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
        # argmin carries pairs of value and index, and takes several times as long.
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
        # Not "gap <= …": in this form, a NaN ends the loop too.
        done = ~((gap > goal * square) & (length > 0))
        return _Pairwise(
            jnp.where(done, a, moved),
            jnp.where(done, r, r + length * (row - h[loses])),
            done,
            state.iterations + 1,
        )

    if start is None:
        start = (indices == where_least(0.5 * squares - b)[1]).astype(b.dtype)
    first = _Pairwise(
        start,
        h @ start - b,
        jnp.zeros((), bool),
        jnp.zeros((), jnp.int32),
    )
    last = lax.while_loop(lambda s: ~s.done & (s.iterations < max_iterations), step, first)
    return last.a / jnp.sum(last.a), last.iterations
