"""How often each output stands in a private column, for each group of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from labeldp_runtime.columns.arrow import is_text
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import AdditiveRandomizer, JointDomain, Output, Randomizer
from numpy.typing import NDArray

from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.prior.histogram import table_indexes
from labeldp_compile.tabular import TableReader, refused

MAX_GROUPS = 10_000


@dataclass(frozen=True)
class OutputCounts:
    """The outputs that occur in some rows of one table.

    Attributes:
        outputs: [u] indices of outputs, increasing.
        counts: [u] how many rows have each.
    """

    outputs: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """Rows that were counted."""
        return int(self.counts.sum())

    def mean(self, of_outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean over all rows of what each output [u] stands for, [u] or [u, j]."""
        result: NDArray[np.float64] = self.counts @ of_outputs / self.rows
        return result


@dataclass(frozen=True)
class GroupCounts:
    """Rows that are estimated together: their name, None for nulls, and their outputs by table."""

    name: Any
    by_table: Mapping[int, OutputCounts]

    @property
    def rows(self) -> int:
        """Rows of the group."""
        return sum(counted.rows for counted in self.by_table.values())


def count_outputs(
    reader: TableReader,
    artifact: Artifact,
    by: str | None,
    observer: Observer = QUIET,
) -> list[GroupCounts]:
    """All rows together first, then each group by its name.

    The groups are those of the column ``by``, or else those that the artifact has tables for.
    Raises DataError for an empty table, nulls, values that are no outputs of the row's table, and
    more groups than ``MAX_GROUPS``.
    """
    names: dict[Any, int] = {}
    index = _OutputsOfTables(reader, artifact)
    m = index.size
    keys, counts = _counted(reader, index, by, names, observer)
    every = index.by_table(*_summed(keys % m, counts))
    result = [GroupCounts("all rows", every)]
    if by is None and artifact.groups.columns:
        return result + [GroupCounts(artifact.groups.name(t), {t: every[t]}) for t in every]
    # Keys are in order, so each group is a range of them.
    ends = np.searchsorted(keys, np.arange(len(names) + 1) * m)
    for name, group in sorted(names.items(), key=_by_name):
        here = slice(ends[group], ends[group + 1])
        result.append(GroupCounts(name, index.by_table(keys[here] - group * m, counts[here])))
    return result


class _OutputsOfTables:
    """From a batch to the index [n] of each row's output among those of all tables, one behind the
    other; a private label must be an output of its own table."""

    def __init__(self, reader: TableReader, artifact: Artifact) -> None:
        self._reader, tables = reader, artifact.tables
        self._starts = np.cumsum([0, *(table.outputs for table in tables)])
        self.size = int(self._starts[-1])
        self._tables = table_indexes(reader, artifact.groups)
        self._outputs: Randomizer | Values = tables[0]
        if not isinstance(tables[0], AdditiveRandomizer):
            listed = [r.values for r in tables if not isinstance(r, AdditiveRandomizer)]
            place = {v: i for i, v in enumerate(sorted({v for values in listed for v in values}))}
            self._outputs = Values(tuple(place))
            self._pairs = pa.array(
                t * len(place) + place[v] for t, values in enumerate(listed) for v in values
            )

    def __call__(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        outputs = private_outputs(self._reader, self._outputs, batch)
        if isinstance(self._outputs, AdditiveRandomizer):  # of one table
            return outputs
        wanted = self._tables(batch) * len(self._outputs.values) + outputs
        found = _places(pa.array(wanted), self._pairs)
        if (found < 0).any():
            columns = " and ".join(map(repr, self._reader.label_columns))
            raise refused(
                self._reader.path,
                f"{columns}: there are values that this artifact does not give in their groups: "
                "are they private labels of this artifact, and are the columns of groups "
                "unchanged?",
            )
        return found

    def by_table(
        self, keys: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> dict[int, OutputCounts]:
        """The counts of increasing indices, by the tables that occur."""
        tables = np.searchsorted(self._starts, keys, side="right") - 1
        found = {}
        for table in np.unique(tables).tolist():
            here = tables == table
            found[table] = OutputCounts(keys[here] - self._starts[table], counts[here])
        return found


def _counted(
    reader: TableReader,
    index: _OutputsOfTables,
    by: str | None,
    names: dict[Any, int],
    observer: Observer,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keys, group · m + output, increasing, and how often each occurs; fills ``names``."""
    keys, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    columns = [*reader.label_columns, *reader.group_names, *([by] if by else [])]
    for batch in reader.columns(list(dict.fromkeys(columns))):
        outputs = index(batch)
        groups = np.zeros(len(outputs), np.int64)
        if by:
            groups = _groups(reader.path, by, batch.column(by), names)
        found, times = np.unique(groups * index.size + outputs, return_counts=True)
        keys, counts = _summed(np.concatenate([keys, found]), np.concatenate([counts, times]))
        observer.rows(len(batch))
    if not len(keys):
        raise refused(reader.path, "has no rows")
    return keys, counts


def _summed(
    keys: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each key once, increasing, with the sum of its counts."""
    seen, places = np.unique(keys, return_inverse=True)
    totals = np.zeros(len(seen), np.int64)
    np.add.at(totals, places, counts)
    return seen, totals


@dataclass(frozen=True)
class Values:
    """Outputs, where nothing else of a randomizer matters."""

    values: tuple[Output, ...]


def output_indices(
    path: Path, column: str, randomizer: Randomizer | Values, values: pa.Array
) -> NDArray[np.int64]:
    """[n] the index of the output in each row, exactly. Raises DataError if a value is none."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.null_count:
        raise refused(
            path, f"{column!r} has nulls, which no randomizer gives: is it the private column?"
        )
    indices = _indices(randomizer, values)
    if (indices < 0).any():
        # Which ones is not said: this may be the column of the true labels.
        raise refused(
            path,
            f"{column!r} holds values that this artifact does not give: is it the private column "
            "of this artifact?",
        )
    return indices


def private_outputs(
    reader: TableReader, outputs: Randomizer | Values, batch: pa.RecordBatch
) -> NDArray[np.int64]:
    """[n] the index of the output in each row of the private columns. Raises DataError."""
    domain = reader.domain
    if not isinstance(domain, JointDomain) or isinstance(outputs, AdditiveRandomizer):
        return output_indices(reader.path, reader.column, outputs, batch.column(reader.column))
    numbers = np.zeros(len(batch), np.int64)
    columns = zip(reader.label_columns, domain.column_values, domain.strides, strict=True)
    for name, values, stride in columns:
        places = output_indices(reader.path, name, Values(tuple(values)), batch.column(name))
        numbers += places * stride
    index_of = np.full(domain.size, -1)
    index_of[np.array(outputs.values, dtype=np.int64)] = np.arange(len(outputs.values))
    indices: NDArray[np.int64] = index_of[numbers]
    if (indices < 0).any():
        names = ", ".join(map(repr, reader.label_columns))
        raise refused(
            reader.path,
            f"{names} hold combinations that this artifact does not give: are they the private "
            "columns of this artifact?",
        )
    return indices


def _indices(randomizer: Randomizer | Values, values: pa.Array) -> NDArray[np.int64]:
    """Indices, −1 where a value is no output."""
    text, known = is_text(values.type), pa.array([0.0])
    if not isinstance(randomizer, AdditiveRandomizer):
        known = pa.array(randomizer.values)
    try:
        if not is_text(known.type):
            given = pc.cast(pc.utf8_trim_whitespace(values) if text else values, known.type)
        elif text:
            # As bytes: this may be the column of the true labels, where text need be no UTF-8.
            known, given = known.cast(pa.large_binary()), values.cast(pa.large_binary())
        else:
            return np.full(len(values), -1)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.full(len(values), -1)
    if not isinstance(randomizer, AdditiveRandomizer):
        return _places(given, known)
    numbers = given.to_numpy(zero_copy_only=False)
    points = np.rint((numbers - randomizer.origin) / randomizer.unit)
    points = np.nan_to_num(points, nan=np.inf)
    same = points * randomizer.unit + randomizer.origin == numbers
    same &= (points >= randomizer.low) & (points <= randomizer.high)
    return np.where(same, np.where(same, points, 0) - randomizer.low, -1).astype(np.int64)


def _places(given: pa.Array, known: pa.Array) -> NDArray[np.int64]:
    """[n] the place of each value among those that are known, −1 where it is none of them."""
    if pa.types.is_floating(known.type):  # −0 and 0 are one number
        given, known = pc.add(given, 0.0), pc.add(known, 0.0)
    places = pc.fill_null(pc.index_in(given, value_set=known), -1)
    result: NDArray[np.int64] = places.to_numpy(zero_copy_only=False).astype(np.int64)
    return result


def _groups(path: Path, column: str, values: pa.Array, names: dict[Any, int]) -> NDArray[np.int64]:
    """[n] the number of each row's group; new names are added."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        encoded = pc.dictionary_encode(values, null_encoding="encode")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise refused(path, f"cannot group by {column!r}, a {values.type}") from None
    here = encoded.dictionary.to_pylist()
    numbers = np.array([names.setdefault(_name(value), len(names)) for value in here], np.int64)
    if len(names) > MAX_GROUPS:
        raise refused(path, f"{column!r} has more than {MAX_GROUPS:,} groups")
    result: NDArray[np.int64] = numbers[encoded.indices.to_numpy(zero_copy_only=False)]
    return result


def _name(value: Any) -> Any:
    """One name for all NaN."""
    return "NaN" if value != value else value  # noqa: PLR0124


def _by_name(item: tuple[Any, int]) -> tuple[bool, bool, Any]:
    """Numbers in order, then other values as text, then null."""
    name = item[0]
    number = isinstance(name, int | float)
    return name is None, not number, name if number else str(name)
