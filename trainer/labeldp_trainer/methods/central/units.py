"""What is learned from: the units of privacy, and the loss of one example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config import DpSgd, LabelDpPro
from labeldp_trainer.dp_gradient.problem import Problem
from labeldp_trainer.dp_gradient.tree import Loss as ExampleLoss
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


def make_units(setting: Setting, method: DpSgd | LabelDpPro) -> Units:
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
    if method.user_column is None:
        return Units(train.features, targets, 1, train.rows)
    rows, present = user_groups(loaded, train)
    x = jax.tree.map(lambda leaf: leaf[rows], train.features)
    return Units((x, present), targets[rows], rows.shape[1], int(present.sum()))


def make_problem(setting: Setting, method: DpSgd | LabelDpPro) -> Problem:
    """The loss of one example with the labels that span its gradients."""
    task = setting.loss.task
    labels: tuple[float, ...] = ()
    if task.classes is not None:
        labels = tuple(range(len(task.classes)))
    elif method.label_range is not None:
        labels = method.label_range
    bounds = method.label_range if method.clipping == "standard" else None
    loss = _example_loss(setting.model, setting.loss, bounds)
    return Problem(loss, labels, None if method.user_column is None else "mean")


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
