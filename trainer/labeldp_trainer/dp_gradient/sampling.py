"""Batches: true Poisson sampling, independent batches, partitions. No label is looked at.

Batches are drawn on the host from `Words` of a secret key: where they are secret, ε rests on their
being random.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int, Int32, Int64, PyTree

from labeldp_trainer.discrete_gaussian.words import Words
from labeldp_trainer.dp_gradient.tree import Loss


class Batch(NamedTuple):
    """`indices` into the data and a `mask`: rows that are not in the batch are padding."""

    indices: Int32[np.ndarray, " b"]
    mask: Bool[np.ndarray, " b"]


def poisson_batch(words: Words, *, units: int, batch: int, max_batch: int) -> Batch:
    """Sample every one of `units` independently with probability q = `batch`/`units`.

    The rate is ⌊q·2^32⌋/2^32, never more than q. If more than `max_batch` are sampled, a uniformly
    random `max_batch` of them are kept.

    Returns `max_batch` rows, sampled units first.
    """
    if not 1 <= batch <= max_batch <= units:
        raise ValueError(
            f"need 1 <= batch <= max_batch <= units; they are {batch}, {max_batch}, {units}"
        )
    threshold = (batch << 32) // units
    sampled = np.flatnonzero(words.draw32(units).astype(np.uint64) < np.uint64(threshold))
    if sampled.size > max_batch:
        sampled = np.sort(sampled[_shuffled(words, sampled.size)[:max_batch]])
    return _padded(sampled, max_batch)


def independent_batch(words: Words, *, units: int, size: int) -> Int32[np.ndarray, " b"]:
    """Return `size` distinct indices, uniform over the units; all, in order, if that is all."""
    if not 0 <= size <= units:
        raise ValueError(f"need 0 <= size <= units; they are {size} and {units}")
    if size in (0, units):
        return np.arange(size, dtype=np.int32)
    return _shuffled(words, units)[:size].astype(np.int32)


def partition(words: Words, *, units: int, batch: int) -> list[Batch]:
    """Return the ⌈units/batch⌉ batches of an epoch, a uniformly random partition of the units.

    Every unit is in exactly one of them (the last one is padded). Not Poisson: there is no
    amplification.
    """
    if not 1 <= batch <= units:
        raise ValueError(f"need 1 <= batch <= units; they are {batch} and {units}")
    order = _shuffled(words, units)
    return [_padded(order[start : start + batch], batch) for start in range(0, units, batch)]


def _shuffled(words: Words, count: int) -> Int64[np.ndarray, " n"]:
    """A uniform permutation, but for two equal words of 64 bits."""
    return np.argsort(words.draw(count), kind="stable")


def _padded(rows: Int64[np.ndarray, " n"], size: int) -> Batch:
    indices = np.zeros(size, np.int32)
    indices[: rows.size] = rows
    return Batch(indices, np.arange(size) < rows.size)


# A user as the unit: all of a user's labels may change at once, so a user's gradient is clipped.
#
# A user's data are `(xs, present)` with xs a pytree of [examples, …] and present [examples], and
# labels [examples]; `examples` is a static maximum. Pad with copies of the user's own rows,
# whose gradients are as finite as theirs, not with zeros that a model might divide by.


class UserRows(NamedTuple):
    """`rows` into the data, by user and example, and which of them are `present`."""

    rows: Int64[np.ndarray, "u e"]
    present: Bool[np.ndarray, "u e"]


def per_user(loss: Loss) -> Loss:
    """Turn a loss of one example into a loss of one user: the mean over the examples present.

    A user without any has loss zero.
    """

    def user_loss(params: PyTree, x: PyTree, y: Array) -> Array:
        xs, present = x
        return user_mean(jax.vmap(loss, (None, 0, 0))(params, xs, y), present)

    return user_loss


def user_mean(values: Float[Array, "e ..."], present: Bool[Array, " e"]) -> Array:
    """Return the mean of a user's values over the examples that are present, zero without any."""
    kept = present.reshape(-1, *[1] * (values.ndim - 1))
    count = jnp.maximum(jnp.sum(present.astype(values.dtype)), jnp.ones((), values.dtype))
    return jnp.sum(jnp.where(kept, values, jnp.zeros_like(values)), axis=0) / count


def group_by_user(owners: Int[np.ndarray, " n"], max_examples: int, seed: int) -> UserRows:
    """Group rows by user, at most `max_examples` each, chosen at random without looking at any
    label.

    owners: the numbers 0 … u − 1 of the users, each of whom has a row (`data/owners.py`). There are
    `max_examples` slots a user; one that is not present repeats one of the user's rows. Users are
    in the order of their numbers.
    """
    if max_examples < 1:
        raise ValueError(f"max_examples must be at least 1; it is {max_examples}")
    counts = np.bincount(owners)
    if not counts.all():
        raise ValueError("a user between 0 and the largest number has no row")
    shuffled = np.random.default_rng(seed).permutation(len(owners))
    order = shuffled[np.argsort(owners[shuffled], kind="stable")]
    first = np.cumsum(counts) - counts
    slot = np.arange(max_examples)[None, :]
    present = slot < counts[:, None]
    return UserRows(order[first[:, None] + np.where(present, slot, 0)], present)
