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

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, PyTree, Real, Shaped

from labeldp_trainer.dp_gradient.outer_products import LossProgram
from labeldp_trainer.dp_gradient.tree import Loss, at_least_float32, norm, total

_GRADIENTS = 10  # computed at a time on a CPU, whose cache then holds what is on the way
_BLOCKS = 4  # of rows of the Gram matrix: 5/8 of the products of all rows with all


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


class Outer(NamedTuple):
    """Rows of G for a dense layer's weights: vertex (i, κ) is inputs_i ⊗ slopes_iκ.

    Inputs have norm one (or are zero). `swapped`: it is slopes_iκ ⊗ inputs_i.
    """

    inputs: Float[Array, "r p"]
    slopes: Float[Array, "m q"]
    swapped: bool


@dataclass(frozen=True)
class Materialised:
    """G in memory, at most that of m = r·K gradients.

    `dense`: the leaves that are multiplied out, side by side; `outer`: the others, by index of the
    leaf (`outer_products.py`); `like`: shapes and types of all leaves.
    """

    dense: Float[Array, "m _"]
    outer: Mapping[int, Outer]
    structure: jax.tree_util.PyTreeDef
    like: tuple[jax.ShapeDtypeStruct, ...]
    rows: int
    uniform: Float[Array, " m"]
    """Coefficients of the hull's centre: equal for all rows that are not left out."""

    def combine(self, coefficients: Float[Array, " m"]) -> PyTree:
        """Return G·a, a pytree like params, for coefficients a."""
        row = coefficients.astype(self.dense.dtype) @ self.dense
        leaves, start = [], 0
        for i, leaf in enumerate(self.like):
            if i in self.outer:
                value = _weighted_outer(self.outer[i], coefficients)
            else:
                value, start = row[start : start + leaf.size], start + leaf.size
            leaves.append(value.reshape(leaf.shape).astype(leaf.dtype))
        return jax.tree.unflatten(self.structure, leaves)

    def correlate(self, vector: PyTree) -> Float[Array, " m"]:
        """Return Gᵀ·v for a pytree v like params."""
        leaves = [leaf.astype(self.dense.dtype) for leaf in jax.tree.leaves(vector)]
        parts = [leaf.reshape(-1) for i, leaf in enumerate(leaves) if i not in self.outer]
        products = [self.dense @ jnp.concatenate(parts)] if parts else []
        return total(products + [_products(o, leaves[i]) for i, o in self.outer.items()])

    def gram(self) -> Float[Array, "m m"]:
        """Return H = GᵀG; of the blocks right of the diagonal, each is the left one's mirror."""
        m = self.uniform.shape[0]
        labels = m // self.rows
        edges = [labels * round(m // labels * i / _BLOCKS) for i in range(_BLOCKS + 1)]
        spans = [span for span in pairwise(edges) if span[0] < span[1]]
        lower = [self._gram_rows(*span) for span in spans]
        mirrored = [
            jnp.concatenate([left, *(below[:, low:high].T for below in lower[i + 1 :])], axis=1)
            for i, (left, (low, high)) in enumerate(zip(lower, spans, strict=True))
        ]
        return jnp.concatenate(mirrored)

    def _gram_rows(self, low: int, high: int) -> Array:
        """Rows `low` to `high` of H, up to the diagonal's block."""
        parts = [self.dense[low:high] @ self.dense[:high].T]
        for inputs, slopes, _ in self.outer.values():
            labels = slopes.shape[0] // inputs.shape[0]
            first, last = low // labels, high // labels
            of_inputs = inputs[first:last] @ inputs[:last].T
            of_slopes = slopes[low:high] @ slopes[:high].T
            shape = (last - first, labels, last, labels)
            product = of_slopes.reshape(shape) * of_inputs[:, None, :, None]
            parts.append(product.reshape(of_slopes.shape))
        return total(parts)


def _weighted_outer(outer: Outer, coefficients: Array) -> Array:
    rows = outer.inputs.shape[0]
    weighted = coefficients[:, None].astype(outer.slopes.dtype) * outer.slopes
    slopes = jnp.sum(weighted.reshape(rows, -1, outer.slopes.shape[1]), axis=1)
    return slopes.T @ outer.inputs if outer.swapped else outer.inputs.T @ slopes


def _products(outer: Outer, leaf: Array) -> Array:
    inputs, slopes, swapped = outer
    images = inputs @ (leaf.T if swapped else leaf)
    of_rows = slopes.reshape(inputs.shape[0], -1, slopes.shape[1]) * images[:, None, :]
    products: Array = jnp.sum(of_rows, axis=2).reshape(-1)
    return products


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

    It is less where weights of dense layers are not multiplied out. Where that does not fit, use
    `matrix_free`.
    """
    vertices = rows * labels
    return 4 * vertices * (vertices + size)


def materialise(loss: Loss, params: PyTree, rows: HullRows) -> Materialised:
    """Compute all vertices by reverse mode.

    Rows that are left out, or have a gradient with an infinite or NaN entry, become copies of the
    first usable row: a repeated vertex changes neither hull nor span. Without any usable row all
    are zero.
    """
    count, labels = rows.mask.shape[0], rows.labels.shape[0]
    leaves, structure = jax.tree.flatten(params)
    like = tuple(jax.eval_shape(at_least_float32, leaf) for leaf in leaves)
    dtype = jnp.result_type(*(leaf.dtype for leaf in like))
    first = jax.tree.map(lambda leaf: leaf[0], rows.x)
    program = LossProgram(loss, params, first, rows.labels[0])

    def of_example(xi: PyTree) -> tuple[Array, list[Array], list[Array], Array]:
        found = program.gradients(xi, rows.labels)
        whole = [g.astype(dtype) for g in found.whole]
        dense = jnp.concatenate(whole, axis=1) if whole else jnp.zeros((labels, 0), dtype)
        lengths = [norm(v.astype(dtype)) for v in found.inputs]
        inputs = [
            _direction(v.astype(dtype), n) for v, n in zip(found.inputs, lengths, strict=True)
        ]
        slopes = [s.astype(dtype) * n for s, n in zip(found.slopes, lengths, strict=True)]
        return dense, inputs, slopes, jax.vmap(norm)([dense, *slopes])

    size = _at_a_time(count, labels)
    dense, inputs, slopes, norms = lax.map(of_example, rows.x, batch_size=size)
    usable = rows.mask & jnp.all(jnp.isfinite(norms), axis=1)
    source = _sources(usable)
    weights = jnp.where(jnp.any(usable), _weights(rows, norms)[source], jnp.zeros_like(norms))

    def scaled(vertices: Array) -> Array:
        taken = vertices[source]
        # A choice, not a product: zero times infinity would be NaN.
        kept = jnp.where(weights[..., None] == 0, jnp.zeros_like(taken), taken * weights[..., None])
        return kept.reshape(weights.size, taken.shape[2])

    return Materialised(
        scaled(dense),
        {
            use.leaf: Outer(
                jnp.where(jnp.any(usable), v[source], jnp.zeros_like(v)), scaled(s), use.swapped
            )
            for use, v, s in zip(program.outer, inputs, slopes, strict=True)
        },
        structure,
        like,
        count,
        _uniform(usable, weights),
    )


def _direction(vector: Array, length: Array) -> Array:
    return jnp.where(length > 0, vector / jnp.where(length > 0, length, 1.0), 0.0)


def _at_a_time(rows: int, labels: int) -> int:
    """Return how many examples' gradients are computed at a time: a divisor of `rows`."""
    if jax.default_backend() != "cpu":
        return rows
    most = max(_GRADIENTS // labels, 1)
    return max(size for size in range(1, min(most, rows) + 1) if rows % size == 0)


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
