"""What an artifact says of a column of private labels: numbers, weights, probabilities, sets.

Each public group may have a table of its own, Pr[output | label]. A row uses the table of its
group. A label of several columns is the combination of their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from labeldp_verify.analysis import lattice_indices, value
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import AdditiveRandomizer, CategoricalDomain, Groups, JointDomain, sets_of
from labeldp_verify.opening import find_table
from numpy.typing import NDArray

from labeldp_learn.columns import array_of, is_missing, named_columns, names_of, places_in
from labeldp_learn.errors import PrivateLabelError
from labeldp_learn.opened import Source, opened
from labeldp_learn.private_rows import Floats, PrivateRows


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


@dataclass(frozen=True)
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

    artifact: Source
    column: Any
    columns: Any = None
    counts: Any = None

    def __post_init__(self) -> None:
        """Look every private label up."""
        self._codes  # noqa: B018  # raises for what is not an output

    @cached_property
    def opened(self) -> Artifact:
        """The verified artifact."""
        return opened(self.artifact)

    @property
    def rows(self) -> int:
        """n."""
        return len(self._codes)

    @cached_property
    def labels(self) -> list[Any]:
        """[k] the labels that can be true, in the order of the artifact; combinations by name."""
        return labels_of(self.opened)

    @cached_property
    def tables(self) -> NDArray[np.int64]:
        """[n] the number of each row's table."""
        return tables_of(self.opened.groups, self.columns, self._given[0].shape[0])

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """[n] the place of each private label among the outputs of all tables, one after another.

        With one table, that is the column of ``matrix``. A loss for a boosting library takes these
        numbers for labels.
        """
        if isinstance(self.opened.tables[0], AdditiveRandomizer):
            return self._codes
        starts = np.cumsum([0, *(table.outputs for table in self.opened.tables)])
        return np.asarray(starts[self.tables] + self._codes)

    @cached_property
    def parts(self) -> list[PrivateRows]:
        """The rows of each table that has any. Raises PrivateLabelError for none or odd counts."""
        if not self.rows:
            raise PrivateLabelError("there are no rows with private labels")
        order = np.argsort(self.tables, kind="stable")
        numbers, starts = np.unique(self.tables[order], return_index=True)
        counts = np.ones(self.rows) if self.counts is None else np.asarray(self.counts, np.float64)
        if counts.shape != (self.rows,) or not (counts >= 0).all() or not counts.any():
            raise PrivateLabelError("counts, or weights, are a number from 0 on for each row")
        groups = zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)
        return [
            PrivateRows(self.opened, i, rows, self._codes[rows], counts[rows]) for i, rows in groups
        ]

    @property
    def answers_with_sets(self) -> bool:
        """Whether a private label is the number of a set of labels."""
        return self.opened.answers_with_sets

    def targets(self, of: str | None = None) -> Floats:
        """Numbers to fit, whose mean under every true label is that label.

        Of numbers [n]: the values of least variance, for the shares of labels that make these
        private labels likeliest. Labels that have the same outputs are replaced by their mean;
        ``bias`` says by how much. Of classes [n, k]: the one-hot row of the label on average, of
        least variance under uniform labels. Entries may be negative and beyond 1, and rows sum
        to 1. ``of`` names one column of a label of several columns.

        Raises PrivateLabelError if no useful weights remove the noise of classes.
        """
        found = [part.values(of) for part in self.parts]
        result = np.zeros((self.rows, *found[0].shape[1:]))
        for part, values in zip(self.parts, found, strict=True):
            result[part.rows] = values
        return result

    @property
    def bias(self) -> float:
        """Of the targets of numbers: √(mean squared bias) over the standard deviation of labels.

        For the estimated shares of labels. About 0 if the artifact is unbiased.
        """
        n = sum(part.count for part in self.parts)
        square = sum(part.count * part.squared_bias for part in self.parts) / n
        return float(np.sqrt(square / max(self.spread, 1e-300)))

    @cached_property
    def spread(self) -> float:
        """The estimated variance of the true labels; of classes, summed over the one-hot row."""
        shares, labels = self.shares(), self.parts[0].goal()
        return float(shares @ (labels - shares @ labels) ** 2 @ np.ones(labels.shape[1]))

    @cached_property
    def noise(self) -> float:
        """The variance that randomizing added to a target, on average; of classes, summed."""
        n = sum(part.count for part in self.parts)
        return float(sum(part.count * part.noise for part in self.parts) / n)

    def unbiased(self, goal: Floats, columns: NDArray[np.int64] | None = None) -> Floats:
        """[n, j] numbers whose mean under the i-th label is the row i of ``goal`` [k, j].

        Of least variance, as ``targets``. With ``columns`` [n], only the number in this column of
        each row: [n]. Raises PrivateLabelError if labels that differ in ``goal`` have nearly the
        same outputs.
        """
        found = np.zeros((self.rows, goal.shape[1]) if columns is None else self.rows)
        for part in self.parts:
            own = part.codes if columns is None else (part.codes, columns[part.rows])
            found[part.rows] = part.unbiased(goal)[own]
        return found

    def subset(self, rows: NDArray[np.int64]) -> PrivateLabels:
        """Those of some rows, by their numbers."""
        return _Subset(self, rows)

    def shares(self) -> Floats:
        """[k] the estimated shares of the labels in these rows: those that are likeliest."""
        n = sum(part.count for part in self.parts)
        return np.asarray(sum(part.count * part.shares for part in self.parts) / n)

    def weights(self) -> Floats:
        """[n] inverse variances of the targets, scaled to a mean of 1.

        They depend on a row's table, and never on its label, so that weighted means stay right.
        """
        found = np.zeros(self.rows)
        for part in self.parts:
            found[part.rows] = 1 / max(self.spread + part.noise, 1e-300)
        return np.asarray(found / found.mean())

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
        found: list[tuple[Any, ...]] = [()] * self.rows
        for part in self.parts:
            named = part.members(self.labels)
            for row, code in zip(part.rows.tolist(), part.codes.tolist(), strict=True):
                found[row] = named[code]
        return found

    def expanded(self) -> Expanded:
        """Every label of a row's set as a row of its own, with weights that sum to 1.

        Raises PrivateLabelError if private labels are neither sets nor labels.
        """
        rows, labels, weights = [], [], []
        for part in self.parts:
            spread = part.spreading()
            if spread is None:
                raise PrivateLabelError("private labels are numbers here, and no sets of labels")
            which, label = np.nonzero(spread[part.codes])
            rows.append(part.rows[which])
            labels.append(label)
            weights.append(spread[part.codes[which], label])
        order = np.argsort(np.concatenate(rows), kind="stable")
        return Expanded(
            np.concatenate(rows)[order],
            np.concatenate(labels)[order],
            np.concatenate(weights)[order],
        )

    @cached_property
    def _given(self) -> list[NDArray[Any]]:
        """The columns [n] of the private labels."""
        domain = self.opened.label
        if not isinstance(domain, JointDomain) or self.answers_with_sets:
            found = array_of(self.column)
            return [found[:, 0] if found.shape[1:] == (1,) else found]
        names = self.opened.certificate.label_columns
        if names_of(self.column) is not None:
            return named_columns(self.column, names, "the private labels")
        found = array_of(self.column)
        if found.shape[1:] != (len(names),):
            listed = ", ".join(map(repr, names))
            raise PrivateLabelError(f"the private labels are the columns {listed}, in this order")
        return list(found.T)

    @cached_property
    def _codes(self) -> NDArray[np.int64]:
        """[n] the place of each private label among the outputs of its table."""
        given, artifact = self._given, self.opened
        if any(column.ndim != 1 for column in given):
            raise PrivateLabelError("the private labels are one column")
        if len({len(column) for column in given}) > 1:
            raise PrivateLabelError("the columns of the private labels differ in length")
        first = artifact.tables[0]
        if missing := int(np.any([is_missing(column) for column in given], axis=0).sum()):
            raise PrivateLabelError(
                f"{missing:,} of {len(given[0]):,} rows have no private label (null): leave them "
                "out first"
            )
        if isinstance(first, AdditiveRandomizer):
            numbers = given[0]
            if numbers.dtype.kind not in "buif":
                raise self._no_outputs()
            found = lattice_indices(first, numbers.astype(np.float64))
        else:
            found = self._listed_codes(given)
        if (found < 0).any():
            raise self._no_outputs()
        return found

    def _listed_codes(self, given: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
        domain, values = self.opened.label, given[0]
        if isinstance(domain, JointDomain) and not self.answers_with_sets:
            places = [
                places_in(column, known)
                for column, known in zip(given, domain.column_values, strict=True)
            ]
            known = np.all([place >= 0 for place in places], axis=0)
            numbers = sum(p * s for p, s in zip(places, domain.strides, strict=True))
            values = np.where(known, numbers, -1)
        found = np.full(len(values), -1)
        for i in np.unique(self.tables).tolist():
            rows = np.flatnonzero(self.tables == i)
            randomizer = self.opened.tables[i]
            assert not isinstance(randomizer, AdditiveRandomizer)
            found[rows] = places_in(values[rows], randomizer.values)
        return found

    def _no_outputs(self) -> PrivateLabelError:
        where = " in their groups" if self.opened.groups.columns else ""
        return PrivateLabelError(
            f"some values are not outputs of {self.opened.certificate.name}{where}: are they its "
            "private labels?"
        )


class _Subset(PrivateLabels):
    """Some rows of private labels that were read before."""

    def __init__(self, whole: PrivateLabels, rows: NDArray[np.int64]) -> None:
        counts = None if whole.counts is None else np.asarray(whole.counts)[rows]
        for name, given in (("artifact", whole.opened), ("counts", counts), ("column", None)):
            object.__setattr__(self, name, given)
        self.__dict__["_codes"] = whole._codes[rows]
        self.__dict__["tables"] = whole.tables[rows]


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
    cell, listed_row = np.zeros(rows, np.int64), np.ones(rows, bool)
    for column, stride, values in zip(groups.columns, groups.strides, given, strict=True):
        if column.values is not None:
            place = places_in(values, column.values)
        else:
            if values.dtype.kind not in "buif":
                raise PrivateLabelError(f"the column {column.name!r} of the groups is of numbers")
            numbers = values.astype(np.float64)
            place = np.searchsorted(column.edges, numbers, side="right")
            place = np.where(np.isnan(numbers), -1, place)
        listed_row &= place >= 0
        cell += stride * np.maximum(place, 0)
    own = np.array(groups.table_of_cell)[np.where(listed_row, cell, 0)]
    return np.where(listed_row, own, groups.own_tables)


def is_numeric(artifact: Artifact) -> bool:
    """Whether the labels of an artifact are numbers, and its private labels are no sets."""
    return not isinstance(artifact.label, CategoricalDomain) and not artifact.answers_with_sets
