"""Sums of per-example vectors, each clipped and rounded to integers (Theorem 7).

Labels are used for nothing else. A unit is what one substitution changes: an example, or a user
(`tree.py`).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Int64, PyTree, Real, Shaped

from labeldp_trainer.dp_gradient.lattice import NoiseLattice, add_rows, zeros

Split = Callable[[PyTree], PyTree]
"""Inside jit: spreads the rows of arrays [rows, …] over devices, without changing a value."""
UnitVector = Callable[[PyTree, PyTree, Real[Array, "..."]], PyTree]
"""`vector(params, x, y)` of one unit, a pytree like params: `jax.grad(loss)`, for instance."""


def whole(tree: PyTree) -> PyTree:
    """Leave rows where they are."""
    return tree


def clipped_sum(
    vector: UnitVector,
    params: PyTree,
    x: PyTree[Shaped[Array, "b ..."]],
    y: Real[Array, "b ..."],
    mask: Bool[Array, " b"],
    *,
    lattice: NoiseLattice,
    microbatch: int,
    split: Split = whole,
) -> Int64[Array, " d"]:
    """Return Σ over masked rows of `vector(params, x_i, y_i)`, each clipped to C and rounded to the
    lattice (Algorithm 1, line 4): integers of length at most L for any vector.

    The norm is over the whole pytree. A vector with an infinite or NaN entry counts as zero. Rows
    are processed `microbatch` at a time, each microbatch `split` over the devices. So memory holds
    `microbatch` gradients. The number of microbatches does not depend on the mask: a step takes the
    same time for every batch.
    """

    def body(total: Array, part: tuple[PyTree, Array, Array]) -> tuple[Array, None]:
        xs, ys, kept = split(part)
        rows = jax.vmap(lambda xi, yi: lattice.integers(vector(params, xi, yi)))(xs, ys)
        return add_rows(total, rows, kept), None

    parts = in_microbatches((x, y, mask), mask.shape[0], microbatch)
    total: Array = lax.scan(body, zeros(params), parts)[0]
    return total


def in_microbatches(
    tree: PyTree[Shaped[Array, "b ..."]], rows: int, microbatch: int
) -> PyTree[Shaped[Array, "parts size ..."]]:
    """Cut the `rows` of every leaf into parts of at most `microbatch`.

    Copies of the first row fill up the last part. A boolean leaf is a mask; it is false for these
    copies.
    """
    size = min(microbatch, rows)
    missing = -rows % size

    def split(leaf: Array) -> Array:
        filler = jnp.broadcast_to(leaf[:1], (missing, *leaf.shape[1:]))
        if leaf.dtype == jnp.bool_:
            filler = jnp.zeros_like(filler)
        # Not -1, which fails if a leaf is empty.
        parts = (rows + missing) // size
        return jnp.concatenate([leaf, filler]).reshape(parts, size, *leaf.shape[1:])

    return jax.tree.map(split, tree)
