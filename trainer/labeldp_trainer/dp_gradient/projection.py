"""Projecting a noisy gradient onto the hull or the span of public vertices (LabelDP-Pro, Section
3.2).

Post-processing of the noisy gradient: nothing here sees a label. All norms are over the whole
pytree.

Vertices are gradients for every label of a batch of examples (Table 1). With rows i = 1…r of
features and labels κ = 1…K, column (i, κ) of G is ∇ℓ(θ, (x_i, κ)), r·K columns in all. Table 1
projects onto the span of the columns, or onto *the convex hull of all r·K of them* (one simplex
with r·K coefficients, as in Section 3.2; one simplex per example would be a smaller set). For
regression, K = 2: the gradient is affine in the label, so all gradients of an example lie on the
segment between those of the two end labels.

Vertices are scaled like the gradients whose mean is projected; otherwise the mean may lie outside
the hull. `clip_norm` clips each vertex. Without it, vertices are raw, as in the paper's pseudocode.

The certificate of a projection onto the hull. Let z = Ga, r = Gᵀ(z − g̃) and gap(a) = a·r − min r.
The projection z* of g̃ onto the hull satisfies ⟨z* − g̃, z − z*⟩ ≥ 0. As z* is a convex combination
of vertices, ⟨z − g̃, z − z*⟩ ≤ max_v ⟨z − g̃, z − v⟩ = a·r − min r. Subtracting, ‖z − z*‖² ≤ gap(a).
So gap(a) ≤ τ²‖z‖² certifies ‖z − z*‖ ≤ τ‖z‖, however a was found.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int, PyTree, Real, Shaped

from labeldp_trainer.dp_gradient.integer_sums import (
    Loss,
    dot,
    flat,
    in_microbatches,
    norm,
    tiny,
    unflat,
    zeros_like_sum,
)

_GRADIENTS = 10  # computed at a time on a CPU, so that intermediate results fit its cache


@dataclass(frozen=True)
class HullRows:
    """Which examples span the hull, and how their vertices are scaled.

    Rows whose `mask` is false are left out.
    """

    x: PyTree[Shaped[Array, "r ..."]]
    labels: Real[Array, " K"]
    mask: Bool[Array, " r"]
    clip_norm: float | None = None


@dataclass(frozen=True)
class Materialised:
    """G in memory: m = r·K gradients, each with its leaves side by side.

    `like`: a pytree with the shapes of the leaves.
    """

    gradients: Float[Array, "m _"]
    like: PyTree
    uniform: Float[Array, " m"]
    """Coefficients of the hull's centre: equal for all rows that are used."""

    def combine(self, coefficients: Float[Array, " m"]) -> PyTree:
        """Return G·a, a pytree like params, for coefficients a."""
        return unflat(coefficients.astype(self.gradients.dtype) @ self.gradients, self.like)

    def correlate(self, vector: PyTree) -> Float[Array, " m"]:
        """Return Gᵀ·v for a pytree v like params."""
        return self.gradients @ flat(vector).astype(self.gradients.dtype)

    def gram(self) -> Float[Array, "m m"]:
        """Return H = GᵀG."""
        return self.gradients @ self.gradients.T


@dataclass(frozen=True)
class MatrixFree:
    """G as two functions (Appendix C): G·a by a VJP, Gᵀ·v by a JVP. Needs memory for one
    gradient."""

    loss: Loss
    params: PyTree
    x: PyTree[Shaped[Array, "r ..."]]
    labels: Real[Array, " K"]
    weights: Float[Array, "r K"]
    uniform: Float[Array, " m"]
    microbatch: int
    """Rows at a time, so that intermediate results fit a CPU's cache."""

    def combine(self, coefficients: Float[Array, " m"]) -> PyTree:
        """Return G·a, a pytree like params, for coefficients a: the gradient of a weighted loss."""
        weights = self.weights * coefficients.reshape(self.weights.shape)
        rows = weights.shape[0]
        parts = in_microbatches((self.x, weights, jnp.ones(rows, bool)), rows, self.microbatch)

        def body(total: PyTree, part: tuple[PyTree, Array, Array]) -> tuple[PyTree, None]:
            x, weights, kept = part
            _, pull = jax.vjp(lambda params: self._losses(params, x), self.params)
            (gradient,) = pull(jnp.where(kept[:, None], weights, jnp.zeros_like(weights)))
            return jax.tree.map(jnp.add, total, gradient), None

        return lax.scan(body, zeros_like_sum(self.params), parts)[0]

    def correlate(self, vector: PyTree) -> Float[Array, " m"]:
        """Return Gᵀ·v for a pytree v like params."""
        tangent = jax.tree.map(lambda v, p: v.astype(p.dtype), vector, self.params)

        def products(x: PyTree) -> Array:
            along: Array = jax.jvp(lambda p: self._losses(p, x), (self.params,), (tangent,))[1]
            return along

        parts = in_microbatches(self.x, self.weights.shape[0], self.microbatch)
        slopes: Array = lax.map(products, parts)
        slopes = slopes.reshape(-1, slopes.shape[-1])[: self.weights.shape[0]]
        weighted: Array = self.weights * slopes
        return weighted.reshape(-1)

    def _losses(self, params: PyTree, x: PyTree) -> Array:
        # The network does not depend on the label, so vmap over labels computes it once.
        of_example = jax.vmap(self.loss, (None, None, 0))
        losses: Array = jax.vmap(of_example, (None, 0, None))(params, x, self.labels)
        return losses


Vertices = Materialised | MatrixFree


def materialise(loss: Loss, params: PyTree, rows: HullRows) -> Materialised:
    """Compute all vertices by reverse mode, for the rows that `_used` selects."""

    def of_example(xi: PyTree) -> tuple[Array, Array]:
        gradients = _gradients(loss, params, xi, rows.labels)
        return jax.vmap(flat)(gradients), jax.vmap(norm)(gradients)

    on_cpu = jax.default_backend() == "cpu"
    size = max(_GRADIENTS // len(rows.labels), 1) if on_cpu else len(rows.mask)
    vertices, norms = lax.map(of_example, rows.x, batch_size=size)
    source, weights, uniform = _used(rows, norms)
    weights, taken = weights[..., None], vertices[source]
    # Select, do not multiply: zero times infinity would be NaN.
    kept = jnp.where(weights == 0, jnp.zeros_like(taken), taken * weights)
    return Materialised(kept.reshape(weights.size, taken.shape[2]), params, uniform)


def matrix_free(
    loss: Loss,
    params: PyTree,
    rows: HullRows,
    *,
    microbatch: int,
    norms: Float[Array, "r K"] | None = None,
) -> MatrixFree:
    """Prepare the two products. One pass, `microbatch` rows at a time, finds the norms and which
    rows are finite, unless `norms` are given; `_used` selects the rows.
    """
    if norms is None:
        norms = _norms(loss, params, rows, params, microbatch)
    source, weights, uniform = _used(rows, norms)
    x = jax.tree.map(lambda leaf: leaf[source], rows.x)
    return MatrixFree(loss, params, x, rows.labels, weights, uniform, microbatch)


def least_norms(
    loss: Loss, params: PyTree, rows: HullRows, *, microbatch: int
) -> Float[Array, "r K"]:
    """Return lower bounds of the norms of all gradients: those of their matrices.

    Weights of dense layers are matrices, those of convolutions are not; in the published networks
    they come last, so their gradients need no pass back through a convolution.
    """
    matrices = jax.tree.map(lambda leaf: leaf if leaf.ndim == 2 else None, params)
    return _norms(loss, params, rows, matrices, microbatch)


def _norms(loss: Loss, params: PyTree, rows: HullRows, part: PyTree, microbatch: int) -> Array:
    """The norms of the gradients by the leaves in `part`, which has None for the others."""
    leaves, structure = jax.tree.flatten(part, is_leaf=lambda leaf: leaf is None)
    rest = jax.tree.leaves(params)
    chosen = [leaf for leaf in leaves if leaf is not None]

    def partial_loss(chosen: list[Array], x: PyTree, label: Array) -> Array:
        left = iter(chosen)
        merged = [
            other if leaf is None else next(left) for leaf, other in zip(leaves, rest, strict=True)
        ]
        return loss(jax.tree.unflatten(structure, merged), x, label)

    def of_example(x: PyTree) -> Array:
        if not chosen:
            values = jax.vmap(lambda label: loss(params, x, label))(rows.labels)
            return jnp.where(jnp.isfinite(values), jnp.zeros_like(values), values)
        return jax.vmap(norm)(_gradients(partial_loss, chosen, x, rows.labels))

    norms: Array = lax.map(of_example, rows.x, batch_size=microbatch)
    return norms


def gradient_vectors(
    loss: Loss, params: PyTree, x: PyTree[Shaped[Array, "n ..."]], labels: Real[Array, " n"]
) -> Float[Array, "n _"]:
    """Return the gradient of each example, its leaves side by side."""
    size = _GRADIENTS if jax.default_backend() == "cpu" else len(labels)
    gradients: Array = lax.map(
        lambda example: flat(jax.grad(loss)(params, *example)), (x, labels), batch_size=size
    )
    return gradients


def _gradients(loss: Loss, params: PyTree, x: PyTree, labels: Array) -> PyTree:
    return jax.vmap(lambda label: jax.grad(loss)(params, x, label))(labels)


def _used(rows: HullRows, norms: Float[Array, "r K"]) -> tuple[Array, Array, Array]:
    """Return the row that replaces each row, the factors of its vertices, and `uniform`.

    Rows that are left out, or have a gradient with an infinite or NaN entry, become copies of the
    first usable row: a repeated vertex changes neither hull nor span. If no row is usable, all
    vertices are zero.
    """
    usable = rows.mask & jnp.all(jnp.isfinite(norms), axis=1)
    own = jnp.arange(usable.shape[0], dtype=jnp.int32)
    source = jnp.where(usable, own, jnp.argmax(usable).astype(jnp.int32))
    weights = jnp.ones_like(norms)
    if rows.clip_norm is not None:
        weights = jnp.where(norms > rows.clip_norm, rows.clip_norm / norms, weights)
    weights = jnp.where(jnp.any(usable), weights[source], jnp.zeros_like(norms))
    kept = jnp.broadcast_to(usable[:, None], norms.shape).astype(norms.dtype)
    uniform = (kept / jnp.maximum(jnp.sum(kept), jnp.ones((), kept.dtype))).reshape(-1)
    return source, weights, uniform


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
