"""Vectors that are pytrees: norms and clipping that survive huge, infinite and NaN entries."""

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

PyTree = Any
Loss = Callable[[PyTree, PyTree, Array], Array]
"""`loss(params, x, y)` of one example: x a pytree of features, y its label, a scalar back."""


def total(values: list[Array]) -> Array:
    """Sum a list of arrays of one shape."""
    return functools.reduce(operator.add, values)


def dot(a: PyTree, b: PyTree) -> Array:
    """Return the inner product of two pytrees of one structure, a scalar."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return total([jnp.sum(p * q) for p, q in pairs])


def all_finite(tree: PyTree) -> Array:
    """Return whether every entry is finite, a boolean scalar."""
    return jnp.isfinite(_peak(tree))


def norm(tree: PyTree) -> Array:
    """Return the Euclidean norm over the whole pytree; never overflows before its result does."""
    peak, root = _peak_and_root(tree)
    return peak * root


def clip(tree: PyTree, bound: Array | float) -> PyTree:
    """Scale `tree` to norm at most `bound`; a tree with an infinite or NaN entry becomes zero.

    Zero is a choice that a label cannot exploit: whatever it is, the result's norm is at most
    `bound`. float16 and bfloat16 leaves come back as float32.
    """
    tree = jax.tree.map(at_least_float32, tree)
    finite = all_finite(tree)
    tree = jax.tree.map(lambda leaf: jnp.where(finite, leaf, jnp.zeros_like(leaf)), tree)
    peak, root = _peak_and_root(tree)
    # bound/norm would be zero where the norm overflows, and squares would be lost where it
    # underflows.
    safe = jnp.where(root > 0, peak, jnp.ones_like(peak))
    size = jnp.minimum(peak, bound / jnp.where(root > 0, root, jnp.ones_like(root)))
    return jax.tree.map(
        lambda leaf: (leaf / safe.astype(leaf.dtype)) * size.astype(leaf.dtype), tree
    )


def at_least_float32(leaf: Array) -> Array:
    """Return `leaf` in float32, or in float64 if it is that."""
    return leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32))


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


def _peak_and_root(tree: PyTree) -> tuple[Array, Array]:
    """Return p = max |entry| and ‖tree‖/p; (0, 0) for a tree too small to divide by."""
    peak = _peak(tree)
    usable = peak > tiny(peak.dtype)
    safe = jnp.where(usable, peak, jnp.ones_like(peak))
    squares = [
        jnp.sum(jnp.square(leaf / safe.astype(leaf.dtype))).astype(peak.dtype)
        for leaf in jax.tree.leaves(tree)
    ]
    zero = jnp.zeros_like(peak)
    return jnp.where(usable, peak, zero), jnp.where(usable, jnp.sqrt(total(squares)), zero)
