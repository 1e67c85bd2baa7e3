"""How often each output occurs in a private column, for each group of rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from labeldp_runtime.columns.arrow import is_text
from labeldp_verify.analysis import lattice_indices
from labeldp_verify.artifact import Artifact
from labeldp_verify.claims import person_epsilon
from labeldp_verify.forms import AdditiveRandomizer, JointDomain, Output
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.prior.histogram import labelled, table_indexes
from labeldp_compile.tabular.columns import chosen_rows
from labeldp_compile.tabular.csv_file import empty_is_null
from labeldp_compile.tabular.reader import TableReader
from labeldp_compile.tools.estimate.cells import Cell, cells_of

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
        """The mean over all rows of a value per output, [u] or [u, j]."""
        return self.counts @ of_outputs / self.rows


@dataclass(frozen=True)
class GroupCounts:
    """Rows that are estimated together.

    Attributes:
        cell: their value in each column of the groups, None for nulls; () for all rows.
        by_table: their outputs, by table. The tables of several artifacts are numbered one after
            the other.
    """

    cell: Cell
    by_table: Mapping[int, OutputCounts]

    @property
    def rows(self) -> int:
        """Rows of the group."""
        return sum(counted.rows for counted in self.by_table.values())


def count_outputs(
    sources: Sequence[tuple[TableReader, Artifact]],
    by: Sequence[str] = (),
    observer: Observer = QUIET,
) -> list[GroupCounts]:
    """The counts of all rows of all sources, then those of each group by its name.

    The groups are the combinations of the columns ``by`` that occur, or without them those of the
    artifacts' groups. Rows that ``randomize`` left without a label, because they are beyond a
    person's bound, are not counted. Raises DataError for an empty table, for other nulls, for
    values that are not outputs of the row's table, and for more than ``MAX_GROUPS`` combinations of
    ``by``.
    """
    known: dict[Cell, tuple[int, Any]] = {}  # the number and the rank of each
    starts = np.cumsum([0, *(table.outputs for _, a in sources for table in a.tables)])
    m, first = int(starts[-1]), 0
    # Keys, cell · m + output, increasing, and how often each occurs.
    keys, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    for reader, artifact in sources:
        index, cells_in = _OutputsOfTables(reader, artifact), cells_of(reader, artifact.groups, by)
        columns = dict.fromkeys([*reader.label_columns, *reader.group_names, *by])
        for every in reader.columns(list(columns)):
            has = has_labels(reader, artifact, every)
            batch, _ = labelled(reader, chosen_rows(every, has), None)
            cells, places = cells_in(batch)
            here = [known.setdefault(cell, (len(known), rank))[0] for cell, rank in cells]
            if by and len(known) > MAX_GROUPS:
                names = " and ".join(map(repr, by))
                raise refused(reader.path, f"{names}: more than {MAX_GROUPS:,} groups")
            found, times = np.unique(
                index(batch) + first + m * np.array(here, np.int64)[places], return_counts=True
            )
            keys, counts = _summed(np.concatenate([keys, found]), np.concatenate([counts, times]))
            observer.rows(len(batch))
        first += index.size
    if not len(keys):
        raise refused(sources[0][0].path, "has no rows")
    result = [GroupCounts((), _by_table(starts, *_summed(keys % m, counts)))]
    # Keys are in order, so each cell is a range of them.
    ends = np.searchsorted(keys, np.arange(len(known) + 1) * m)
    for cell in sorted(filter(None, known), key=lambda cell: known[cell][1]):
        number, _ = known[cell]
        part = slice(ends[number], ends[number + 1])
        counted = _by_table(starts, keys[part] - number * m, counts[part])
        result.append(GroupCounts(cell, counted))
    return result


def has_labels(
    reader: TableReader, artifact: Artifact, batch: pa.RecordBatch | pa.Table
) -> NDArray[np.bool_]:
    """Which rows [n] have a private label, if the artifact lets rows be without one.

    ``--beyond null`` leaves rows without a label, and so does ``nulls: public``.
    """
    has = np.ones(len(batch), dtype=bool)
    bounded = person_epsilon(artifact.certificate) is not None
    for name in reader.label_columns if bounded or artifact.label.keeps_nulls else ():
        column = batch.column(name)
        column = empty_is_null(column) if reader.is_text else column
        has &= column.is_valid().to_numpy(zero_copy_only=False)
    return has


def _by_table(
    starts: NDArray[np.int64], keys: NDArray[np.int64], counts: NDArray[np.int64]
) -> dict[int, OutputCounts]:
    """The counts of increasing indices, by the tables that occur; a table begins at each start."""
    tables = np.searchsorted(starts, keys, side="right") - 1
    found = {}
    for table in np.unique(tables).tolist():
        here = tables == table
        found[table] = OutputCounts(keys[here] - starts[table], counts[here])
    return found


class _OutputsOfTables:
    """From a batch to the index [n] of each row's output among the outputs of all tables, one table
    after the other. A private label must be an output of its own table."""

    def __init__(self, reader: TableReader, artifact: Artifact) -> None:
        self._reader, self._randomizer = reader, artifact.tables[0]
        self.size = sum(table.outputs for table in artifact.tables)
        self._tables = table_indexes(reader, artifact.groups)
        listed = [() if isinstance(r, AdditiveRandomizer) else r.values for r in artifact.tables]
        distinct = sorted({value for values in listed for value in values})
        # Each column's values, and how much a step in them moves the index of a private label.
        self._columns: list[tuple[str, tuple[Output, ...], int]]
        if isinstance(reader.domain, JointDomain):
            values = map(tuple, reader.domain.column_values)
            names, strides = reader.label_columns, reader.domain.strides
            self._columns = list(zip(names, values, strides, strict=True))
            self._places = reader.domain.size
            place = {number: int(number) for number in distinct}
        else:
            self._columns = [(reader.column, tuple(distinct), 1)]
            self._places = len(distinct)
            place = {value: i for i, value in enumerate(distinct)}
        self._pairs = pa.array(
            t * self._places + place[value] for t, values in enumerate(listed) for value in values
        )

    def __call__(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        path = self._reader.path
        if isinstance(self._randomizer, AdditiveRandomizer):  # of one column and one table
            name = self._reader.column
            return output_indices(path, name, self._randomizer, batch.column(name))
        wanted = self._tables(batch) * self._places
        for name, values, stride in self._columns:
            wanted += output_indices(path, name, values, batch.column(name)) * stride
        found = _places(pa.array(wanted), self._pairs)
        if (found < 0).any():
            names = " and ".join(repr(name) for name, _, _ in self._columns)
            where, what = "", "are they private labels of this artifact"
            if self._reader.group_names:
                where = " in their groups"
                what = f"{what}, and are the columns of the groups unchanged"
            raise refused(
                path, f"{names}: some values are not outputs of this artifact{where}: {what}?"
            )
        return found


def _summed(
    keys: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each key once, increasing, with the sum of its counts."""
    seen, places = np.unique(keys, return_inverse=True)
    totals = np.zeros(len(seen), np.int64)
    np.add.at(totals, places, counts)
    return seen, totals


def output_indices(
    path: Path, column: str, outputs: AdditiveRandomizer | Sequence[Output], values: pa.Array
) -> NDArray[np.int64]:
    """[n] the exact index of each row's output. Raises DataError if a value is not an output."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if values.null_count:
        raise refused(
            path, f"{column!r} has nulls, which no randomizer returns: is it the private column?"
        )
    indices = _indices(outputs, values)
    if (indices < 0).any():
        # The message names no value, because this may be the column of the true labels.
        raise refused(
            path,
            f"{column!r} has values that are not outputs of this artifact: is it its private "
            "column?",
        )
    return indices


def _indices(outputs: AdditiveRandomizer | Sequence[Output], values: pa.Array) -> NDArray[np.int64]:
    """Indices; −1 if a value is not an output."""
    text = is_text(values.type)
    known = pa.array([0.0] if isinstance(outputs, AdditiveRandomizer) else outputs)
    try:
        if not is_text(known.type):
            given = pc.cast(pc.utf8_trim_whitespace(values) if text else values, known.type)
        elif text:
            # As bytes: this may be the column of the true labels, whose text may not be UTF-8.
            known, given = known.cast(pa.large_binary()), values.cast(pa.large_binary())
        else:
            return np.full(len(values), -1)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.full(len(values), -1)
    if isinstance(outputs, AdditiveRandomizer):
        return lattice_indices(outputs, given.to_numpy(zero_copy_only=False))
    return _places(given, known)


def _places(given: pa.Array, known: pa.Array) -> NDArray[np.int64]:
    """[n] the index of each value among the known ones; −1 if it is not one of them."""
    if pa.types.is_floating(known.type):  # −0 and 0 are the same number
        given, known = pc.add(given, 0.0), pc.add(known, 0.0)
    places = pc.fill_null(pc.index_in(given, value_set=known), -1)
    return places.to_numpy(zero_copy_only=False).astype(np.int64)
