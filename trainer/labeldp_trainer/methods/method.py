"""What a method is: how a step makes a gradient, and what it may say about privacy.

A method is built once from the config and the data. The loop knows nothing else about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import jax
import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.data import Dataset
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods.statement import Statement
from labeldp_trainer.models import Model, Params
from labeldp_trainer.one_release.release import Release
from labeldp_trainer.sharding import Devices

Metrics = dict[str, jax.Array]  # scalars
Draw = Callable[[jax.Array, int, int], Any]
Gradient = Callable[[Params, jax.Array, jax.Array, Any, Any], tuple[Params, Metrics]]
TrainingLoss = Callable[[Params, Any], jax.Array]


@dataclass(frozen=True)
class Method:
    """A way to train.

    Attributes:
        arrays: a pytree of device arrays that every step sees, as an argument and never as a
            constant of the compiled program.
        steps_per_epoch: steps in an epoch.
        examples_per_epoch: examples that an epoch visits (on average, if batches vary).
        draw: (epoch key, first step of the whole run, number of steps) → a pytree whose leaves have
            a leading axis of that many steps, all in one epoch; each step gets its slice.
        gradient: (params, step key, step of the whole run [int32], slice, arrays) → an estimate of
            the gradient, and metrics. The loop averages the metrics over an epoch and writes them
            down: return only what may leave the run, or nothing. Keys are functions of the seed
            and the step alone, so that a step that is done again repeats its randomness.
        training_loss: (params, arrays) → the mean loss on the labels that training sees, for early
            stopping; None where that would disclose more than the statement says.
        statement: what is promised.
        keep: host arrays that the run folder must hold before the first step, so that a resumed
            run spends nothing again; ``build`` gets them back as ``stored``.
        notes: sentences for the user.
        later: the next stage of a training in stages, from the parameters that this one ends with
            and what is stored of the next (None if it has not begun). What it wants to ``keep`` is
            on the disk before its first step. None for the last stage, or the only one.
        steps_at_once: the most steps for which ``draw`` is asked at a time; None for a whole epoch.
        repeats_noise: whether steps that are done again add the same secret noise. They must then
            give the same bits, or two sums with one noise would be out: the run is resumed only on
            the same kind and number of devices and with the same packages.
        times_are_public: whether it may be written down how long an epoch took.
    """

    arrays: Any
    steps_per_epoch: int
    examples_per_epoch: int
    draw: Draw
    gradient: Gradient
    training_loss: TrainingLoss | None
    statement: Statement
    keep: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    later: Callable[[Params, Mapping[str, NDArray[Any]] | None], Method] | None = None
    steps_at_once: int | None = None
    repeats_noise: bool = False
    times_are_public: bool = True


@dataclass(frozen=True)
class Setting:
    """What a method is built from.

    Attributes:
        loaded: the config.
        dataset: the data, with the label columns that the method asked for.
        model: of the user, or from the config.
        loss: with its task.
        devices: the devices to use.
        stored: the ``keep`` of the same run before it was interrupted, or None in a new run.
        spectrum: [p] of the principal components that the features are, if they are.
        release: one that exists already: of the same run before it was interrupted, or given.
    """

    loaded: LoadedConfig
    dataset: Dataset
    model: Model
    loss: Loss
    devices: Devices
    stored: Mapping[str, NDArray[Any]] | None
    spectrum: NDArray[np.float64] | None = None
    release: Release | None = None


@dataclass(frozen=True)
class Solved:
    """A method that fits a linear model to sums over all rows, without steps.

    Attributes:
        solve: the parameters of ``models.Linear``; post-processing of what is kept.
        statement: what is promised.
        files: what the run folder must hold besides, before anything is solved, by name.
        keep: as of a ``Method``.
        notes: sentences for the user.
    """

    solve: Callable[[], Params]
    statement: Statement
    files: Mapping[str, bytes] = field(default_factory=dict)
    keep: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class MethodBuilder(Protocol):
    """A method before the data are read."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Label columns that it needs of the training part."""
        ...

    @property
    def classes(self) -> tuple[int | str, ...] | None:
        """Classes that it knows, from a certificate for instance."""
        ...

    def build(self, setting: Setting) -> Method | Solved:
        """The method. Raises InputError."""
        ...
