"""The vertices of the denoisers: gradients for every label of a batch of examples (LabelDP-Pro,
Table 1).

With rows i = 1…r of features and labels κ = 1…K, column (i, κ) of G is ∇ℓ(θ, (x_i, κ)), r·K
columns in all. Table 1 projects onto the span of the columns, or onto *the convex hull of all r·K
of them* (one simplex with r·K coefficients, as in Section 3.2: not one simplex an example, which
would be a smaller set). For regression K = 2: the gradient is affine in the label, so an example's
gradients are the segment between its two end-label gradients.

Vertices are scaled like the gradients whose mean is projected, else the mean need not lie in the
hull: `clip_norm` clips each vertex; `scales` multiplies those of row i by s_i (label-free
clipping); with neither, they are raw, as in the paper's pseudocode.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, PyTree, Real, Shaped

from labeldp_trainer.dp_gradient.tree import Loss, at_least_float32, norm, total


@dataclass(frozen=True)
class HullRows:
    """Which examples span the hull, and how their vertices are scaled.

    Rows whose `mask` is false are left out.
    """

    x: PyTree[Shaped[Array, "r ..."]]
    labels: Real[Array, " K"]
    mask: Bool[Array, " r"]
    clip_norm: float | None = None
    scales: Float[Array, " r"] | None = None


@dataclass(frozen=True)
class Materialised:
    """G as one array a leaf: the memory is that of m = r·K gradients."""

    leaves: tuple[Float[Array, "m _"], ...]
    structure: jax.tree_util.PyTreeDef
    shapes: tuple[tuple[int, ...], ...]
    uniform: Float[Array, " m"]
    """Coefficients of the hull's centre: equal for all rows that are not left out."""

    def combine(self, coefficients: Float[Array, " m"]) -> PyTree:
        """Return G·a, a pytree like params, for coefficients a."""
        leaves = [
            (coefficients.astype(leaf.dtype) @ leaf).reshape(shape)
            for leaf, shape in zip(self.leaves, self.shapes, strict=True)
        ]
        return jax.tree.unflatten(self.structure, leaves)

    def correlate(self, vector: PyTree) -> Float[Array, " m"]:
        """Return Gᵀ·v for a pytree v like params."""
        vectors = jax.tree.leaves(vector)
        return total([m @ v.reshape(-1) for m, v in zip(self.leaves, vectors, strict=True)])

    def gram(self) -> Float[Array, "m m"]:
        """Return H = GᵀG, accumulated leaf by leaf."""
        return total([leaf @ leaf.T for leaf in self.leaves])


@dataclass(frozen=True)
class MatrixFree:
    """G as two functions (Appendix C): G·a by a VJP, Gᵀ·v by a JVP; the memory of one gradient."""

    loss: Loss
    params: PyTree
    x: PyTree[Shaped[Array, "r ..."]]
    labels: Real[Array, " K"]
    weights: Float[Array, "r K"]
    uniform: Float[Array, " m"]

    def combine(self, coefficients: Float[Array, " m"]) -> PyTree:
        """Return G·a, a pytree like params, for coefficients a: the gradient of a weighted loss."""
        weights = self.weights * coefficients.reshape(self.weights.shape)
        _, pull = jax.vjp(self._losses, self.params)
        (gradient,) = pull(weights)
        return gradient

    def correlate(self, vector: PyTree) -> Float[Array, " m"]:
        """Return Gᵀ·v for a pytree v like params."""
        tangent = jax.tree.map(lambda v, p: v.astype(p.dtype), vector, self.params)
        _, products = jax.jvp(self._losses, (self.params,), (tangent,))
        weighted: Array = self.weights * products
        return weighted.reshape(-1)

    def _losses(self, params: PyTree) -> Array:
        # Work that does not depend on the label (the network) is not repeated for every label:
        # vmap leaves what is not mapped alone.
        of_example = jax.vmap(self.loss, (None, None, 0))
        losses: Array = jax.vmap(of_example, (None, 0, None))(params, self.x, self.labels)
        return losses


Vertices = Materialised | MatrixFree


def gram_bytes(rows: int, labels: int, size: int) -> int:
    """Return the memory of `materialise` and its Gram matrix in float32, for `size` parameters.

    Where that does not fit, use `matrix_free`.
    """
    vertices = rows * labels
    return 4 * vertices * (vertices + size)


def materialise(loss: Loss, params: PyTree, rows: HullRows) -> Materialised:
    """Compute all vertices by reverse mode.

    Rows that are left out, or have a gradient with an infinite or NaN entry, become copies of the
    first usable row: a repeated vertex changes neither hull nor span. Without any usable row all
    are zero.
    """
    gradients = jax.vmap(lambda xi: _gradients(loss, params, xi, rows.labels))(rows.x)
    gradients = jax.tree.map(at_least_float32, gradients)
    norms = jax.vmap(jax.vmap(norm))(gradients)
    usable = rows.mask & jnp.all(jnp.isfinite(norms), axis=1)
    source = _sources(usable)
    weights = _weights(rows, norms)[source]
    some = jnp.any(usable)

    def scaled(leaf: Array) -> Array:
        size = math.prod(leaf.shape[2:])  # not -1: a leaf may be empty
        taken = leaf[source].reshape(*weights.shape, size)
        vertices = taken * weights[..., None].astype(leaf.dtype)
        return jnp.where(some, vertices, jnp.zeros_like(vertices)).reshape(weights.size, size)

    leaves, structure = jax.tree.flatten(params)
    return Materialised(
        tuple(scaled(leaf) for leaf in jax.tree.leaves(gradients)),
        structure,
        tuple(leaf.shape for leaf in leaves),
        _uniform(usable, weights),
    )


def matrix_free(loss: Loss, params: PyTree, rows: HullRows, *, microbatch: int) -> MatrixFree:
    """Prepare the two products; norms and finiteness come from one pass, `microbatch` rows at a
    time.

    Rows that are left out are replaced as in `materialise`.
    """

    def norms_of(xi: PyTree) -> Array:
        return jax.vmap(norm)(_gradients(loss, params, xi, rows.labels))

    norms = lax.map(norms_of, rows.x, batch_size=microbatch)
    usable = rows.mask & jnp.all(jnp.isfinite(norms), axis=1)
    source = _sources(usable)
    weights = jnp.where(jnp.any(usable), _weights(rows, norms)[source], jnp.zeros_like(norms))
    x = jax.tree.map(lambda leaf: leaf[source], rows.x)
    return MatrixFree(loss, params, x, rows.labels, weights, _uniform(usable, weights))


def _gradients(loss: Loss, params: PyTree, x: PyTree, labels: Array) -> PyTree:
    return jax.vmap(lambda label: jax.grad(loss)(params, x, label))(labels)


def _sources(usable: Array) -> Array:
    own = jnp.arange(usable.shape[0], dtype=jnp.int32)
    return jnp.where(usable, own, jnp.argmax(usable).astype(jnp.int32))


def _weights(rows: HullRows, norms: Array) -> Array:
    if rows.scales is not None:
        return jnp.broadcast_to(rows.scales[:, None].astype(norms.dtype), norms.shape)
    if rows.clip_norm is None:
        return jnp.ones_like(norms)
    return jnp.where(norms > rows.clip_norm, rows.clip_norm / norms, jnp.ones_like(norms))


def _uniform(usable: Array, weights: Array) -> Array:
    kept = jnp.broadcast_to(usable[:, None], weights.shape).astype(weights.dtype)
    return (kept / jnp.maximum(jnp.sum(kept), jnp.ones((), kept.dtype))).reshape(-1)
