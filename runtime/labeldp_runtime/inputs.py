"""The columns that an artifact takes: those of its label, then those of the label's public group.

A label of one column is the combination of one column, and an artifact without groups has no group
columns: nothing else in the runtime asks how many there are.

Groups that are not listed in the certificate, and nulls, use the table of all other groups and
never raise. A group column is accepted by the type that it declares: integers for groups that are
integers, text for text, numbers for bands. Integers are not rounded: a column of floats is refused
for listed integers, and an object that is not an integer is not a listed group.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.coded import Texts
from labeldp_runtime.columns import (
    Like,
    are_one_column,
    column_named,
    gives_columns,
    is_column,
    read_group_column,
    read_labels,
    refuse_misaligned,
)
from labeldp_runtime.domains import (
    Canonical,
    Rules,
    canonical_labels,
    category_rows,
    domain_size,
    places,
)
from labeldp_runtime.elements import Lookup
from labeldp_runtime.errors import GroupError, LabelError
from labeldp_runtime.labels import Missing

Feed = dict[str, NDArray[Any]]
"""The inputs of a graph beside its words: columns [n] by their names."""
Outputs = list[NDArray[Any] | Texts]
"""The outputs of the graph, each [n]."""
PRIVATE_SET = "private_label"  # what the number of a set of combinations is called
_TYPES = {"int64": int, "string": str, "float64": float}


@dataclass(frozen=True)
class InputColumn:
    """One column: its name, its input, and what replaces its nulls.

    Attributes:
        name: None if the certificate names none.
        input: of the graph.
        element_type: of that input: int64, float64 or string.
        stated: the certificate's domain of a label's column, or its column of groups.
        missing: of text, how it becomes codes.
    """

    name: str | None
    input: str
    element_type: str
    stated: dict[str, Any]
    missing: Missing


@dataclass(frozen=True)
class Given:
    """The columns and ids of one call.

    Attributes:
        feed: the columns as the graph takes them.
        labels: the label columns as they came.
        likes: of each, how a private column becomes one of its kind.
    """

    feed: Feed
    labels: Sequence[Any]
    likes: Sequence[Like]

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(next(iter(self.feed.values())))


class Inputs:
    """The columns of an artifact, by its certificate and its graph."""

    def __init__(
        self, stated: dict[str, Any], inputs: Sequence[tuple[str, str]], outputs: int
    ) -> None:
        """``inputs`` are the names and element types of the graph's inputs but for the words,
        ``outputs`` is the number of its outputs.

        Raises KeyError, TypeError or ValueError if certificate and graph do not fit together.
        """
        label, groups = stated["label"], stated["groups"]["columns"] if "groups" in stated else []
        joint = label["domain"]["kind"] == "joint"
        domains = label["domain"]["columns"] if joint else [label["domain"]]
        names = [c["name"] for c in stated["joint"]["columns"]] if joint else [label.get("column")]
        names = [name if isinstance(name, str) else None for name in names]
        if joint and len({*names} - {None}) < max(len(domains), 2):
            raise ValueError("the columns of a label need different names")
        if "groups" in stated and not groups:
            raise ValueError("groups without a column")
        own = len(domains)
        self.labels = tuple(
            InputColumn(name, *given, domain, _missing_label(domain, given[1]))
            for name, domain, given in zip(names, domains, inputs[:own], strict=True)
        )
        self.groups = tuple(
            InputColumn(str(column["name"]), *given, column, _missing_group(column, given[1]))
            for column, given in zip(groups, inputs[own:], strict=True)
        )
        self.columns = self.labels + self.groups
        if {column.name for column in self.groups} & {*names}:
            raise ValueError("the label is its own group")
        self._sets = joint and "sets" in stated and stated["sets"]["blocks"] is not None
        if outputs != (1 if self._sets else own):
            raise ValueError("the outputs of graph and certificate differ")
        self._places = [_group_places(column) for column in self.groups]
        self._tables = _tables(stated["groups"], self._places) if groups else None

    def read(self, labels: Any, groups: Any, columns: Any) -> Given:
        """Labels, and groups or columns of them, as the graph takes them.

        Raises LabelError for label columns that are missing or cannot hold labels, and GroupError
        unless there is one public value a label in each column of groups.
        """
        given = self._label_columns(labels)
        read = [self._read_label(*pair) for pair in zip(self.labels, given, strict=True)]
        feed = {column.input: array for column, (array, _) in zip(self.labels, read, strict=True)}
        if len(lengths := {len(array) for array in feed.values()}) > 1:
            raise LabelError(f"the label columns have different lengths: {sorted(lengths)}")
        for pair in combinations(given, 2):
            refuse_misaligned(*pair, "the labels of another column", LabelError)
        found = Given(feed, given, [like for _, like in read])
        for column, values in zip(self.groups, self._group_columns(groups, columns), strict=True):
            feed[column.input] = _read_group(column, values, found)
        return found

    def answer(self, outputs: Outputs, likes: Sequence[Like]) -> Any:
        """The private columns in the kinds of the labels: by their names if there are several."""
        made = [like(output) for like, output in zip(likes, outputs, strict=False)]
        if len(self.labels) == 1:
            return made[0]
        if self._sets:  # in the kind of the first column, but not under its name
            return made[0].rename(PRIVATE_SET) if hasattr(made[0], "rename") else made[0]
        return dict(zip((column.name for column in self.labels), made, strict=True))

    def canonical(self) -> Callable[[Feed], NDArray[np.uint64]]:
        """The function from a feed to canonical labels [n]: of several columns the number of the
        combination. Raises ValueError for an unknown domain."""
        of_column = canonical_labels if len(self.labels) == 1 else places
        parts = [
            (column.input, of_column(column.stated), np.uint64(domain_size(column.stated)))
            for column in self.labels
        ]

        def numbers(feed: Feed) -> NDArray[np.uint64]:
            number: Any = np.uint64(0)
            for name, of_array, size in parts:
                number = number * size + of_array(feed[name])
            return number

        return numbers

    def tables(self, feed: Feed) -> NDArray[np.uint64] | None:
        """[n] the index of each row's table, as the graph finds it; None where there is one."""
        if self._tables is None:
            return None
        cell: Any = 0
        beyond: Any = False
        for column, (size, of_array) in zip(self.groups, self._places, strict=True):
            place = of_array(feed[column.input])
            cell = cell * size + place
            beyond = beyond | (place == size)
        return self._tables[np.where(beyond, len(self._tables) - 1, cell)]

    def _label_columns(self, labels: Any) -> list[Any]:
        if len(self.labels) == 1:
            return [labels]
        names = [str(column.name) for column in self.labels]
        if labels is None or is_column(labels):
            raise LabelError(
                f"the label has several columns: give {names} by name, in a mapping, a frame or a "
                "table"
            )
        return [column_named(labels, name, "labels", LabelError) for name in names]

    def _group_columns(self, groups: Any, columns: Any) -> list[Any]:
        names = [str(column.name) for column in self.groups]
        if not names:
            if groups is None and columns is None:
                return []
            raise GroupError(
                "this artifact has one table for all labels and takes no groups: leave them out"
            )
        how = f"give columns=, a frame or a mapping with {names}"
        if len(names) == 1:
            how = f"give groups=, from the column {names[0]!r}"
        if (groups is None) == (columns is None):
            raise GroupError(
                f"this artifact has a table for each group: {how}, one group per label"
            )
        if groups is None:
            return [column_named(columns, name, "groups", GroupError) for name in names]
        if len(names) > 1 or gives_columns(groups):
            raise GroupError(f"the groups come from columns by name: {how}")
        return [groups]

    def _read_label(self, column: InputColumn, values: Any) -> tuple[NDArray[Any], Like]:
        try:
            keeps = Rules.of(column.stated).keeps_nulls
            return read_labels(values, column.element_type, column.missing, without_nulls=keeps)
        except LabelError as error:
            if len(self.labels) == 1:
                raise
            raise LabelError(f"the column {column.name!r}: {error}") from None


def _read_group(column: InputColumn, values: Any, given: Given) -> NDArray[Any]:
    for label in given.labels:
        refuse_misaligned(label, values, "groups", GroupError)
        if are_one_column(label, values):
            raise GroupError(
                f"the column for {column.name!r} is the label, which cannot be its own group: "
                "groups are public"
            )
    try:
        read = read_group_column(values, column.element_type, column.missing)
    except LabelError as error:
        reason = str(error).replace("labels", "groups")
        raise GroupError(f"the column {column.name!r}: {reason}") from None
    if len(read) != given.count:
        raise GroupError(f"expected one group per label, got {len(read)} for {given.count} labels")
    return read


def _missing_label(domain: dict[str, Any], element_type: str) -> Missing:
    rules = Rules.of(domain)
    missing: Missing = rules.null
    if element_type != "string":
        return missing
    return Lookup(domain["values"], None if rules.null == rules.default else str(missing))


def _missing_group(stated: dict[str, Any], element_type: str) -> Missing:
    """The value for labels that are not listed; ValueError for a list of another type."""
    wanted = _TYPES[element_type]
    listed = stated["bands"] if wanted is float else stated["values"]
    if type(listed) is not list or not listed or set(map(type, listed)) != {wanted}:
        raise ValueError("the groups have another type than the graph takes")
    if wanted is int and not -(2**63) <= min(listed) <= max(listed) < 2**63:
        raise ValueError("a group does not fit int64")
    if wanted is float:
        return math.nan
    if wanted is str:
        return Lookup(listed)
    return next(-n for n in range(1, len(listed) + 2) if -n not in {*listed})


def _group_places(column: InputColumn) -> tuple[int, Canonical]:
    """How many places a column's groups have, and the function that finds them: what is not listed
    has the place after the last."""
    if column.element_type != "float64":
        listed = column.stated["values"]
        return len(listed), category_rows(listed, len(listed))
    edges = column.stated["bands"]
    if any(low >= high for low, high in pairwise(edges)):
        raise ValueError("the edges of bands do not increase")
    size = len(edges) + 1

    def bands(numbers: NDArray[Any]) -> NDArray[np.uint64]:
        found = np.searchsorted(edges, numbers, side="right")
        return np.where(np.isnan(numbers), size, found).astype(np.uint64)

    return size, bands


def _tables(stated: dict[str, Any], known: list[tuple[int, Canonical]]) -> NDArray[np.uint64]:
    """The table of each cell, and that of all other groups; ValueError for what is no such map."""
    other = len(stated["tables"]) - 1
    tables = stated["table_of_cell"]
    if tables is None:
        tables = range(other)
    elif type(tables) is not list or set(map(type, tables)) != {int}:
        raise ValueError("the tables of the groups are no list of integers")
    cells = math.prod(size for size, _ in known)
    if len(tables) != cells or not 0 <= min(tables) <= max(tables) <= other:
        raise ValueError("the tables of the groups are not one for each")
    return np.array([*tables, other], dtype=np.uint64)
