"""All that is random in the steps of a run: batches and noise, from one secret key.

Drawn on the host, by step, without a look at labels or features. The same key and step give the
same draws, so that a step that is done again after a crash releases nothing new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jaxtyping import Bool, Int32, UInt32

from labeldp_trainer.discrete_gaussian.sample import discrete_gaussian
from labeldp_trainer.discrete_gaussian.words import Words
from labeldp_trainer.dp_gradient import lattice
from labeldp_trainer.dp_gradient.sampling import (
    Batch,
    independent_batch,
    partition,
    poisson_batch,
)
from labeldp_trainer.dp_gradient.step_config import StepConfig

_SAMPLING, _NOISE, _ALTERNATIVE, _CENTRE, _PARTITION = range(5)


class StepDraws(NamedTuple):
    """What is random in one step.

    `indices` and `mask` of the batch; `noise` on each coordinate, in lattice steps; the units of
    the `alternative` batch and those of the public `centre`, none where a step has no such batch.
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
        key: [8], secret: anyone who has it can take the noise away.
        config: of the steps.
        coordinates: entries of a gradient.
    """

    key: UInt32[np.ndarray, 8]
    config: StepConfig
    coordinates: int

    @property
    def bytes_of_step(self) -> int:
        """What the draws of a step take."""
        config = self.config
        return 8 * self.coordinates + 5 * config.plan.max_batch + 4 * sum(self._others)

    def step(self, number: int) -> StepDraws:
        """The draws of one step."""
        draws: StepDraws = jax.tree.map(lambda leaf: leaf[0], self.steps(number, 1))
        return draws

    def steps(self, first: int, count: int) -> StepDraws:
        """The draws of ``count`` steps, every array with a leading axis of that length."""
        numbers = range(first, first + count)
        sigma, (alternative, centre) = self.config.lattice.sigma, self._others
        drawn: list[Any] = [  # numpy arrays, until a device gets them
            StepDraws(
                *batch,
                lattice.halves_of(
                    discrete_gaussian(Words(self.key, _NOISE, number).draw, self.coordinates, sigma)
                ),
                self._independent(_ALTERNATIVE, number, alternative),
                self._independent(_CENTRE, number, centre),
            )
            for number, batch in zip(numbers, self._batches(numbers), strict=True)
        ]
        stacked: StepDraws = jax.tree.map(lambda *parts: np.stack(parts), *drawn)
        return stacked

    def _batches(self, numbers: range) -> Iterator[Batch]:
        plan, epoch, parts = self.config.plan, -1, list[Batch]()
        for number in numbers:
            if plan.batches != "partition":
                words = Words(self.key, _SAMPLING, number)
                yield poisson_batch(
                    words, units=plan.units, batch=plan.batch, max_batch=plan.max_batch
                )
                continue
            now, place = divmod(number, plan.batches_per_epoch)
            if now != epoch:
                words = Words(self.key, _PARTITION, now)
                epoch, parts = now, partition(words, units=plan.units, batch=plan.batch)
            yield parts[place]

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
