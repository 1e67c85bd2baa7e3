"""Batches: true Poisson sampling under jit, independent batches, partitions. No label is looked
at.

Every function is a pure function of a key. Use one key a step (`step_key`), so that a resumed run
re-does the same steps with the same batches and the same noise.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

_SAMPLING, _NOISE, _ALTERNATIVE, _CENTRE = range(4)


class Batch(NamedTuple):
    """`indices` [rows] into the data and `mask` [rows]: rows that are not in the batch are
    padding."""

    indices: Array
    mask: Array


class StepKeys(NamedTuple):
    """Independent keys of one step."""

    sampling: Array
    noise: Array
    alternative: Array
    centre: Array


def step_keys(key: Array, step: Array | int) -> StepKeys:
    """Return the keys of step number `step` of the run whose secret key is `key`."""
    own = jax.random.fold_in(key, step)
    purposes = (_SAMPLING, _NOISE, _ALTERNATIVE, _CENTRE)
    return StepKeys(*(jax.random.fold_in(own, purpose) for purpose in purposes))


def poisson_batch(key: Array, *, units: int, batch: int, max_batch: int) -> Batch:
    """Sample every one of `units` independently with probability q = `batch`/`units`, under jit.

    The rate is ⌊q·2^32⌋/2^32, never more than q. If more than `max_batch` are sampled, a uniformly
    random `max_batch` of them are kept: given that a unit's word is below the threshold, its rank
    among the sampled is uniform, so the smallest words are a random choice. (Two equal 32-bit
    words at the border would be told apart by index, not by chance: 2^-32 · `max_batch` of the
    times it matters.)

    Returns indices and mask [max_batch], sampled units first.
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


def independent_batch(key: Array, *, units: int, size: int) -> Array:
    """Return `size` distinct indices, uniform over the units; all, in order, if that is all."""
    if not 1 <= size <= units:
        raise ValueError(f"need 1 <= size <= units; they are {size} and {units}")
    if size == units:
        return jnp.arange(units, dtype=jnp.int32)
    return lax.top_k(jax.random.bits(key, (units,), jnp.uint32), size)[1]


def partition_batch(key: Array, step: Array | int, *, units: int, batch: int) -> Batch:
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
