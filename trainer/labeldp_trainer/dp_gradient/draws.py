"""Draws everything random in the steps of a run, batches and noise, from one secret key.

A batch is a true Poisson sample, an independent uniform sample, or a part of a partition. Where
batches are secret, ε depends on their randomness. Everything is drawn on the host, step by step,
without reading labels or features. The same key and step give the same draws, so a step that
is repeated after a crash releases nothing new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jaxtyping import Bool, Int32, Int64, UInt32

from labeldp_trainer.discrete_gaussian.sample import discrete_gaussian
from labeldp_trainer.discrete_gaussian.words import Words
from labeldp_trainer.dp_gradient import lattice
from labeldp_trainer.dp_gradient.step_config import StepConfig

_SAMPLING, _NOISE, _ALTERNATIVE, _CENTRE, _PARTITION = range(5)


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
    """Return `size` distinct indices, uniform over the units; if `size` is `units`, all in
    order."""
    if not 0 <= size <= units:
        raise ValueError(f"need 0 <= size <= units; they are {size} and {units}")
    if size in (0, units):
        return np.arange(size, dtype=np.int32)
    return _shuffled(words, units)[:size].astype(np.int32)


def partition(words: Words, *, units: int, batch: int) -> list[Batch]:
    """Return the ⌈units/batch⌉ batches of an epoch, a uniformly random partition of the units.

    Every unit is in exactly one of them (the last one is padded). This is not Poisson sampling, so
    there is no amplification.
    """
    if not 1 <= batch <= units:
        raise ValueError(f"need 1 <= batch <= units; they are {batch} and {units}")
    order = _shuffled(words, units)
    return [_padded(order[start : start + batch], batch) for start in range(0, units, batch)]


def _shuffled(words: Words, count: int) -> Int64[np.ndarray, " n"]:
    """A permutation; it is uniform unless two words of 64 bits are equal."""
    return np.argsort(words.draw(count), kind="stable")


def _padded(rows: Int64[np.ndarray, " n"], size: int) -> Batch:
    indices = np.zeros(size, np.int32)
    indices[: rows.size] = rows
    return Batch(indices, np.arange(size) < rows.size)


class StepDraws(NamedTuple):
    """What is random in one step.

    `indices` and `mask` of the batch; `noise` on each coordinate, in lattice steps; the units of
    the `alternative` batch and those of the public `centre`, both empty if a step does not use
    them.
    """

    indices: Int32[Array, " b"]
    mask: Bool[Array, " b"]
    noise: lattice.Halves
    alternative: Int32[Array, " n2"]
    centre: Int32[Array, " c"]


@dataclass(frozen=True)
class Randomness:
    """The draws of all steps of a run.

    Attributes:
        key: [8], secret: anyone who has it can remove the noise.
        config: of the steps.
        coordinates: entries of a gradient.
    """

    key: UInt32[np.ndarray, 8]
    config: StepConfig
    coordinates: int

    @property
    def bytes_of_step(self) -> int:
        """How many bytes the draws of a step take."""
        config = self.config
        return 8 * self.coordinates + 5 * config.plan.max_batch + 4 * sum(self._others)

    def step(self, number: int) -> StepDraws:
        """The draws of one step."""
        draws: StepDraws = jax.tree.map(lambda leaf: leaf[0], self.steps(number, 1))
        return draws

    def steps(self, first: int, count: int) -> StepDraws:
        """The draws of ``count`` steps, every array with a leading axis of that length."""
        numbers = range(first, first + count)
        batches = zip(numbers, self._batches(numbers), strict=True)
        drawn = [self._drawn(number, batch) for number, batch in batches]
        stacked: StepDraws = jax.tree.map(lambda *parts: np.stack(parts), *drawn)
        return stacked

    def _drawn(self, number: int, batch: Batch) -> StepDraws:
        words, sigma = Words(self.key, _NOISE, number), self.config.lattice.sigma
        alternative, centre = self._others
        parts: Any = (  # numpy arrays until they are moved to a device
            *batch,
            lattice.halves_of(discrete_gaussian(words.draw, self.coordinates, sigma)),
            self._independent(_ALTERNATIVE, number, alternative),
            self._independent(_CENTRE, number, centre),
        )
        return StepDraws(*parts)

    def _batches(self, numbers: range) -> Iterator[Batch]:
        plan = self.config.plan
        if plan.batches == "partition":
            for epoch, own in groupby(numbers, lambda number: number // plan.batches_per_epoch):
                words = Words(self.key, _PARTITION, epoch)
                parts = partition(words, units=plan.units, batch=plan.batch)
                yield from (parts[number % plan.batches_per_epoch] for number in own)
            return
        for number in numbers:
            words = Words(self.key, _SAMPLING, number)
            sizes = {"units": plan.units, "batch": plan.batch, "max_batch": plan.max_batch}
            yield poisson_batch(words, **sizes)

    @property
    def _others(self) -> tuple[int, int]:
        """How many units the alternative batch and the centre have."""
        config = self.config
        return (
            config.hull_units if config.denoiser == "alt_conv" else 0,
            config.centre_units if config.needs_centre else 0,
        )

    def _independent(self, purpose: int, number: int, size: int) -> Int32[np.ndarray, " b"]:
        words = Words(self.key, purpose, number)
        return independent_batch(words, units=self.config.plan.units, size=size)
