"""What all methods share that fit a linear model to sums over all rows."""

import numpy as np
from jaxtyping import Float32, Float64, Real

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.method import HEADS, Head
from labeldp_trainer.data.labels import Coded
from labeldp_trainer.linear.labels import fitted_labels
from labeldp_trainer.methods.method import Setting
from labeldp_trainer.models import Params

_VECTORS = 2  # dimensions


def default_head(loaded: LoadedConfig) -> Head:
    """The canonical one of the loss."""
    return HEADS[loaded.config.loss][0]


def vectors_of(setting: Setting) -> Float32[np.ndarray, "n p"]:
    """The features of the training part as vectors. Raises ConfigError."""
    vectors = setting.dataset.train.features
    if isinstance(vectors, dict) or vectors.ndim != _VECTORS:
        reason = "this key is missing; it says which vectors to use"
        raise setting.loaded.error(("representation",), reason)
    return np.asarray(vectors, np.float32)


def solve_labels(
    setting: Setting,
    targets: Real[np.ndarray, " n"] | Coded,
    ends: tuple[float, float] | None,
    shares: Float64[np.ndarray, " k"] | None = None,
    added: float = 0.0,
) -> Params:
    """The model of labels that may be looked at: numbers or classes [n], or k numbers for each.

    ``shares`` are about those of the classes behind these numbers; ``added`` is the variance that
    randomizing added to each.
    """
    coded, shares = coded_targets(setting, targets, shares)
    vectors, head = vectors_of(setting), default_head(setting.loaded)
    found = fitted_labels(
        vectors, setting.spectrum, coded, head, groups=setting.groups, shares=shares, added=added
    )
    return linear_params(setting.loaded, *found, ends)


def coded_targets(
    setting: Setting,
    targets: Real[np.ndarray, " n"] | Coded,
    shares: Float64[np.ndarray, " k"] | None = None,
) -> tuple[Coded, Float64[np.ndarray, " k"] | None]:
    """Targets by code, and about the shares of the classes behind them; None for numbers."""
    if isinstance(targets, Coded):
        return targets, shares
    classes = setting.loss.task.classes
    if classes is None:
        return Coded.numbers(np.asarray(targets, np.float64)), None
    coded = Coded.one_hot(np.asarray(targets, np.int32), len(classes))
    return coded, np.bincount(coded.codes, minlength=len(classes)) / len(coded)


def linear_params(
    loaded: LoadedConfig,
    w: Float32[np.ndarray, "p k"],
    b: Float32[np.ndarray, " k"],
    ends: tuple[float, float] | None,
) -> Params:
    """The parameters of ``models.build.closed_form_model``."""
    linear = {"categories": np.zeros((0, w.shape[1]), np.float32), "w": w, "b": b}
    if loaded.config.loss != "squared":
        return linear
    low, high = (-np.inf, np.inf) if ends is None else ends
    return {"model": linear, "ends": np.array([low, high], np.float32)}
