"""Sums of per-example vectors, each clipped: the only thing that labels may enter (Theorem 7).

A unit is whatever one substitution changes: an example, or a user (`sampling.py`).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, PyTree, Real, Shaped

from labeldp_trainer.dp_gradient.tree import Loss, clip, zeros_like_sum

Split = Callable[[PyTree], PyTree]
"""Inside jit: spreads the rows of arrays [rows, …] over devices; no value changes."""


def whole(tree: PyTree) -> PyTree:
    """Leave rows where they are."""
    return tree


def clipped_sum(
    loss: Loss,
    params: PyTree,
    x: PyTree[Shaped[Array, "b ..."]],
    y: Real[Array, "b ..."],
    mask: Bool[Array, " b"],
    *,
    clip_norm: float,
    microbatch: int,
    split: Split = whole,
) -> PyTree:
    """Return Σ over masked rows of the gradient of `loss`, each clipped to `clip_norm` (Algorithm
    1, line 4).

    The norm is over the whole pytree. A gradient with an infinite or NaN entry counts as zero. Sums
    are float32 (float64 for float64 parameters).
    """
    return sum_over_units(
        lambda xi, yi: jax.grad(loss)(params, xi, yi),
        params,
        x,
        y,
        mask,
        clip_norm=clip_norm,
        microbatch=microbatch,
        split=split,
    )


def sum_over_units(
    vector: Callable[[PyTree, Real[Array, "..."]], PyTree],
    params: PyTree,
    x: PyTree[Shaped[Array, "b ..."]],
    y: Real[Array, "b ..."],
    mask: Bool[Array, " b"],
    *,
    clip_norm: float,
    microbatch: int,
    split: Split = whole,
) -> PyTree:
    """Return Σ over masked rows of `vector(x_i, y_i)`, each clipped to `clip_norm` whatever it is.

    Rows are worked on `microbatch` at a time, so memory is that of `microbatch` gradients, each
    `split` over the devices. The number of microbatches does not depend on the mask: a step takes
    as long whoever is in the batch.
    """

    def body(total: PyTree, part: tuple[PyTree, Array, Array]) -> tuple[PyTree, None]:
        xs, ys, kept = split(part)
        clipped = jax.vmap(lambda xi, yi: clip(vector(xi, yi), clip_norm))(xs, ys)
        return jax.tree.map(
            lambda t, c: t + _masked_sum(c, kept).astype(t.dtype), total, clipped
        ), None

    parts = in_microbatches((x, y, mask), mask.shape[0], microbatch)
    return lax.scan(body, zeros_like_sum(params), parts)[0]


def in_microbatches(
    tree: PyTree[Shaped[Array, "b ..."]], rows: int, microbatch: int
) -> PyTree[Shaped[Array, "parts size ..."]]:
    """Cut the `rows` of every leaf into parts of at most `microbatch`.

    The rows that are missing in the last part repeat the first row; a boolean leaf, which is a
    mask, is false there.
    """
    size = min(microbatch, rows)
    missing = -rows % size

    def split(leaf: Array) -> Array:
        filler = jnp.broadcast_to(leaf[:1], (missing, *leaf.shape[1:]))
        if leaf.dtype == jnp.bool_:
            filler = jnp.zeros_like(filler)
        # Not -1: a leaf may be empty.
        parts = (rows + missing) // size
        return jnp.concatenate([leaf, filler]).reshape(parts, size, *leaf.shape[1:])

    return jax.tree.map(split, tree)


def _masked_sum(rows: Array, mask: Array) -> Array:
    # A choice, not a product: zero times infinity would be NaN.
    kept = mask.reshape(mask.shape + (1,) * (rows.ndim - 1))
    return jnp.sum(jnp.where(kept, rows, jnp.zeros_like(rows)), axis=0)
