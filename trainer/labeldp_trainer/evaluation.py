"""Metrics of a data set of any size, in batches inside jit, and those of the best constant."""

from collections.abc import Callable, Mapping
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Float32, PyTree, Real, Shaped
from scipy.stats import rankdata

from labeldp_compile.toolkit import plain
from labeldp_trainer.data import DataPart
from labeldp_trainer.data.features import batches
from labeldp_trainer.losses import POISSON_FLOOR, Loss
from labeldp_trainer.models import Model, Params
from labeldp_trainer.run.folder import REPORTED

CHUNK = 1024  # examples
TWO = 2  # classes
_ROUNDING = 1e-5  # a model's metrics are means in float32
CONSTANTS = {
    "cross_entropy": "the most frequent class",
    "squared": "the mean",
    "absolute": "the median",
    "poisson": "the mean",
}
Apply = Callable[..., Float[Array, "b k"]]
"""That of a model."""
Means = dict[str, Float[Array, ""]]
Measure = Callable[[Float[Array, "b k"], Real[Array, "b ..."]], dict[str, Float[Array, " b"]]]
"""Quantities of each example, from a model's outputs and the targets."""


def mean_metrics(
    apply: Apply,
    measure: Measure,
    params: Params,
    x: PyTree[Shaped[Array, "n ..."]],
    targets: Real[Array, "n ..."],
) -> Means:
    """The means over all n examples of what ``measure(outputs, targets)`` gives for each."""
    n = targets.shape[0]
    chunk = min(CHUNK, n)
    steps = -(-n // chunk)

    def add(totals: Means, start: Array) -> tuple[Means, None]:
        places = start + jnp.arange(chunk, dtype=jnp.int32)
        inside = places < n
        rows = jnp.minimum(places, n - 1)
        outputs = apply(params, jax.tree.map(lambda leaf: leaf[rows], x))
        values = measure(outputs, targets[rows])
        sums = {
            name: jnp.sum(jnp.where(inside, value, jnp.zeros_like(value)))
            for name, value in values.items()
        }
        return {name: totals[name] + value for name, value in sums.items()}, None

    first = jax.tree.map(lambda leaf: leaf[:1], (x, targets))
    names = jax.eval_shape(lambda: measure(apply(params, first[0]), first[1]))
    zeros = {name: jnp.zeros((), jnp.float32) for name in names}
    starts = jnp.arange(steps, dtype=jnp.int32) * chunk
    totals, _ = jax.lax.scan(add, zeros, starts)
    return {name: total / n for name, total in totals.items()}


@partial(jax.jit, static_argnums=(0, 1))
def evaluated(
    apply: Apply,
    loss: Loss,
    params: Params,
    x: PyTree[Shaped[Array, "n ..."]],
    targets: Real[Array, " n"],
) -> Means:
    """The metrics of a test set of features [n, …] and targets [n, …]."""
    return mean_metrics(apply, loss.metrics, params, x, targets)


def predict(model: Model, params: Params, part: DataPart) -> Float32[np.ndarray, "n k"]:
    """The outputs for all rows, batch by batch."""
    found = [
        np.asarray(_applied(model.apply, params, batch))[:count]
        for batch, count in batches(part.features, part.rows, max(min(CHUNK, part.rows), 1))
    ]
    return np.concatenate(found)


@partial(jax.jit, static_argnums=0)
def _applied(apply: Apply, params: Params, x: PyTree) -> Array:
    return apply(params, x)


# The best that one prediction for all rows does on a test set is what a model must beat. It is
# computed from the test labels alone, as the other metrics are, which the statement lists as not
# covered.


def constant_metrics(loss: Loss, targets: Real[np.ndarray, " n"]) -> dict[str, float]:
    """Every metric of the loss, each at the constant that is best for it.

    Classes: the largest class's share and the entropy of the shares; of two, an AUC of 1/2.
    Numbers: the variance, the mean distance from the median, and the loss at the mean (squared,
    Poisson) or the median.
    """
    if loss.task.classes is not None:
        shares = np.bincount(targets, minlength=len(loss.task.classes)) / len(targets)
        seen = shares[shares > 0]
        best = {"loss": float(-(seen * np.log(seen)).sum()), "accuracy": float(shares.max())}
        return best | ({"auc": 0.5} if len(seen) == len(shares) == TWO else {})
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


def area_under_curve(
    outputs: Float32[np.ndarray, "n 2"], targets: Real[np.ndarray, " n"]
) -> float | None:
    """How often a row of the second class has larger odds of it than one of the first; ties count
    half. None without rows of both."""
    ranks = rankdata(outputs[:, 1].astype(np.float64) - outputs[:, 0])
    second = targets == 1
    count, others = int(second.sum()), int((~second).sum())
    if not count or not others:
        return None
    return float((ranks[second].sum() - count * (count + 1) / 2) / (count * others))


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
