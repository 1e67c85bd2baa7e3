"""A user as the unit: all of a user's labels may change at once, so a user's gradient is clipped.

A user's data are `(xs, present)` with xs a pytree of [examples, …] and present [examples], and
labels [examples]; `examples` is a static maximum. Pad with copies of the user's own rows, whose
gradients are as finite as theirs, not with zeros that a model might divide by.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from labeldp_trainer.dp_gradient.tree import Loss, PyTree

Reduction = Literal["mean", "sum"]


class Groups(NamedTuple):
    """`rows` [users, examples] into the data and `present` [users, examples]."""

    rows: np.ndarray
    present: np.ndarray


def per_user(loss: Loss, reduction: Reduction = "mean") -> Loss:
    """Turn a loss of one example into a loss of one user, for `clipped_sum` and `label_free_sum`.

    The mean or sum is over the examples that are present; a user without any has loss zero.
    """

    def user_loss(params: PyTree, x: PyTree, y: Array) -> Array:
        xs, present = x
        losses = jax.vmap(loss, (None, 0, 0))(params, xs, y)
        kept = jnp.sum(jnp.where(present, losses, jnp.zeros_like(losses)))
        return kept / _size(present, losses.dtype) if reduction == "mean" else kept

    return user_loss


def example_weights(present: Array, reduction: Reduction, dtype: jnp.dtype) -> Array:
    """Return the weights [examples] of a user's examples in the user's loss; present [examples]."""
    kept = present.astype(dtype)
    return kept / _size(present, dtype) if reduction == "mean" else kept


def group_by_user(users: np.ndarray, max_examples: int, seed: int) -> Groups:
    """Group rows by user, at most `max_examples` each, chosen at random without looking at any
    label.

    users: [n], any sortable values. Returns arrays of [number of users, `max_examples`]; a slot
    that is not present repeats one of the user's rows. Users are in sorted order.
    """
    if max_examples < 1:
        raise ValueError(f"max_examples must be at least 1; it is {max_examples}")
    _, codes = np.unique(users, return_inverse=True)
    shuffled = np.random.default_rng(seed).permutation(len(codes))
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    counts = np.bincount(codes)
    first = np.cumsum(counts) - counts
    slot = np.arange(max_examples)[None, :]
    present = slot < counts[:, None]
    return Groups(order[first[:, None] + np.where(present, slot, 0)], present)


def _size(present: Array, dtype: jnp.dtype) -> Array:
    return jnp.maximum(jnp.sum(present.astype(dtype)), jnp.ones((), dtype))
