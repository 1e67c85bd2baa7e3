"""Losses of predictions, and metrics of a model and of the best constant, on data of any size."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Float32, Float64, Real

from labeldp_compile.toolkit import plain
from labeldp_trainer.data import DataPart
from labeldp_trainer.data.features import Features, each_array, factors_of, named_arrays
from labeldp_trainer.data.labels import Task
from labeldp_trainer.models import Model, Params
from labeldp_trainer.operators import POISSON_FLOOR, log_softmax, namespace, softplus
from labeldp_trainer.run.folder import CONSTANTS, REPORTED

LossName = Literal["squared", "absolute", "poisson", "cross_entropy"]


@dataclass(frozen=True)
class Loss:
    """A loss by name, for a task.

    | name            | ℓ(f, y)                               | head                    |
    |-----------------|---------------------------------------|-------------------------|
    | `squared`       | ½(f − y)²                             | f is the output         |
    | `absolute`      | the distance of f and y               | f is the output         |
    | `poisson`       | f − y·ln f                            | f = softplus + a floor  |
    | `cross_entropy` | −Σ y·ln softmax, y a class or weights | logits                  |

    The weights of soft labels may be negative (a debiased loss) and need not sum to 1.
    """

    name: LossName
    task: Task

    def predictions(self, outputs: Float[Any, "b k"]) -> Float[Any, " b"] | Float[Any, "b k"]:
        """Numbers from a model's only output, or its logits."""
        if self.name == "cross_entropy":
            return outputs
        numbers = outputs[:, 0]
        return softplus(numbers) + POISSON_FLOOR if self.name == "poisson" else numbers

    def per_example(
        self, outputs: Float[Any, "b k"], targets: Real[Any, " b"] | Float[Any, "b k"]
    ) -> Float[Any, " b"]:
        """Losses for a model's outputs and labels, which may be soft."""
        f, xp = self.predictions(outputs), namespace(outputs)
        if self.name == "squared":
            return 0.5 * xp.square(f - targets)
        if self.name == "absolute":
            return xp.abs(f - targets)
        if self.name == "poisson":
            return f - targets * xp.log(f)
        logs = log_softmax(f)
        if targets.ndim == logs.ndim:
            return -xp.sum(targets * logs, axis=-1)
        return -xp.take_along_axis(logs, targets[:, None], axis=-1)[:, 0]

    def slope(self, f: Float[Any, "*shape"], y: Real[Any, "*shape"]) -> Float[Any, "*shape"]:
        """∂ℓ(f, y)/∂f at a prediction f, for the losses with a slope that is affine in y."""
        if self.name == "squared":
            return f - y
        assert self.name == "poisson"
        return 1 - y / namespace(f).maximum(f, POISSON_FLOOR)

    def metrics(
        self, outputs: Float[Any, "b k"], targets: Real[Any, " b"]
    ) -> dict[str, Float[Any, " b"]]:
        """Per-example quantities whose means describe a test set."""
        f, xp = self.predictions(outputs), namespace(outputs)
        losses = {"loss": self.per_example(outputs, targets)}
        if self.name == "cross_entropy":
            hits = xp.argmax(f, axis=-1).astype(targets.dtype) == targets
            return losses | {"accuracy": hits.astype(np.float32)}
        return losses | {"mse": xp.square(f - targets), "mae": xp.abs(f - targets)}


_ROWS = 4096  # at a time
TWO = 2  # classes
_ROUNDING = 1e-5  # a model's metrics are means in float32


def mean_metrics(
    model: Model, loss: Loss, params: Params, x: Features, targets: Real[np.ndarray, " n"]
) -> dict[str, float]:
    """The means of a loss's metrics over test features [n, …] and targets, computed by numpy; those
    of weighted rows if a table has weights."""
    n, totals = len(targets), dict[str, float]()
    w = _weights(factors_of(x, "weights"), n)
    with np.errstate(all="ignore"):  # a warning would say that there are such labels
        for outputs, part in _outputs(model, params, x, n):
            for name, values in loss.metrics(outputs, targets[part]).items():
                totals[name] = totals.get(name, 0.0) + float((w[part] * values).sum())
    return {name: totals[name] / float(w.sum()) for name in sorted(totals)}


def _weights(given: Real[np.ndarray, " n"] | None, n: int) -> Float64[np.ndarray, " n"]:
    return np.ones(n) if given is None else given.astype(np.float64)


def predict(model: Model, params: Params, part: DataPart) -> Float32[np.ndarray, "n k"]:
    """The outputs for all rows, batch by batch: by numpy for parameters that are its arrays."""
    if all(isinstance(array, np.ndarray) for _, array in named_arrays(params)):
        with np.errstate(all="ignore"):
            outputs = [own for own, _ in _outputs(model, params, part.features, part.rows)]
        return np.concatenate(outputs)
    from labeldp_trainer.devices import network_outputs  # noqa: PLC0415

    return network_outputs(model, params, part)


def _outputs(
    model: Model, params: Params, features: Features, rows: int
) -> Iterator[tuple[Float32[np.ndarray, "b k"], slice]]:
    for start in range(0, rows, _ROWS):
        part = slice(start, min(start + _ROWS, rows))
        own = each_array(features, lambda array: array[part])  # noqa: B023
        yield np.asarray(model.apply(params, own)), part


# The best that one prediction for all rows does on a test set is what a model must beat. It is
# computed from the test labels alone, as the other metrics are, which the statement lists as not
# covered.


def constant_metrics(
    loss: Loss,
    targets: Real[np.ndarray, " n"],
    exposure: Real[np.ndarray, " n"] | None = None,
    weights: Real[np.ndarray, " n"] | None = None,
) -> dict[str, float]:
    """Every metric of the loss, each at the constant that is best for it, times exposure. Means are
    weighted.

    Classes: the largest class's share and the entropy of the shares; of two, an AUC of 1/2.
    Numbers: the variance, the mean distance from the median, and the loss at the mean (squared,
    Poisson) or the median.
    """
    w = _weights(weights, len(targets))
    if loss.task.classes is not None:
        shares = np.bincount(targets, w, len(loss.task.classes)) / w.sum()
        seen = shares[shares > 0]
        best = {"loss": float(-(seen * np.log(seen)).sum()), "accuracy": float(shares.max())}
        return best | ({"auc": 0.5} if len(seen) == len(shares) == TWO else {})
    y = targets.astype(np.float64)
    e = _weights(exposure, len(y))
    both = w * e
    with np.errstate(over="ignore", invalid="ignore"):
        mse = float(np.average(np.square(y - e * ((both @ y) / (both @ e))), weights=w))
        order = np.argsort(y / e, kind="stable")
        middle = order[np.searchsorted(np.cumsum(both[order]), both.sum() / 2)]
        mae = float(np.average(np.abs(y - e * (y / e)[middle]), weights=w))
        mean = np.maximum(e * ((w @ y) / both.sum()), POISSON_FLOOR)
        best = {
            "squared": 0.5 * mse,
            "absolute": mae,
            "poisson": float(np.average(mean - y * np.log(mean), weights=w)),
        }
    return {"loss": best[loss.name], "mse": mse, "mae": mae}


def area_under_curve(
    outputs: Float32[np.ndarray, "n 2"],
    targets: Real[np.ndarray, " n"],
    weights: Real[np.ndarray, " n"] | None = None,
) -> float | None:
    """How often a row of the second class has larger odds of it than one of the first; ties count
    half, and a pair the product of its weights. None without rows of both, or with odds of NaN."""
    w, odds = _weights(weights, len(targets)), outputs[:, 1].astype(np.float64) - outputs[:, 0]
    second, (values, place) = targets == 1, np.unique(odds, return_inverse=True)
    if second.all() or not second.any() or np.isnan(odds).any():
        return None
    first, last = (np.bincount(place, w * own, len(values)) for own in (~second, second))
    return float(last @ (np.cumsum(first) - first / 2) / (first.sum() * last.sum()))


def worse_than_constant(
    loss: Loss, tested: Mapping[str, float | None], constant: Mapping[str, float | None]
) -> tuple[str, ...]:
    """Notes where one prediction for all rows of a test set is better than a model.

    Said of the metric that is reported first, and of the probabilities of classes. A metric of the
    model that is no finite number is None, and worse than any.
    """
    name, best = REPORTED[loss.name], CONSTANTS[loss.name]
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
    return "not finite" if value is None else plain(value, 4)
