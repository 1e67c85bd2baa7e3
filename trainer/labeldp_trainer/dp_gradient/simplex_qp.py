"""min ½aᵀHa − bᵀa over the unit simplex, under jit, with a certificate of the distance to the
optimum.

The certificate. Let z = Ga, H = GᵀG, b = Gᵀg̃, r = Ha − b and gap(a) = a·r − min r. The projection
z* of g̃ onto the hull satisfies ⟨z* − g̃, z − z*⟩ ≥ 0. As z* is a convex combination of vertices,
⟨z − g̃, z − z*⟩ ≤ max_v ⟨z − g̃, z − v⟩ = a·r − min r. Subtracting, ‖z − z*‖² ≤ gap(a). So gap(a)
≤ τ²·aᵀHa = τ²‖z‖² certifies ‖z − z*‖ ≤ τ‖z‖, whichever way a was found.
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
    gram: Float[Array, "m m"], linear: Float[Array, " m"], *, tolerance: float, max_iterations: int
) -> QPSolution:
    """Solve min ½aᵀHa − bᵀa over the simplex: gram H positive semidefinite, linear b.

    Stops at gap ≤ `tolerance`²·aᵀHa; `certified` says whether it got there within
    `max_iterations`: an interior-point method takes 10 to 30 Cholesky factorizations.
    """
    coefficients, iterations = _interior_point(gram, linear, tolerance, max_iterations)
    gap, square = _gap(gram, linear, coefficients)
    return solution(coefficients, iterations, gap, square, tolerance)


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


class _Interior(NamedTuple):
    a: Array  # > 0, sums to one
    s: Array  # multipliers of a ≥ 0
    nu: Array
    best: Array  # the iterate with the least gap so far
    gap: Array
    done: Array
    iterations: Array


def _interior_point(
    gram: Array, linear: Array, tolerance: float, max_iterations: int
) -> tuple[Array, Array]:
    """Mehrotra's predictor-corrector on Ha − b − s + ν1 = 0, 1ᵀa = 1, a·s = 0, a, s ≥ 0."""
    m = linear.shape[0]
    ones = jnp.ones_like(linear)
    # The solution depends on differences of r only, so bring their size near one.
    unit = jnp.maximum(jnp.max(jnp.abs(linear)), jnp.max(jnp.diagonal(gram)))
    unit = jnp.where(unit > 0, unit, jnp.ones_like(unit))
    h, b = gram / unit, linear / unit
    ridge = float(np.finfo(gram.dtype).eps) * jnp.max(jnp.diagonal(h))

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
    gap, square = _gap(h, b, a)
    first = _Interior(
        a, slope + nu, nu, a, gap, gap <= tolerance**2 * square, jnp.zeros((), jnp.int32)
    )
    last = lax.while_loop(lambda s: ~s.done & (s.iterations < max_iterations), step, first)
    return last.best, last.iterations


def _largest_step(value: Array, change: Array) -> Array:
    """Return the largest t ≤ 1 (about) with value + t·change ≥ 0."""
    ratios = jnp.where(change < 0, -value / jnp.where(change < 0, change, -1.0), jnp.inf)
    return jnp.minimum(jnp.min(ratios), 1.0)
