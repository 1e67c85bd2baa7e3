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
        return next(self._steps(number, 1))

    def steps(self, first: int, count: int) -> StepDraws:
        """The draws of ``count`` steps, every array with a leading axis of that length."""
        drawn = list(self._steps(first, count))
        stacked: StepDraws = jax.tree.map(lambda *parts: np.stack(parts), *drawn)
        return stacked

    def _steps(self, first: int, count: int) -> Iterator[StepDraws]:
        epoch, batches = -1, list[Batch]()
        plan, sigma = self.config.plan, self.config.lattice.sigma
        alternative, centre = self._others
        for number in range(first, first + count):
            if plan.batches == "partition":
                now, place = divmod(number, plan.batches_per_epoch)
                if now != epoch:
                    words = Words(self.key, _PARTITION, now)
                    epoch, batches = now, partition(words, units=plan.units, batch=plan.batch)
                batch = batches[place]
            else:
                batch = poisson_batch(
                    Words(self.key, _SAMPLING, number),
                    units=plan.units,
                    batch=plan.batch,
                    max_batch=plan.max_batch,
                )
            noise = discrete_gaussian(Words(self.key, _NOISE, number), self.coordinates, sigma)
            drawn: Any = (  # numpy arrays, until a device gets them
                *batch,
                lattice.halves_of(noise),
                self._independent(_ALTERNATIVE, number, alternative),
                self._independent(_CENTRE, number, centre),
            )
            yield StepDraws(*drawn)

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
