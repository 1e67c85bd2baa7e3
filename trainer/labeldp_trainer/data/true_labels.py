"""True labels as private methods read them. No label is refused, counted or named.

A refusal would tell that a label of some kind exists, which no ε covers.
"""

from typing import Any

import numpy as np
from jaxtyping import Float64, Int32

from labeldp_trainer.data.labels import numbers, places


def class_labels(
    values: Any, classes: tuple[int | str, ...], default: int | str | None
) -> Int32[np.ndarray, " n"]:
    """The place of each of n labels among the classes; that of the default for all others."""
    found = places(values, classes)
    other = 0 if default is None else classes.index(default)
    return np.where(found < 0, other, found).astype(np.int32)


def label_numbers(
    values: Any, low: float, high: float, default: float | None
) -> Float64[np.ndarray, " n"]:
    """n labels, moved into [low, high]. What is not a number becomes the default, or the middle."""
    found = numbers(values)
    other = (low + high) / 2 if default is None else default
    with np.errstate(all="ignore"):  # numpy would warn of some labels
        # the type of a column is public, and so it is if it says that there are no numbers
        each = np.full(len(values), np.nan) if found is None else found.astype(np.float64)
        inside: Float64[np.ndarray, " n"] = np.clip(
            np.where(np.isnan(each), other, each), low, high
        )
    return inside
