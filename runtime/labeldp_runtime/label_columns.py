"""The label as an artifact takes it: one column, or several whose combination is one label.

Both are a feed, a column for each of the graph's inputs, and an answer, what becomes of the graph's
outputs. Nothing else in the runtime asks how many columns there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.canonical import canonical_labels, places
from labeldp_runtime.coded import Texts
from labeldp_runtime.columns import column_named, is_column, read_labels, refuse_misaligned
from labeldp_runtime.errors import LabelError
from labeldp_runtime.feed import Feed
from labeldp_runtime.labels import Missing
from labeldp_runtime.lookup import Lookup
from labeldp_runtime.sets import domain_size

Outputs = list[NDArray[Any] | Texts]
"""What the graph answers, each [n]."""
Answer = Callable[[Outputs], Any]
PRIVATE_SET = "private_label"  # what the number of a set of combinations is called


@dataclass(frozen=True)
class LabelColumn:
    """One column: what it is called, where it goes, and what stands in for its nulls.

    Attributes:
        name: None where the certificate names none.
        input: of the graph.
        element_type: of that input: int64, float64 or string.
        domain: the certificate's.
        missing: of text, how it becomes codes.
    """

    name: str | None
    input: str
    element_type: str
    domain: dict[str, Any]
    missing: Missing

    @classmethod
    def of(
        cls, name: Any, domain: dict[str, Any], input_name: str, element_type: str
    ) -> LabelColumn:
        """Of a certificate and a graph; KeyError or TypeError for what is no domain."""
        rule = domain["out_of_domain"]
        missing: Missing = domain["min"] if rule == "clamp" else rule["default"]
        if element_type == "string":
            missing = Lookup(domain["values"])
        name = name if isinstance(name, str) else None
        return cls(name, input_name, element_type, domain, missing)


class LabelColumns(Protocol):
    """The label columns of an artifact."""

    columns: tuple[LabelColumn, ...]

    def read(self, labels: Any) -> tuple[Feed, Sequence[Any], Answer]:
        """What the graph takes, the columns as they were given, and the answer in their kind.

        Raises LabelError for columns that are missing or cannot hold the labels.
        """

    def arrays(self, outputs: Outputs) -> Any:
        """The answer as arrays of numpy."""

    def canonical(self) -> Callable[[Feed], NDArray[np.uint64]]:
        """The function from a feed to canonical labels [n]; ValueError for an unknown domain."""


class OneColumn:
    """The label is a column of its own."""

    def __init__(self, column: LabelColumn) -> None:
        """From its only column."""
        self.columns: tuple[LabelColumn, ...] = (column,)
        self._input, self._type, self._missing = column.input, column.element_type, column.missing

    def read(self, labels: Any) -> tuple[Feed, Sequence[Any], Answer]:
        """See ``LabelColumns``."""
        array, like = read_labels(labels, self._type, self._missing)
        answer = self.arrays if like is None else lambda outputs: like(outputs[0])
        return {self._input: array}, (labels,), answer

    @staticmethod
    def arrays(outputs: Outputs) -> NDArray[Any]:
        """See ``LabelColumns``."""
        return _array(outputs[0])

    def canonical(self) -> Callable[[Feed], NDArray[np.uint64]]:
        """See ``LabelColumns``."""
        of_array = canonical_labels(self.columns[0].domain)
        return lambda feed: of_array(feed[self._input])


class SeveralColumns:
    """The label is the combination of what stands in several columns."""

    def __init__(self, columns: Sequence[LabelColumn], *, sets: bool) -> None:
        """From its columns; ``sets`` where the answer is the number of a set of combinations.

        Raises ValueError unless they have names, each another.
        """
        self.columns = tuple(columns)
        self._names = [column.name for column in columns if column.name is not None]
        if len(set(self._names)) < max(len(self.columns), 2):
            raise ValueError("the columns of a label need names, each another")
        self._sets = sets

    def read(self, labels: Any) -> tuple[Feed, Sequence[Any], Answer]:
        """See ``LabelColumns``."""
        if labels is None or is_column(labels):
            raise LabelError(
                f"the labels have several columns: give {self._names} by their names, as a "
                "mapping, a frame or a table"
            )
        given = [column_named(labels, name, "labels", LabelError) for name in self._names]
        read = [self._read(*pair) for pair in zip(self.columns, given, strict=True)]
        feed = {column.input: array for column, (array, _) in zip(self.columns, read, strict=True)}
        if len(lengths := {len(array) for array in feed.values()}) > 1:
            raise LabelError(f"the label columns have different lengths: {sorted(lengths)}")
        for pair in combinations(given, 2):
            refuse_misaligned(*pair, "the labels of another column", LabelError)
        likes = [like for _, like in read]
        if self._sets:
            return feed, given, lambda outputs: _as_sets(likes[0], outputs[0])
        return (
            feed,
            given,
            lambda outputs: self._by_name(
                [_in_kind(*pair) for pair in zip(likes, outputs, strict=True)]
            ),
        )

    def arrays(self, outputs: Outputs) -> Any:
        """See ``LabelColumns``."""
        return _array(outputs[0]) if self._sets else self._by_name(list(map(_array, outputs)))

    def canonical(self) -> Callable[[Feed], NDArray[np.uint64]]:
        """See ``LabelColumns``: here the number of the combination."""
        parts = [
            (column.input, places(column.domain), np.uint64(domain_size(column.domain)))
            for column in self.columns
        ]

        def numbers(feed: Feed) -> NDArray[np.uint64]:
            number: Any = np.uint64(0)
            for name, of_array, size in parts:
                number = number * size + of_array(feed[name])
            found: NDArray[np.uint64] = number
            return found

        return numbers

    def _read(self, column: LabelColumn, values: Any) -> tuple[NDArray[Any], Any]:
        try:
            return read_labels(values, column.element_type, column.missing)
        except LabelError as error:
            raise LabelError(f"the column {column.name!r}: {error}") from None

    def _by_name(self, columns: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self._names, columns, strict=True))


def label_columns(
    stated: dict[str, Any], inputs: Sequence[tuple[str, str]], outputs: int
) -> LabelColumns:
    """Of a certificate and a graph; KeyError, TypeError or ValueError if they do not fit together.

    ``inputs`` are the names and element types of the graph's inputs for the label, ``outputs`` is
    the number of its outputs.
    """
    label = stated["label"]
    if label["domain"]["kind"] != "joint":
        (given,) = inputs
        if outputs != 1:
            raise ValueError("one column of labels has one private column")
        return OneColumn(LabelColumn.of(label.get("column"), label["domain"], *given))
    named = zip(stated["joint"]["columns"], label["domain"]["columns"], inputs, strict=True)
    columns = [LabelColumn.of(column["name"], domain, *given) for column, domain, given in named]
    sets = "sets" in stated and stated["sets"]["blocks"] is not None
    if outputs != (1 if sets else len(columns)):
        raise ValueError("the graph's outputs are not those of the certificate")
    return SeveralColumns(columns, sets=sets)


def label_inputs(stated: dict[str, Any]) -> int:
    """How many of the graph's inputs are the label's: they come first."""
    domain = stated["label"]["domain"]
    return len(domain["columns"]) if domain["kind"] == "joint" else 1


def _array(private: NDArray[Any] | Texts) -> NDArray[Any]:
    return private.array() if isinstance(private, Texts) else private


def _in_kind(like: Any, private: NDArray[Any] | Texts) -> Any:
    return _array(private) if like is None else like(private)


def _as_sets(like: Any, numbers: NDArray[Any] | Texts) -> Any:
    """The numbers of sets [n] in the kind of a column, but not under its name."""
    column = _in_kind(like, numbers)
    return column.rename(PRIVATE_SET) if hasattr(column, "rename") else column
