"""Batches: true Poisson sampling under jit, independent batches, partitions. No label is looked
at.

Every function is a pure function of a key. Use one key a step (`step_key`), so that a resumed run
re-does the same steps with the same batches and the same noise.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int, PRNGKeyArray, PyTree

from labeldp_trainer.dp_gradient.tree import Loss

_SAMPLING, _NOISE, _ALTERNATIVE, _CENTRE = range(4)


class Batch(NamedTuple):
    """`indices` into the data and a `mask`: rows that are not in the batch are padding."""

    indices: Int[Array, " b"]
    mask: Bool[Array, " b"]


class StepKeys(NamedTuple):
    """Independent keys of one step."""

    sampling: PRNGKeyArray
    noise: PRNGKeyArray
    alternative: PRNGKeyArray
    centre: PRNGKeyArray


def step_keys(key: PRNGKeyArray, step: Int[Array, ""] | int) -> StepKeys:
    """Return the keys of step number `step` of the run whose secret key is `key`."""
    own = jax.random.fold_in(key, step)
    purposes = (_SAMPLING, _NOISE, _ALTERNATIVE, _CENTRE)
    return StepKeys(*(jax.random.fold_in(own, purpose) for purpose in purposes))


def poisson_batch(key: PRNGKeyArray, *, units: int, batch: int, max_batch: int) -> Batch:
    """Sample every one of `units` independently with probability q = `batch`/`units`, under jit.

    The rate is ⌊q·2^32⌋/2^32, never more than q. If more than `max_batch` are sampled, a uniformly
    random `max_batch` of them are kept: given that a unit's word is below the threshold, its rank
    among the sampled is uniform, so the smallest words are a random choice. (Two equal 32-bit
    words at the border would be told apart by index, not by chance: 2^-32 · `max_batch` of the
    times it matters.)

    Returns `max_batch` rows, sampled units first.
    """
    if not 1 <= batch <= max_batch <= units:
        raise ValueError(
            f"need 1 <= batch <= max_batch <= units; they are {batch}, {max_batch}, {units}"
        )
    words = jax.random.bits(key, (units,), jnp.uint32)
    largest, indices = lax.top_k(~words, max_batch)
    threshold = (batch << 32) // units
    if threshold == 1 << 32:
        return Batch(indices, jnp.ones((max_batch,), bool))
    return Batch(indices, ~largest < jnp.uint32(threshold))


def independent_batch(key: PRNGKeyArray, *, units: int, size: int) -> Int[Array, " b"]:
    """Return `size` distinct indices, uniform over the units; all, in order, if that is all."""
    if not 1 <= size <= units:
        raise ValueError(f"need 1 <= size <= units; they are {size} and {units}")
    if size == units:
        return jnp.arange(units, dtype=jnp.int32)
    return lax.top_k(jax.random.bits(key, (units,), jnp.uint32), size)[1]


def partition_batch(
    key: PRNGKeyArray, step: Int[Array, ""] | int, *, units: int, batch: int
) -> Batch:
    """Return the batch of `step` when each epoch is a fresh random partition into ⌈units/batch⌉
    batches.

    `key` is the run's key: every step of one epoch must see the same permutation. Every unit is in
    exactly one batch of an epoch (the last one is padded). Not Poisson: there is no amplification.
    """
    if not 1 <= batch <= units:
        raise ValueError(f"need 1 <= batch <= units; they are {batch} and {units}")
    per_epoch = math.ceil(units / batch)
    epoch, place = jnp.divmod(jnp.asarray(step, jnp.int32), per_epoch)
    own = jax.random.fold_in(jax.random.fold_in(key, epoch), _SAMPLING)
    order = jax.random.permutation(own, units)
    rows = place * batch + jnp.arange(batch, dtype=jnp.int32)
    mask = rows < units
    return Batch(order[jnp.where(mask, rows, 0)].astype(jnp.int32), mask)


# A user as the unit: all of a user's labels may change at once, so a user's gradient is clipped.
#
# A user's data are `(xs, present)` with xs a pytree of [examples, …] and present [examples], and
# labels [examples]; `examples` is a static maximum. Pad with copies of the user's own rows,
# whose gradients are as finite as theirs, not with zeros that a model might divide by.


Reduction = Literal["mean", "sum"]


class Groups(NamedTuple):
    """`rows` into the data, by user and example, and which of them are `present`."""

    rows: Int[np.ndarray, "u e"]
    present: Bool[np.ndarray, "u e"]


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


def example_weights(
    present: Bool[Array, " e"], reduction: Reduction, dtype: jnp.dtype
) -> Float[Array, " e"]:
    """Return the weights of a user's examples in the user's loss."""
    kept = present.astype(dtype)
    return kept / _size(present, dtype) if reduction == "mean" else kept


def group_by_user(owners: Int[np.ndarray, " n"], max_examples: int, seed: int) -> Groups:
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
    return Groups(order[first[:, None] + np.where(present, slot, 0)], present)


def _size(present: Array, dtype: jnp.dtype) -> Array:
    return jnp.maximum(jnp.sum(present.astype(dtype)), jnp.ones((), dtype))
