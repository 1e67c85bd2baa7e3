"""min ½aᵀHa − bᵀa over the unit simplex, under jit, with a certificate of the distance to the
optimum.

The certificate. Let z = Ga, H = GᵀG, b = Gᵀg̃, r = Ha − b and gap(a) = a·r − min r. The projection
z* of g̃ onto the hull satisfies ⟨z* − g̃, z − z*⟩ ≥ 0. As z* is a convex combination of vertices,
⟨z − g̃, z − z*⟩ ≤ max_v ⟨z − g̃, z − v⟩ = a·r − min r. Subtracting, ‖z − z*‖² ≤ gap(a). So gap(a)
≤ τ²·aᵀHa = τ²‖z‖² certifies ‖z − z*‖ ≤ τ‖z‖, whichever way a was found.

Far from the hull the optimum has few vertices, and pairwise steps (Frank–Wolfe) find them without
any factorization. Where they take too long an interior-point method goes on.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from labeldp_trainer.dp_gradient.tree import tiny


class QPSolution(NamedTuple):
    """`coefficients` in the simplex; `distance` bounds ‖z − z*‖/‖z‖; both certified by the gap."""

    coefficients: Float[Array, " m"]
    iterations: Int[Array, ""]
    distance: Float[Array, ""]
    certified: Bool[Array, ""]


def solve_simplex_qp(
    gram: Float[Array, "m m"],
    linear: Float[Array, " m"],
    *,
    tolerance: float,
    max_iterations: int,
    pairwise_steps: int | None = None,
) -> QPSolution:
    """Solve min ½aᵀHa − bᵀa over the simplex: gram H positive semidefinite, linear b.

    Stops at gap ≤ `tolerance`²·aᵀHa; `certified` says whether it got there within
    `pairwise_steps` of a few passes over m numbers each, and then `max_iterations` of an
    interior-point method, which takes 10 to 30 Cholesky factorizations. `pairwise_steps` None: 8 a
    vertex on a CPU; elsewhere none, for they are short and after each other. The iterations are
    those of both.
    """
    if pairwise_steps is None:
        pairwise_steps = 8 * linear.shape[0] if jax.default_backend() == "cpu" else 0
    # The solution depends on differences of r only, so bring their size near one.
    unit = jnp.maximum(jnp.max(jnp.abs(linear)), jnp.max(jnp.diagonal(gram)))
    unit = jnp.where(unit > 0, unit, jnp.ones_like(unit))
    h, b = gram / unit, linear / unit
    found = _Best(jnp.full_like(linear, 1 / linear.shape[0]), jnp.zeros((), jnp.int32))
    if pairwise_steps > 0:
        found = _pairwise(h, b, tolerance, pairwise_steps)
    found = _interior_point(h, b, found, tolerance, max_iterations)
    gap, square = _gap(gram, linear, found.a)
    return solution(found.a, found.iterations, gap, square, tolerance)


def solution(
    coefficients: Float[Array, " m"],
    iterations: Int[Array, ""],
    gap: Float[Array, ""],
    square: Float[Array, ""],
    tolerance: float,
) -> QPSolution:
    """Turn a gap and ‖z‖² into the certificate of the module's docstring."""
    distance = jnp.sqrt(jnp.maximum(gap, 0.0) / jnp.maximum(square, tiny(square.dtype)))
    return QPSolution(coefficients, iterations, distance, gap <= tolerance**2 * square)


def _gap(gram: Array, linear: Array, a: Array) -> tuple[Array, Array]:
    product = gram @ a
    slope = product - linear
    return jnp.dot(a, slope) - jnp.min(slope), jnp.dot(a, product)


class _Best(NamedTuple):
    a: Array  # in the simplex
    iterations: Array


class _Pairwise(NamedTuple):
    a: Array
    r: Array  # Ha − b, kept up to date
    done: Array
    iterations: Array


def _pairwise(gram: Array, linear: Array, tolerance: float, most: int) -> _Best:
    """Move weight from one vertex to another, as far as is best.

    The vertex that gains has the least slope; the one that loses, of those with weight, lets the
    objective fall most along the line between them (Fan, Chen and Lin 2005, for support vectors).
    Starts at the best single vertex.
    """
    eps = float(np.finfo(gram.dtype).eps)
    squares = jnp.diagonal(gram)
    least_bend = eps * jnp.max(squares)
    indices = jnp.arange(linear.shape[0], dtype=jnp.int32)
    goal = (0.99 * tolerance) ** 2  # r is rounded in every step

    def where_least(values: Array) -> tuple[Array, Array]:
        # argmin keeps pairs of value and index, and takes several times as long.
        least = jnp.min(values)
        return least, jnp.min(jnp.where(values <= least, indices, indices[-1]))

    def step(state: _Pairwise) -> _Pairwise:
        a, r = state.a, state.r
        least, gains = where_least(r)
        gap, square = jnp.dot(a, r) - least, jnp.dot(a, r + linear)
        row = gram[gains]
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
            jnp.where(done, r, r + length * (row - gram[loses])),
            done,
            state.iterations + 1,
        )

    _, start = where_least(0.5 * squares - linear)
    first = _Pairwise(
        jnp.where(indices == start, jnp.ones_like(linear), jnp.zeros_like(linear)),
        gram[start] - linear,
        jnp.zeros((), bool),
        jnp.zeros((), jnp.int32),
    )
    last = lax.while_loop(lambda s: ~s.done & (s.iterations < most), step, first)
    return _Best(last.a / jnp.sum(last.a), last.iterations)


class _Interior(NamedTuple):
    a: Array  # > 0, sums to one
    s: Array  # multipliers of a ≥ 0
    nu: Array
    best: Array  # the iterate with the least gap so far
    gap: Array
    done: Array
    iterations: Array


def _interior_point(h: Array, b: Array, given: _Best, tolerance: float, most: int) -> _Best:
    """Mehrotra's predictor-corrector on Ha − b − s + ν1 = 0, 1ᵀa = 1, a·s = 0, a, s ≥ 0.

    Returns what is `given` if that is certified, or better than all iterates.
    """
    m = b.shape[0]
    ones = jnp.ones_like(b)
    ridge = float(np.finfo(h.dtype).eps) * jnp.max(jnp.diagonal(h))

    def step(state: _Interior) -> _Interior:
        a, s = state.a, state.s
        mu = jnp.dot(a, s) / m
        dual = h @ a - b - s + state.nu
        factor = jax.scipy.linalg.cho_factor(h + jnp.diag(ridge + s / a))
        of_ones = jax.scipy.linalg.cho_solve(factor, ones)

        def direction(target: Array) -> tuple[Array, Array, Array]:
            # target is what a·Δs + s·Δa shall be.
            plain = jax.scipy.linalg.cho_solve(factor, target / a - dual)
            dnu = (jnp.sum(plain) - (1.0 - jnp.sum(a))) / jnp.sum(of_ones)
            da = plain - of_ones * dnu
            return da, (target - s * da) / a, dnu

        da, ds, _ = direction(-a * s)
        primal, dual_step = _largest_step(a, da), _largest_step(s, ds)
        after = jnp.dot(a + primal * da, s + dual_step * ds) / m
        centring = (after / mu) ** 3
        da, ds, dnu = direction(centring * mu - a * s - da * ds)
        # One common length: H couples a and s.
        length = 0.99 * jnp.minimum(_largest_step(a, da), _largest_step(s, ds))
        length = jnp.minimum(length, 1.0)
        a, s, nu = a + length * da, s + length * ds, state.nu + length * dnu
        feasible = jnp.maximum(a, 0.0) / jnp.sum(jnp.maximum(a, 0.0))
        gap, square = _gap(h, b, feasible)
        sound = jnp.isfinite(gap) & jnp.all(a > 0) & jnp.all(s > 0)
        better = sound & (gap < state.gap)
        done = ~sound | (gap <= tolerance**2 * square)
        return _Interior(
            a,
            s,
            nu,
            jnp.where(better, feasible, state.best),
            jnp.where(better, gap, state.gap),
            done,
            state.iterations + 1,
        )

    a = ones / m
    slope = h @ a - b
    nu = -jnp.min(slope) + jnp.maximum(jnp.max(slope) - jnp.min(slope), 1e-3)
    gap, square = _gap(h, b, given.a)
    first = _Interior(
        a, slope + nu, nu, given.a, gap, gap <= tolerance**2 * square, jnp.zeros((), jnp.int32)
    )
    last = lax.while_loop(lambda s: ~s.done & (s.iterations < most), step, first)
    return _Best(last.best, given.iterations + last.iterations)


def _largest_step(value: Array, change: Array) -> Array:
    """Return the largest t ≤ 1 (about) with value + t·change ≥ 0."""
    ratios = jnp.where(change < 0, -value / jnp.where(change < 0, change, -1.0), jnp.inf)
    return jnp.minimum(jnp.min(ratios), 1.0)
