"""Projecting a noisy gradient onto the hull or the span of public vertices (LabelDP-Pro, Section
3.2).

Post-processing of the noisy gradient: nothing here sees a label. All norms are over the whole
pytree.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int, PyTree

from labeldp_trainer.dp_gradient.hull import Materialised, Vertices
from labeldp_trainer.dp_gradient.simplex_qp import QPSolution, solution, solve_simplex_qp
from labeldp_trainer.dp_gradient.tree import dot, tiny


class Projection(NamedTuple):
    """`value` like params; `distance` bounds ‖value − projection‖/‖value‖.

    The distance is that before smoothing. `certified`: it is at most the tolerance asked for.
    """

    value: PyTree
    coefficients: Float[Array, " m"]
    iterations: Int[Array, ""]
    distance: Float[Array, ""]
    certified: Bool[Array, ""]


def project_gram(
    vertices: Materialised,
    target: PyTree,
    *,
    smoothing: float = 1.0,
    tolerance: float = 1e-2,
    max_iterations: int = 50,
) -> Projection:
    """Project `target` onto the convex hull by a quadratic program on the Gram matrix.

    `smoothing` is λ of Section 3.3: the coefficients become λ·a + (1 − λ)·uniform; 1 leaves them.
    """
    solved = solve_simplex_qp(
        vertices.gram(),
        vertices.correlate(target),
        tolerance=tolerance,
        max_iterations=max_iterations,
    )
    return _smoothed(vertices, solved, smoothing)


def project_matrix_free(
    vertices: Vertices,
    target: PyTree,
    *,
    smoothing: float = 1.0,
    tolerance: float = 1e-2,
    max_iterations: int = 200,
) -> Projection:
    """Project `target` onto the convex hull by projected gradients: one VJP and one JVP an
    iteration.

    The paper's iteration, a ← Proj_Δ(a − Gᵀ(Ga − g̃)/L), with momentum (FISTA) that restarts when
    it points uphill, a step 1/L that adapts to ‖G·d‖² ≤ L‖d‖², and the certified stopping rule of
    `simplex_qp.py`.
    """

    def at(a: Array) -> tuple[PyTree, Array]:
        z = vertices.combine(a)
        return z, vertices.correlate(jax.tree.map(jnp.subtract, z, target))

    def step(state: _Accelerated) -> _Accelerated:
        # G is linear, so the extrapolated point needs no products of its own.
        y = state.a + state.momentum * (state.a - state.before)
        z_y = jax.tree.map(lambda z, p: z + state.momentum * (z - p), state.z, state.z_before)
        r_y = state.r + state.momentum * (state.r - state.r_before)
        a = project_onto_simplex(y - r_y / state.lipschitz)
        z, r = at(a)
        moved = a - y
        length = jnp.dot(moved, moved)
        bent = jax.tree.map(jnp.subtract, z, z_y)
        curvature = dot(bent, bent) / jnp.maximum(length, tiny(length.dtype))
        too_long = (curvature > state.lipschitz * 1.001) & (length > 0)
        uphill = jnp.dot(moved, a - state.a) < 0
        t = (1 + jnp.sqrt(1 + 4 * state.t**2)) / 2
        t = jnp.where(uphill, 1.0, t)
        momentum = jnp.where(uphill, 0.0, (state.t - 1) / t)
        accepted = _Accelerated(
            a,
            z,
            r,
            state.a,
            state.z,
            state.r,
            t,
            momentum,
            state.lipschitz,
            state.done,
            state.iterations,
        )
        retried = state._replace(lipschitz=1.1 * curvature)
        chosen: _Accelerated = jax.tree.map(
            lambda old, new: jnp.where(too_long, old, new), retried, accepted
        )
        return chosen._replace(done=finished(chosen), iterations=state.iterations + 1)

    def finished(state: _Accelerated) -> Array:
        gap, square = _certificate(state.a, state.z, state.r)
        return gap <= tolerance**2 * square

    a = vertices.uniform
    z, r = at(a)
    lipschitz = dot(z, z) / jnp.maximum(jnp.dot(a, a), tiny(a.dtype))
    lipschitz = jnp.maximum(lipschitz, float(np.finfo(a.dtype).eps) * jnp.max(jnp.abs(r)))
    lipschitz = jnp.where(lipschitz > 0, lipschitz, jnp.ones_like(lipschitz))
    one, zero = jnp.ones_like(lipschitz), jnp.zeros_like(lipschitz)
    none = jnp.zeros((), jnp.int32)
    first = _Accelerated(a, z, r, a, z, r, one, zero, lipschitz, jnp.zeros((), bool), none)
    first = first._replace(done=finished(first))
    last = lax.while_loop(lambda s: ~s.done & (s.iterations < max_iterations), step, first)
    gap, square = _certificate(last.a, last.z, last.r)
    return _smoothed(vertices, solution(last.a, last.iterations, gap, square, tolerance), smoothing)


def project_onto_span(
    vertices: Vertices, target: PyTree, *, tolerance: float = 1e-4, max_iterations: int = 200
) -> Projection:
    """Project `target` onto the linear span: least squares by conjugate gradients (CGLS).

    Stops at ‖Gᵀ(g̃ − Gu)‖ ≤ `tolerance`·‖Gᵀg̃‖, which `distance` reports (it is no bound on the
    distance to the projection: a span's small directions are found last, or never).
    """

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
    last = lax.while_loop(
        lambda s: (s.square > goal) & (s.iterations < max_iterations), step, first
    )
    distance = jnp.sqrt(last.square / jnp.maximum(start, tiny(start.dtype)))
    return Projection(last.z, last.u, last.iterations, distance, last.square <= goal)


def project_onto_simplex(v: Float[Array, " m"]) -> Float[Array, " m"]:
    """Return the point of the unit simplex nearest to v (Wang and Carreira-Perpiñán 2013)."""
    m = v.shape[0]
    descending = -jnp.sort(-v)
    ranks = jnp.arange(1, m + 1, dtype=v.dtype)
    shifts = (1.0 - jnp.cumsum(descending)) / ranks
    active = jnp.sum(descending + shifts > 0)
    return jnp.maximum(v + shifts[jnp.maximum(active - 1, 0)], 0.0)


class _Accelerated(NamedTuple):
    a: Array
    z: PyTree  # G·a
    r: Array  # Gᵀ(z − g̃)
    before: Array
    z_before: PyTree
    r_before: Array
    t: Array
    momentum: Array
    lipschitz: Array
    done: Array
    iterations: Array


class _Conjugate(NamedTuple):
    u: Array
    z: PyTree
    p: Array
    square: Array
    iterations: Array


def _certificate(a: Array, z: PyTree, r: Array) -> tuple[Array, Array]:
    return jnp.dot(a, r) - jnp.min(r), dot(z, z)


def _smoothed(vertices: Vertices, solved: QPSolution, smoothing: float) -> Projection:
    a = solved.coefficients
    if smoothing != 1.0:
        a = smoothing * a + (1.0 - smoothing) * vertices.uniform
    return Projection(vertices.combine(a), a, solved.iterations, solved.distance, solved.certified)
