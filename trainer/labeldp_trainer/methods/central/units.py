"""What is learned from: the units of privacy, and the loss of one example."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config.central import Central
from labeldp_trainer.data import array_digest
from labeldp_trainer.discrete_gaussian.words import secret_key
from labeldp_trainer.dp_gradient.step_config import GradientProblem
from labeldp_trainer.dp_gradient.tree import Loss as ExampleLoss
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods.method import Setting
from labeldp_trainer.methods.users import user_groups
from labeldp_trainer.models import Model, Params


@dataclass(frozen=True)
class Units:
    """Examples, or users with their examples.

    Attributes:
        x: a pytree of [units, …]; for users (a pytree of [units, examples, …], present).
        y: [units], for users [units, examples].
        examples: most examples of a unit: 1, or those of a user.
        rows: rows of the data that take part.
    """

    x: Any
    y: NDArray[Any]
    examples: int
    rows: int

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.y)


def make_units(setting: Setting, method: Central) -> Units:
    """The training data by unit. Raises InputError."""
    loaded, train = setting.loaded, setting.dataset.train
    label = loaded.config.data.label
    targets = setting.loss.task.targets(train.columns[label], train.source, label)
    if method.label_range is not None:
        low, high = (np.float32(end) for end in method.label_range)
        if ((targets < low) | (targets > high)).any():
            raise loaded.error(
                ("method", "label_range"), f"some labels in {train.source} are outside"
            )
    groups = user_groups(loaded, train)
    if groups is None:
        return Units(train.features, targets, 1, train.rows)
    rows, present = groups
    x = jax.tree.map(lambda leaf: leaf[rows], train.features)
    return Units((x, present), targets[rows], rows.shape[1], int(present.sum()))


def make_problem(setting: Setting, method: Central) -> GradientProblem:
    """The loss of one example with the labels that span its gradients."""
    task = setting.loss.task
    labels: tuple[float, ...] = ()
    if task.classes is not None:
        labels = tuple(range(len(task.classes)))
    elif method.label_range is not None:
        labels = method.label_range
    bounds = method.label_range if method.clipping == "standard" else None
    loss = _example_loss(setting.model, setting.loss, bounds)
    return GradientProblem(loss, labels, users=method.user_column is not None)


def _example_loss(model: Model, loss: Loss, bounds: tuple[float, float] | None) -> ExampleLoss:
    """The loss of one example; with ``bounds``, one that has the gradient at clamped predictions.

    Beyond the label range the gradients of all labels point the same way, and clipping would make
    one vector of them: a hull that has lost the label.
    """

    def whole(params: Params, x: Any, y: jax.Array) -> jax.Array:
        outputs = model.apply(params, jax.tree.map(lambda leaf: leaf[None], x))
        if bounds is None:
            return loss.per_example(outputs, y[None])[0]
        f = loss.predictions(outputs)[0]
        clamped = jnp.clip(f, *(jnp.asarray(end, f.dtype) for end in bounds))
        return jax.lax.stop_gradient(loss.slope(clamped, y)) * f

    return whole


# What a private run keeps to itself: the key of its noise, σ, and how to recognise its labels.
#
# A resumed run does the steps after the last checkpoint again with the same noise. On other
# labels the same noise would cancel in the difference, so that it is refused: the folder keeps a
# keyed hash of the labels.


_ARRAYS = {
    "noise_key": ("uint32", (8,)),
    "noise_multiplier": ("float64", ()),
    "labels_key": ("uint8", (32,)),
    "labels_hash": ("uint8", (32,)),
}


@dataclass(frozen=True)
class Kept:
    """The secrets of a run.

    Attributes:
        noise_key: uint32 [8], the key of sampling and noise.
        noise_multiplier: σ.
        labels_key: uint8 [32].
        labels_hash: uint8 [32], a hash of the labels under ``labels_key``.
    """

    noise_key: NDArray[np.uint32]
    noise_multiplier: float
    labels_key: NDArray[np.uint8]
    labels_hash: NDArray[np.uint8]

    @classmethod
    def new(cls, labels: Any, noise_multiplier: float) -> Kept:
        """Fresh secrets from the operating system."""
        key = secrets.token_bytes(32)
        return cls(secret_key(), noise_multiplier, _bytes(key), _bytes(_hash(key, labels)))

    @classmethod
    def of_run(
        cls, stored: Mapping[str, NDArray[Any]] | None, labels: Any, calibrate: Callable[[], float]
    ) -> Kept:
        """Those of an interrupted run, or fresh ones with the σ that ``calibrate`` finds.

        Raises RunFolderError if the interrupted run had other labels.
        """
        if stored is None:
            return cls.new(labels, calibrate())
        if "noise_key" in stored and stored["noise_key"].shape == (2,):
            raise RunFolderError(
                "it was begun by an older version, whose noise of float32 numbers shows labels: "
                "start another run"
            )
        if set(stored) != set(_ARRAYS) or any(
            (str(stored[name].dtype), stored[name].shape) != kind for name, kind in _ARRAYS.items()
        ):
            raise RunFolderError("kept.npz holds no key of this method: start another run")
        kept = cls(
            stored["noise_key"],
            float(stored["noise_multiplier"]),
            stored["labels_key"],
            stored["labels_hash"],
        )
        if not kept.noise_multiplier >= calibrate():
            raise RunFolderError("kept.npz has less noise than ε needs: start another run")
        known = kept.labels_hash.tobytes()
        if not hmac.compare_digest(known, _hash(kept.labels_key.tobytes(), labels)):
            raise RunFolderError(
                "the run was started with other labels: the same noise on both would show the "
                "difference; start another run"
            )
        return kept

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays to store."""
        return {
            "noise_key": self.noise_key,
            "noise_multiplier": np.array(self.noise_multiplier),
            "labels_key": self.labels_key,
            "labels_hash": self.labels_hash,
        }


def _hash(key: bytes, labels: Any) -> bytes:
    return hmac.new(key, array_digest(labels).encode(), hashlib.sha256).digest()


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
