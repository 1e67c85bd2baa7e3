"""From label columns to the targets of a loss.

No message quotes a label, counts labels, or says which row one stands in: that a column is refused
is all that a log may hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labeldp_trainer.errors import DataError


@dataclass(frozen=True)
class Task:
    """What is predicted: a number, or one of ``classes``."""

    classes: tuple[int | str, ...] | None = None

    @property
    def outputs(self) -> int:
        """Outputs of the model."""
        return 1 if self.classes is None else len(self.classes)

    def targets(self, values: Any, source: str, column: str) -> NDArray[Any]:
        """float32 [n] numbers, or int32 [n] indices of classes. Raises DataError."""
        array = as_numpy(values)
        if self.classes is not None:
            return class_indices(array, self.classes, source, column)
        if array.dtype.kind not in "buif":
            raise DataError(f"{source}: {column!r} does not hold numbers")
        numbers = array.astype(np.float32)
        if not np.isfinite(numbers).all():
            raise DataError(f"{source}: {column!r} has labels that are missing, NaN or infinite")
        return numbers


def class_indices(
    array: NDArray[Any], classes: Sequence[int | str], source: str, column: str
) -> NDArray[np.int32]:
    """int32 [n]: the place of every value among the classes. Raises DataError."""
    known = {value: index for index, value in enumerate(classes)}
    values = [_plain(value) for value in array.tolist()]
    if any(value not in known for value in values):
        reason = f"{source}: {column!r}: some labels are none of the {len(known)} classes: list "
        reason += "every class, in the type that the column has"
        if array.dtype.kind == "f":
            reason += "; real numbers, as unbiased randomizers give, are for a regression loss"
        raise DataError(reason)
    return np.array([known[value] for value in values], np.int32)


def as_numpy(values: Any) -> NDArray[Any]:
    """A label column as numpy: numbers keep their type, nulls become NaN or None."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_decimal(values.type):
            values = values.cast(pa.float64())
        return np.asarray(values.to_numpy(zero_copy_only=False))
    return np.asarray(values)


def _plain(value: Any) -> Any:
    """3.0 as 3, so that numbers of any type find their class."""
    return int(value) if isinstance(value, bool | float) and value == value // 1 else value
