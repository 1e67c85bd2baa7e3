"""What is learned from: the units of privacy, and the loss of one example."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config.method import Central
from labeldp_trainer.data import array_digest
from labeldp_trainer.discrete_gaussian.words import secret_key
from labeldp_trainer.dp_gradient.integer_sums import Loss as ExampleLoss
from labeldp_trainer.dp_gradient.problem import GradientProblem
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods.method import Setting, Stored
from labeldp_trainer.methods.true_labels import require_label_type, true_classes, true_numbers
from labeldp_trainer.methods.users import user_rows
from labeldp_trainer.models import Model, Params

_LARGEST = float(np.finfo(np.float32).max)


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
    require_label_type(setting)
    targets: NDArray[Any]
    if setting.loss.task.classes is not None:
        targets = true_classes(setting)
    else:
        ends = method.label_range or (-_LARGEST, _LARGEST)
        targets = true_numbers(setting, *ends).astype(np.float32)
    own = user_rows(loaded, train)
    if own is None:
        return Units(train.features, targets, 1, train.rows)
    rows, present = own
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


def kept_arrays(
    stored: Stored | None, labels: Any, calibrate: Callable[[], float]
) -> dict[str, NDArray[Any]]:
    """What a run keeps: fresh secrets and the σ that ``calibrate`` finds, or those ``stored``.

    ``noise_key`` is the key of sampling and noise, ``noise_multiplier`` σ, and ``labels_hash`` a
    hash of the labels under ``labels_key``. Raises RunFolderError if an interrupted run stored
    others, or had other labels.
    """
    if stored is None:
        key = secrets.token_bytes(32)
        return {
            "noise_key": secret_key(),
            "noise_multiplier": np.array(calibrate()),
            "labels_key": np.frombuffer(key, np.uint8),
            "labels_hash": np.frombuffer(_hash(key, labels), np.uint8),
        }
    kinds = {name: (str(array.dtype), array.shape) for name, array in stored.items()}
    if kinds.get("noise_key", ("", ()))[1] == (2,):
        raise RunFolderError(
            "it was started by an older version, whose float32 noise discloses labels; "
            "start another run"
        )
    if kinds != _ARRAYS:
        raise RunFolderError("kept.npz has no key for this method; start another run")
    if not stored["noise_multiplier"] >= calibrate():
        raise RunFolderError("kept.npz has less noise than ε needs; start another run")
    known = stored["labels_hash"].tobytes()
    if not hmac.compare_digest(known, _hash(stored["labels_key"].tobytes(), labels)):
        raise RunFolderError(
            "the run was started with other labels; the same noise on both would disclose the "
            "difference. Start another run"
        )
    return dict(stored)


def _hash(key: bytes, labels: Any) -> bytes:
    return hmac.new(key, array_digest(labels).encode(), hashlib.sha256).digest()
