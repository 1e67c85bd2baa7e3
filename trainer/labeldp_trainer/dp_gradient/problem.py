"""What is learned in private: a loss, of which labels, for which unit of privacy."""

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from labeldp_trainer.dp_gradient.label_free import BallOf, Centre, example_ball, user_ball
from labeldp_trainer.dp_gradient.per_user import Reduction, per_user
from labeldp_trainer.dp_gradient.tree import Loss


@dataclass(frozen=True)
class Problem:
    """What is learned: `loss` of one example and all its `labels`.

    `labels` are all classes, or the two ends of the label interval when the gradient is affine in
    the label (squared and Poisson log loss); clamp labels to it. `reduction` is None for a label
    as the unit; with `mean` or `sum` the unit is a user, x is `(xs, present)` and y [users,
    examples] (`per_user.py`).
    """

    loss: Loss
    labels: tuple[float, ...]
    reduction: Reduction | None = None

    @property
    def unit_loss(self) -> Loss:
        """The loss of one unit."""
        return self.loss if self.reduction is None else per_user(self.loss, self.reduction)

    def labels_like(self, y: Array) -> Array:
        """Return the labels in the type of y."""
        return jnp.asarray(self.labels, y.dtype)

    def ball_of(self, labels: Array, centre: Centre) -> BallOf:
        """Return the ball of one unit."""
        ball = example_ball(self.loss, labels, centre)
        return ball if self.reduction is None else user_ball(ball, self.reduction)
