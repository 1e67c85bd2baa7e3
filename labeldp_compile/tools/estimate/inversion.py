"""Which labels a randomizer distinguishes, and the weights that undo it on average.

Labels with the same row of the table form a class. The weights are those of
``labeldp_verify.analysis.inversion``, for classes.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from labeldp_verify.analysis import least_variance_inverse, matrix, set_weights
from labeldp_verify.artifact import Table
from labeldp_verify.forms import sets_of
from labeldp_verify.usefulness.shortcomings import row_keys
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MAX_CLASSES, MAX_ENTRIES = 4_000, 16_000_000


@dataclass(frozen=True)
class LabelClasses:
    """The labels of a domain, in classes of equal rows.

    Attributes:
        of_label: [k] class of each label; classes are numbered by their first label.
        first: [c] index of the first label of each class.
    """

    of_label: NDArray[np.int64]
    first: NDArray[np.int64]

    @property
    def count(self) -> int:
        """Number of classes c."""
        return len(self.first)

    @property
    def are_single(self) -> bool:
        """Whether every label is distinguished from all others."""
        return self.count == len(self.of_label)

    @property
    def are_intervals(self) -> bool:
        """Whether every class holds neighbouring labels only."""
        return bool((np.diff(self.of_label) >= 0).all())


def label_classes(decoded: Table) -> LabelClasses:
    """The classes of a verified artifact."""
    seen: dict[Hashable, int] = {}
    of_label = [seen.setdefault(key, len(seen)) for key in row_keys(decoded.randomizer)]
    array = np.array(of_label, np.int64)
    return LabelClasses(array, np.unique(array, return_index=True)[1])


def class_matrix(decoded: Table, classes: LabelClasses) -> Floats:
    """Pr[output | class] [c, m]."""
    return matrix(decoded.randomizer, classes.first.tolist())


class NotEstimableError(Exception):
    """The randomizer does not support this estimate; the message says why."""


@dataclass(frozen=True)
class Inverse:
    """The table and its weights.

    Attributes:
        table: [c, m] Pr[output | class].
        weights: [m, c] with table·weights = 1.
    """

    table: Floats
    weights: Floats


def invert(decoded: Table, classes: LabelClasses) -> Inverse:
    """Raises NotEstimableError if no useful weights exist, or the table is too large."""
    c, m = classes.count, decoded.randomizer.outputs
    if c == 1:
        raise NotEstimableError("all labels have the same output probabilities")
    if c > MAX_CLASSES or c * m > MAX_ENTRIES:
        raise NotEstimableError(
            f"its table of {c:,} × {m:,} probabilities is too large to invert; the limits are "
            f"{MAX_CLASSES:,} distinguished labels and {MAX_ENTRIES:,} probabilities"
        )
    if m < c:
        raise NotEstimableError(
            f"{m:,} outputs cannot tell the shares of {c:,} labels apart; randomized_response can"
        )
    table = class_matrix(decoded, classes)
    if sets_of(decoded.randomizer) is not None:
        # Two values per class, hit or no hit; their distribution is known even for few rows.
        return Inverse(table, set_weights(decoded.randomizer))
    weights = least_variance_inverse(table)
    if weights is None:
        raise NotEstimableError(
            "several labels have nearly the same outputs, so no number of rows makes the noise of "
            "a histogram small; compile with a larger ε"
        )
    return Inverse(table, weights)
