"""The best that one prediction for all rows does on a test set: what a model must beat.

It is computed from the test labels alone, as the other metrics on the test set are, which the
statement lists as not covered.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Real

from labeldp_trainer.losses import POISSON_FLOOR, Loss
from labeldp_trainer.run.metrics import REPORTED

_ROUNDING = 1e-5  # a model's metrics are means in float32
_CONSTANTS = {
    "cross_entropy": "the most frequent class",
    "squared": "the mean",
    "absolute": "the median",
    "poisson": "the mean",
}


def constant_metrics(loss: Loss, targets: Real[np.ndarray, " n"]) -> dict[str, float]:
    """Every metric of the loss, each at the constant that is best for it.

    Classes: the largest class's share and the entropy of the shares. Numbers: the variance, the
    mean distance from the median, and the loss at the mean (squared, Poisson) or the median.
    """
    if loss.task.classes is not None:
        shares = np.bincount(targets, minlength=len(loss.task.classes)) / len(targets)
        seen = shares[shares > 0]
        return {"loss": float(-(seen * np.log(seen)).sum()), "accuracy": float(shares.max())}
    y = targets.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        mse, mae = float(y.var()), float(np.abs(y - np.median(y)).mean())
        mean = max(float(y.mean()), POISSON_FLOOR)
        best = {
            "squared": 0.5 * mse,
            "absolute": mae,
            "poisson": mean - float(y.mean()) * float(np.log(mean)),
        }
    return {"loss": best[loss.name], "mse": mse, "mae": mae}


def worse_than_constant(
    loss: Loss, tested: Mapping[str, float | None], constant: Mapping[str, float | None]
) -> tuple[str, ...]:
    """Notes where one prediction for all rows of a test set is better than a model.

    Said of the metric that is reported first, and of the probabilities of classes. A metric of the
    model that is no finite number is None, and worse than any.
    """
    name, best = REPORTED[loss.name], _CONSTANTS[loss.name]
    notes = []
    if _worse(tested.get(name), constant.get(name), larger_is_better=name == "accuracy"):
        notes.append(
            f"the model is worse than always predicting {best}: test {name} "
            f"{_written(tested.get(name))}, {_written(constant.get(name))} by {best}"
        )
    if loss.task.classes is not None and _worse(tested.get("loss"), constant.get("loss")):
        notes.append(
            "the model's probabilities are worse than always giving the shares of the classes: "
            f"test log loss {_written(tested.get('loss'))}, {_written(constant.get('loss'))} by "
            "the shares"
        )
    return tuple(notes)


def _worse(found: float | None, constant: float | None, *, larger_is_better: bool = False) -> bool:
    if constant is None or found is None:
        return constant is not None
    margin = _ROUNDING * abs(constant)
    return found < constant - margin if larger_is_better else found > constant + margin


def _written(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4g}"
