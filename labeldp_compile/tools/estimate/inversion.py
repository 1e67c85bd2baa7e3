"""Weights that undo a randomizer on average, P·W = I, and which labels it tells apart at all.

Labels with the same row of the table are one class.

For the table P [c, m] of Pr[output | class of labels], a private label o stands for the row W[o]:
its expectation under class y is the y-th unit vector. Among all such W the one of least variance
under uniform labels is taken, W = D⁻¹Pᵀ(PD⁻¹Pᵀ)⁻¹, D the mean probabilities of the outputs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from labeldp_verify.forms import AdditiveRandomizer, TableRandomizer
from numpy.typing import NDArray

from labeldp_compile.probabilities import matrix
from labeldp_compile.tools.inspection import Decoded

Floats = NDArray[np.float64]
MAX_CLASSES, MAX_ENTRIES = 4_000, 16_000_000
_LARGEST_WEIGHT = 1e6  # beyond it, no number of rows that exists brings the noise down
_RESIDUAL = 1e-6


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

    @cached_property
    def last(self) -> NDArray[np.int64]:
        """[c] index of the last label of each class."""
        last = np.zeros(self.count, np.int64)
        np.maximum.at(last, self.of_label, np.arange(len(self.of_label)))
        return last

    @property
    def are_single(self) -> bool:
        """Whether every label is told apart."""
        return self.count == len(self.of_label)

    @property
    def are_intervals(self) -> bool:
        """Whether every class holds neighbouring labels only."""
        return bool((np.diff(self.of_label) >= 0).all())


def label_classes(decoded: Decoded) -> LabelClasses:
    """The classes of a verified artifact."""
    r = decoded.randomizer
    keys: Iterable[Hashable]
    if isinstance(r, AdditiveRandomizer):
        keys = range(r.labels)
    elif isinstance(r, TableRandomizer):
        keys = r.counts
    else:
        # With one window a label, equal offsets are equal rows; different ones hardly ever.
        keys = r.offsets if r.window else [0] * len(r.offsets)
    seen: dict[Hashable, int] = {}
    of_label = [seen.setdefault(key, len(seen)) for key in keys]
    array = np.array(of_label, np.int64)
    return LabelClasses(array, np.unique(array, return_index=True)[1])


def class_matrix(decoded: Decoded, classes: LabelClasses) -> Floats:
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


def invert(decoded: Decoded, classes: LabelClasses) -> Inverse:
    """Raises NotEstimableError if no useful weights exist, or the table is too large."""
    c, m = classes.count, decoded.randomizer.outputs
    if c == 1:
        raise NotEstimableError("every label has the same outputs: they say nothing")
    if c > MAX_CLASSES or c * m > MAX_ENTRIES:
        raise NotEstimableError(
            f"its table of {c:,} × {m:,} probabilities is too large to invert (at most "
            f"{MAX_CLASSES:,} labels that are told apart, and {MAX_ENTRIES:,} probabilities)"
        )
    if m < c:
        raise NotEstimableError(
            f"it has {m:,} outputs for {c:,} labels that it tells apart: different histograms "
            "of labels give the same outputs"
        )
    table = class_matrix(decoded, classes)
    weights = least_variance_inverse(table)
    if weights is None:
        raise NotEstimableError(
            "several labels have nearly the same outputs: no number of rows would bring the noise "
            "of a histogram down; compile with a larger ε"
        )
    return Inverse(table, weights)


def least_variance_inverse(table: Floats) -> Floats | None:
    """W [m, c] with P·W = I for P [c, m], of least variance under uniform classes: D⁻¹Pᵀ(PD⁻¹Pᵀ)⁻¹.

    D has the mean probabilities of the outputs on its diagonal. None if there is no W, or only one
    that is too large to be useful.
    """
    scaled = table / np.maximum(table.mean(axis=0), np.finfo(float).tiny)
    try:
        weights: Floats = np.linalg.solve(scaled @ table.T, scaled).T
    except np.linalg.LinAlgError:
        return None
    residual = np.abs(table @ weights - np.eye(len(table))).max()
    useful = residual <= _RESIDUAL and np.abs(weights).max() <= _LARGEST_WEIGHT
    return weights if useful else None
