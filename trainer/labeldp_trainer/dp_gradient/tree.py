"""Vectors that are pytrees: norms and clipping that survive huge, infinite and NaN entries.

And the loss of a user, whose examples' gradients are averaged.
"""

import functools
import operator
from collections.abc import Callable
from itertools import accumulate

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, PyTree, Real

Loss = Callable[[PyTree, PyTree, Real[Array, "..."]], Float[Array, ""]]
"""`loss(params, x, y)` of one example: x a pytree of features, y its label."""


def total(values: list[Float[Array, "*shape"]]) -> Float[Array, "*shape"]:
    """Sum a list of arrays."""
    return functools.reduce(operator.add, values)


def dot(a: PyTree, b: PyTree) -> Float[Array, ""]:
    """Return the inner product of two pytrees of one structure."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return total([jnp.sum(p * q) for p, q in pairs])


def all_finite(tree: PyTree) -> Bool[Array, ""]:
    """Return whether every entry is finite."""
    return jnp.isfinite(_peak(tree))


def norm(tree: PyTree) -> Float[Array, ""]:
    """Return the Euclidean norm over the whole pytree: NaN or infinite if an entry is.

    It does not overflow before its result does, nor lose entries whose squares underflow.
    """
    peak = _peak(tree)
    _, root = _directions(tree, peak)
    return jnp.where(jnp.isfinite(peak), peak * root, peak)


def clip(tree: PyTree, bound: Float[Array, ""] | float) -> PyTree:
    """Scale `tree` to norm at most `bound`; a tree with an infinite or NaN entry becomes zero.

    Returning zero keeps the promise for any label: the norm of the result is at most `bound`.
    float16 and bfloat16 leaves come back as float32.
    """
    tree = jax.tree.map(at_least_float32, tree)
    peak = _peak(tree)
    units, root = _directions(tree, peak)
    # Entries of `units` are at most 1, and `root` is their norm. So this product has norm at most
    # `bound`, even if the arithmetic that led to `units` were wrong.
    size = jnp.minimum(peak, bound / jnp.maximum(root, 0.5))
    usable = jnp.isfinite(peak) & (root >= 0.5)
    return jax.tree.map(
        lambda unit: jnp.where(usable, unit * size.astype(unit.dtype), jnp.zeros_like(unit)),
        units,
    )


def at_least_float32(leaf: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return `leaf` in float32, or unchanged if it is float64."""
    return leaf.astype(jnp.float32) if leaf.dtype.itemsize < 4 else leaf


def flat(tree: PyTree) -> Float[Array, " d"]:
    """Return all leaves side by side, in their widest type, at least float32."""
    leaves = [at_least_float32(leaf) for leaf in jax.tree.leaves(tree)]
    dtype = max((leaf.dtype for leaf in leaves), key=lambda dtype: dtype.itemsize)
    return jnp.concatenate([leaf.reshape(-1).astype(dtype) for leaf in leaves])


def unflat(vector: Float[Array, " d"], like: PyTree) -> PyTree:
    """Return the pytree like `like` whose leaves are side by side in `vector`, all in float32 or
    float64."""
    leaves, structure = jax.tree.flatten(like)
    ends = list(accumulate(leaf.size for leaf in leaves))
    shaped = [
        part.reshape(leaf.shape).astype(at_least_float32(leaf).dtype)
        for part, leaf in zip(jnp.split(vector, ends[:-1]), leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, shaped)


def tiny(dtype: jnp.dtype) -> float:
    """Return the least normal number of `dtype`, against divisions by zero."""
    return float(np.finfo(dtype).tiny)


def zeros_like_sum(params: PyTree) -> PyTree:
    """Return zeros in which gradients of `params` are summed."""
    return jax.tree.map(lambda p: jnp.zeros_like(at_least_float32(p)), params)


def _peak(tree: PyTree) -> Array:
    """Return the largest absolute entry; NaN if there is one."""
    peaks = [jnp.max(jnp.abs(leaf), initial=0.0) for leaf in jax.tree.leaves(tree)]
    dtype = jnp.result_type(*(peak.dtype for peak in peaks)) if len(peaks) > 1 else peaks[0].dtype
    return functools.reduce(jnp.maximum, [peak.astype(dtype) for peak in peaks])


def _directions(tree: PyTree, peak: Array) -> tuple[PyTree, Array]:
    """Return `tree` divided by its largest absolute entry `peak`, and the norm of that, at least 1.

    For a tree of zeros (or subnormal numbers, which may be read as zeros) both are zero. A quotient
    may be computed as a product with a reciprocal, and the reciprocal of 1e38 flushes to zero in
    float32; so the exponent is brought near zero first, by a power of two.
    """
    far = 2.0**70 if peak.dtype.itemsize == 4 else 2.0**600
    edge = far**0.75
    if peak.dtype.itemsize < 4:
        far = edge = 1.0
    one = jnp.ones_like(peak)
    shift = jnp.where(peak > edge, one / far, jnp.where(peak < 1 / edge, one * far, one))
    near = jnp.where(jnp.isfinite(peak) & (peak * shift > 0), peak * shift, one)
    usable = jnp.isfinite(peak)

    def unit(leaf: Array) -> Array:
        moved = leaf * shift.astype(leaf.dtype) / near.astype(leaf.dtype)
        return jnp.where(usable, moved, jnp.zeros_like(moved))

    units = jax.tree.map(unit, tree)
    squares = [jnp.sum(jnp.square(leaf)).astype(peak.dtype) for leaf in jax.tree.leaves(units)]
    return units, jnp.sqrt(total(squares))


# A user as the unit: all of a user's labels may change at once, so a user's gradient is clipped.
#
# A user's data are `(xs, present)` with xs a pytree of [examples, …] and present [examples], and
# labels [examples]; `examples` is a static maximum. Pad with copies of the user's own rows,
# whose gradients are as finite as theirs, not with zeros that a model might divide by.


def per_user(loss: Loss) -> Loss:
    """Turn a loss of one example into a loss of one user: the mean over the examples present.

    A user without any has loss zero.
    """

    def user_loss(params: PyTree, x: PyTree, y: Array) -> Array:
        xs, present = x
        return user_mean(jax.vmap(loss, (None, 0, 0))(params, xs, y), present)

    return user_loss


def user_mean(values: Float[Array, "e ..."], present: Bool[Array, " e"]) -> Float[Array, "..."]:
    """Return the mean of a user's values over the examples that are present, zero without any."""
    kept = present.reshape(-1, *[1] * (values.ndim - 1))
    count = jnp.maximum(jnp.sum(present.astype(values.dtype)), jnp.ones((), values.dtype))
    return jnp.sum(jnp.where(kept, values, jnp.zeros_like(values)), axis=0) / count
