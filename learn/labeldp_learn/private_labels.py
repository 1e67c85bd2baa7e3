"""A column of private labels as its artifact explains it: numbers, weights, probabilities, sets.

Each public group may have a table of its own, Pr[output | label]. A row uses the table of its
group. A label of several columns is the combination of their values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from labeldp_verify import read_artifact
from labeldp_verify.analysis import lattice_indices, value
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import AdditiveRandomizer, CategoricalDomain, Groups, JointDomain, sets_of
from labeldp_verify.opening import find_table, open_artifact
from numpy.typing import NDArray

from labeldp_learn.columns import (
    PrivateLabelError,
    array_of,
    indices_in,
    is_missing,
    named_columns,
    names_of,
)
from labeldp_learn.inversion import Floats
from labeldp_learn.private_rows import PrivateRows

Source = Artifact | str | PathLike[str]
_ARTIFACTS = 8  # that stay open, so that a grid search opens none twice


class Probabilities(NamedTuple):
    """Pr[output | label] of one table.

    Attributes:
        labels: [k] names of the rows.
        outputs: [m] names of the columns: private labels as they are in a column. Numbers of sets,
            if the artifact answers with sets; combinations by name, if the label has several
            columns.
        values: [k, m] float64; rows sum to 1.
    """

    labels: list[Any]
    outputs: list[Any]
    values: Floats


class Expanded(NamedTuple):
    """Sets as weighted rows: one for each label in the set of a row.

    Attributes:
        rows: [r] the number of the row.
        labels: [r] the place of a label in its set, among ``PrivateLabels.labels``.
        weights: [r] 1 over the size of the set: those of a row sum to 1.
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    weights: Floats


class PrivateLabels:
    """A column of n private labels, with the artifact that they are outputs of.

    Args:
        artifact: a path, or what ``labeldp_verify.opening.open_artifact`` returns. A file is
            verified when it is opened.
        column: [n] private labels, from pandas, Polars, Arrow, numpy or a list. For a label of
            several columns a frame or mapping with these columns, or an array [n, c] in their
            order.
        columns: the public columns that the groups come from, by name, if the artifact has a table
            for each group. True labels never belong here.
        counts: [n] how many rows each row stands for; 1 by default.

    Attributes:
        opened: the verified artifact.
        tables: [n] the number of each row's table.
        codes: [n] the index of each private label among the outputs of all tables, one after
            another. With one table, that is the column of ``matrix``. A loss for a boosting library
            takes these numbers for labels.

    Raises PrivateLabelError if a value is no output of its row's table, InputError if the artifact
    cannot be read, and VerificationError if it does not verify.

    Example:
        >>> from labeldp_learn import PrivateLabels
        >>> from labeldp_runtime import Randomizer
        >>> from pathlib import Path
        >>> from labeldp_compile import compile_spec
        >>> _ = compile_spec("specs/health-rating.yaml").write(Path("build"))
        >>> private = Randomizer.load("build/health-rating.onnx")(["good", "fair", "poor"])
        >>> labels = PrivateLabels("build/health-rating.onnx", private)
        >>> labels.targets().shape, labels.matrix().values.shape
        ((3, 4), (4, 4))
    """

    opened: Artifact
    tables: NDArray[np.int64]
    codes: NDArray[np.int64]
    counts: Any

    def __init__(self, artifact: Source, column: Any, columns: Any = None, counts: Any = None):
        """Look every private label up."""
        self.opened, self.counts = opened(artifact), counts
        given = _label_columns(self.opened, column)
        self.tables = tables_of(self.opened.groups, columns, len(given[0]))
        self.codes = _codes(self.opened, given, self.tables)

    @classmethod
    def of_outputs(
        cls, artifact: Artifact, codes: NDArray[np.int64], counts: Any = None
    ) -> PrivateLabels:
        """Private labels that were read before, by their ``codes``."""
        self = cls.__new__(cls)
        self.opened, self.codes, self.counts = artifact, codes, counts
        self.tables = np.searchsorted(_starts(artifact), codes, side="right") - 1
        return self

    def subset(self, rows: NDArray[np.int64]) -> PrivateLabels:
        """Those of some rows, by their numbers."""
        counts = None if self.counts is None else np.asarray(self.counts)[rows]
        return PrivateLabels.of_outputs(self.opened, self.codes[rows], counts)

    @property
    def rows(self) -> int:
        """n."""
        return len(self.codes)

    @cached_property
    def labels(self) -> list[Any]:
        """[k] the labels that can be true, in the order of the artifact; combinations by name."""
        return labels_of(self.opened)

    @cached_property
    def parts(self) -> list[PrivateRows]:
        """The rows of each table that has any. Raises PrivateLabelError for none or odd counts."""
        if not self.rows:
            raise PrivateLabelError("there are no rows with private labels")
        counts = np.ones(self.rows) if self.counts is None else np.asarray(self.counts, np.float64)
        if counts.shape != (self.rows,) or not (counts >= 0).all() or not counts.any():
            raise PrivateLabelError("counts, or weights, are a number from 0 on for each row")
        codes = self.codes - _starts(self.opened)[self.tables]
        return PrivateRows.by_table(self.opened, self.tables, codes, counts)

    @property
    def answers_with_sets(self) -> bool:
        """Whether a private label is the number of a set of labels."""
        return self.opened.answers_with_sets

    def targets(self, of: str | None = None) -> Floats:
        """Numbers to fit, whose mean under every true label is that label.

        Numbers [n] are the values of least variance, for the shares of labels that make these
        private labels likeliest. Labels that have the same outputs are replaced by their mean;
        ``bias`` says by how much. Classes give [n, k], the one-hot row of the label on average, of
        least variance under uniform labels. Entries may be negative and beyond 1, and rows sum
        to 1. ``of`` names one column of a label of several columns.

        Raises PrivateLabelError if no useful weights remove the noise of classes.
        """
        return self._rows(lambda part: part.values(of))

    @property
    def bias(self) -> float:
        """√(mean squared bias) of the targets of numbers over the standard deviation of labels.

        For the estimated shares of labels. About 0 if the artifact is unbiased.
        """
        square = self._mean(lambda part: part.squared_bias)
        return float(np.sqrt(square / max(self.spread, 1e-300)))

    @cached_property
    def spread(self) -> float:
        """The estimated variance of the true labels; of classes, summed over the one-hot row."""
        shares, labels = self.shares(), self.parts[0].goal()
        return float(shares @ (labels - shares @ labels) ** 2 @ np.ones(labels.shape[1]))

    @cached_property
    def noise(self) -> float:
        """The variance that randomizing added to a target, on average; of classes, summed."""
        return float(self._mean(lambda part: part.noise))

    def unbiased(self, goal: Floats) -> Floats:
        """[n, j] numbers whose mean under the i-th label is the row i of ``goal`` [k, j].

        They have the least variance, as ``targets``. Raises PrivateLabelError if labels that differ
        in ``goal`` have nearly the same outputs.
        """
        return self._rows(lambda part: part.unbiased(goal)[part.codes])

    def shares(self) -> Floats:
        """[k] the estimated shares of the labels in these rows: those that are likeliest."""
        return np.asarray(self._mean(lambda part: part.shares))

    def weights(self) -> Floats:
        """[n] inverse variances of the targets, scaled to a mean of 1.

        They depend on a row's table, and never on its label, so that weighted means stay right.
        """
        weights = self._rows(
            lambda part: np.full(len(part.rows), 1 / max(self.spread + part.noise, 1e-300))
        )
        return np.asarray(weights / weights.mean())

    def matrix(self, group: str | None = None) -> Probabilities:
        """Pr[output | label], with names.

        ``group`` says which table if the artifact has several, as ``labeldp report --group``: the
        values of the group columns, separated by commas, or ``other``.
        """
        groups = self.opened.groups
        if (group is None) == bool(groups.columns):
            how = "say which group" if group is None else "has one table: leave out group"
            raise PrivateLabelError(f"{self.opened.certificate.name}: {how}")
        number = 0 if group is None else find_table(groups, group)
        return probabilities(self.opened, number)

    def members(self) -> list[tuple[Any, ...]]:
        """[n] the labels in each row's set; without sets, the label or number alone."""
        members: list[tuple[Any, ...]] = [()] * self.rows
        for part in self.parts:
            of_outputs = part.members(self.labels)
            for row, code in zip(part.rows.tolist(), part.codes.tolist(), strict=True):
                members[row] = of_outputs[code]
        return members

    def expanded(self) -> Expanded:
        """Every label of a row's set as a row of its own, with weights that sum to 1.

        Raises PrivateLabelError if private labels are neither sets nor labels.
        """
        pieces = []
        for part in self.parts:
            spread = part.spreading()
            if spread is None:
                raise PrivateLabelError("private labels are numbers here, and no sets of labels")
            which, label = np.nonzero(spread[part.codes])
            pieces.append((part.rows[which], label, spread[part.codes[which], label]))
        rows, labels, weights = map(np.concatenate, zip(*pieces, strict=True))
        order = np.argsort(rows, kind="stable")
        return Expanded(rows[order], labels[order], weights[order])

    def _mean(self, of: Callable[[PrivateRows], Any]) -> Any:
        """The mean over all rows of a number, or an array, of their table."""
        n = sum(part.count for part in self.parts)
        return sum(part.count * of(part) for part in self.parts) / n

    def _rows(self, of: Callable[[PrivateRows], Floats]) -> Floats:
        """[n] or [n, j] the numbers of each row, from those of the rows of each table."""
        numbers = [of(part) for part in self.parts]
        every = np.zeros((self.rows, *numbers[0].shape[1:]))
        for part, own in zip(self.parts, numbers, strict=True):
            every[part.rows] = own
        return every


def opened(source: Source) -> Artifact:
    """The artifact of a path, verified once, or an Artifact as it is.

    Raises InputError if the file cannot be read, and VerificationError if a check fails.
    """
    if isinstance(source, Artifact):
        return source
    if not isinstance(source, str | PathLike):
        raise PrivateLabelError(f"artifact is a path or an Artifact, not {type(source).__name__}")
    path = Path(source)
    return _verified(path, hashlib.sha256(read_artifact(path)).hexdigest())


@lru_cache(maxsize=_ARTIFACTS)
def _verified(path: Path, digest: str) -> Artifact:
    """``digest`` tells apart files that had the same path."""
    artifact = open_artifact(path)
    if artifact.sha256 and artifact.sha256 != digest:
        raise PrivateLabelError(f"{path}: was replaced while it was read")
    return artifact


def labels_of(artifact: Artifact) -> list[Any]:
    """[k] the labels of an artifact; combinations by name."""
    domain = artifact.label
    if isinstance(domain, JointDomain):
        return [domain.name(number) for number in domain.values]
    return list(domain.listed)


def probabilities(artifact: Artifact, table: int) -> Probabilities:
    """Pr[output | label] of one table, with names."""
    part = PrivateRows.empty(artifact, table)
    randomizer, domain = artifact.tables[table], artifact.label
    outputs: list[Any] = [value(randomizer, o) for o in range(randomizer.outputs)]
    if isinstance(domain, JointDomain) and sets_of(randomizer) is None:
        outputs = [domain.name(number) for number in outputs]
    return Probabilities(labels_of(artifact), outputs, part.matrix)


def is_numeric(artifact: Artifact) -> bool:
    """Whether the labels of an artifact are numbers, and its private labels are no sets."""
    return not isinstance(artifact.label, CategoricalDomain) and not artifact.answers_with_sets


def tables_of(groups: Groups, columns: Any, rows: int) -> NDArray[np.int64]:
    """[n] the number of each row's table, by the public columns of its group.

    Raises PrivateLabelError if they are missing or differ in length.
    """
    if not groups.columns:
        return np.zeros(rows, np.int64)
    names = [column.name for column in groups.columns]
    if columns is None:
        listed = ", ".join(map(repr, names))
        raise PrivateLabelError(
            f"the artifact has a table for each group: give the columns {listed} of the rows"
        )
    given = named_columns(columns, names, "the groups")
    if {len(values) for values in given} != {rows}:
        raise PrivateLabelError("the columns of the groups and the labels differ in length")
    cell, is_listed = np.zeros(rows, np.int64), np.ones(rows, bool)
    for column, stride, values in zip(groups.columns, groups.strides, given, strict=True):
        if column.values is not None:
            index = indices_in(values, column.values)
        else:
            if values.dtype.kind not in "buif":
                raise PrivateLabelError(f"the column {column.name!r} of the groups is of numbers")
            numbers = values.astype(np.float64)
            index = np.searchsorted(column.edges, numbers, side="right")
            index = np.where(np.isnan(numbers), -1, index)
        is_listed &= index >= 0
        cell += stride * np.maximum(index, 0)
    of_cell = np.array(groups.table_of_cell)[np.where(is_listed, cell, 0)]
    return np.where(is_listed, of_cell, groups.own_tables)


def _starts(artifact: Artifact) -> NDArray[np.int64]:
    """[T] the code of the first output of each table."""
    return np.cumsum([0, *(table.outputs for table in artifact.tables[:-1])])


def _label_columns(artifact: Artifact, column: Any) -> list[NDArray[Any]]:
    """The columns [n] of private labels, of one length, without missing ones."""
    names = artifact.certificate.label_columns
    if not isinstance(artifact.label, JointDomain) or artifact.answers_with_sets:
        array = array_of(column)
        given = [array[:, 0] if array.shape[1:] == (1,) else array]
    elif names_of(column) is not None:
        given = named_columns(column, names, "the private labels")
    else:
        array = array_of(column)
        if array.shape[1:] != (len(names),):
            listed = ", ".join(map(repr, names))
            raise PrivateLabelError(f"the private labels are the columns {listed}, in this order")
        given = list(array.T)
    if any(one.ndim != 1 for one in given):
        raise PrivateLabelError("the private labels are one column")
    if len({len(one) for one in given}) > 1:
        raise PrivateLabelError("the columns of the private labels differ in length")
    if missing := int(np.any([is_missing(one) for one in given], axis=0).sum()):
        raise PrivateLabelError(
            f"{missing:,} of {len(given[0]):,} rows have no private label (null): leave them "
            "out first"
        )
    return given


def _codes(
    artifact: Artifact, given: Sequence[NDArray[Any]], tables: NDArray[np.int64]
) -> NDArray[np.int64]:
    """[n] the index of each private label among the outputs of all tables."""
    domain, values, first = artifact.label, given[0], artifact.tables[0]
    codes = np.full(len(values), -1)
    if isinstance(first, AdditiveRandomizer):
        if values.dtype.kind in "buif":
            codes = lattice_indices(first, values.astype(np.float64))
    else:
        if isinstance(domain, JointDomain) and not artifact.answers_with_sets:
            pairs = zip(given, domain.column_values, strict=True)
            indices = np.array([indices_in(column, listed) for column, listed in pairs])
            values = np.where((indices >= 0).all(axis=0), domain.strides @ indices, -1)
        for i in np.unique(tables).tolist():
            rows, randomizer = np.flatnonzero(tables == i), artifact.tables[i]
            assert not isinstance(randomizer, AdditiveRandomizer)
            codes[rows] = indices_in(values[rows], randomizer.values)
    if (codes < 0).any():
        where = " in their groups" if artifact.groups.columns else ""
        raise PrivateLabelError(
            f"some values are not outputs of {artifact.certificate.name}{where}: are they its "
            "private labels?"
        )
    return codes + _starts(artifact)[tables]
