"""The true labels of a run, for the methods that protect them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from jaxtyping import Float64, Int32

from labeldp_trainer.config.data import TrueLabels
from labeldp_trainer.data.labels import class_labels, label_numbers, require_declared

if TYPE_CHECKING:
    from labeldp_trainer.methods.method import Setting


def require_label_type(setting: Setting) -> None:
    """Raise DataError if the declared type of the label column, which is public, fits no label."""
    train, label = setting.dataset.train, setting.loaded.config.data.label
    require_declared(train.columns[label], setting.loss.task.classes, train.source, label)


def true_classes(setting: Setting) -> Int32[np.ndarray, " n"]:
    """The class of each of n rows; the default, or the first one, for all that are none."""
    classes, default = setting.loss.task.classes, _default(setting)
    assert classes is not None and not isinstance(default, float)
    return class_labels(_column(setting), classes, default)


def true_numbers(
    setting: Setting, low: float, high: float, missing: float | None = None
) -> Float64[np.ndarray, " n"]:
    """The numbers of n rows in [low, high]. What is none becomes the default, ``missing``, or the
    middle."""
    default = _default(setting)
    assert not isinstance(default, str)
    return label_numbers(_column(setting), low, high, missing if default is None else default)


def _column(setting: Setting) -> object:
    return setting.dataset.train.columns[setting.loaded.config.data.label]


def _default(setting: Setting) -> int | str | float | None:
    return cast("TrueLabels", setting.loaded.config.method).default
