"""How often each output occurs in private columns, for each group of rows.

Groups of rows are the combinations of values of public columns.

Tables of private labels are refused if another artifact made them. A private label is read as the
index of an output among those of its row's table.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from labeldp_learn.toolkit import ALL_ROWS, Cell, GroupCounts, OutputCounts
from labeldp_runtime.columns.arrow import is_text
from labeldp_verify.analysis import lattice_indices
from labeldp_verify.artifact import Artifact
from labeldp_verify.claims import person_epsilon
from labeldp_verify.forms import (
    AdditiveRandomizer,
    Groups,
    IntegerDomain,
    JointDomain,
    Output,
    columns_of,
)
from numpy.typing import NDArray

from labeldp_compile.errors import InputError, refused
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.prior.histogram import table_indexes
from labeldp_compile.tabular.columns import chosen_rows, group_columns_in_table
from labeldp_compile.tabular.csv_file import empty_is_null
from labeldp_compile.tabular.csv_sink import Placement
from labeldp_compile.tabular.formats import TextForm, files_of
from labeldp_compile.tabular.provenance import (
    Provenance,
    is_noted,
    listed_in,
    manifest_note,
    read_note,
)
from labeldp_compile.tabular.reader import TableReader, open_table, read_schema


def open_private(
    decoded: Artifact,
    artifact: Path,
    table: Path,
    column: str | Sequence[str] | None,
    group_columns: Mapping[str, str] | None,
    form: TextForm,
    only: Sequence[Path] | None = None,
) -> tuple[TableReader, bool]:
    """The table, whose label columns are the private ones, and whether it notes that they are.

    ``artifact`` is a path for messages. ``column`` and ``group_columns`` are as of
    ``estimate_tables``; ``only`` as of ``open_table``. Raises InputError (DataError).
    """
    labels, domain = decoded.certificate.label_columns, decoded.label
    if decoded.answers_with_sets:  # by their numbers
        last = decoded.tables[0].outputs - 1
        domain = IntegerDomain(0, last, keeps_nulls=decoded.label.keeps_nulls)
    columns = _private_columns(decoded, column)
    if len(columns) != len(columns_of(domain)):
        raise InputError(
            f"{artifact}: its private labels have {len(columns_of(domain))} columns, but --column "
            f"names {len(columns)}"
        )
    others = [name for name in labels if name not in columns]
    reader = open_table(
        table,
        columns,
        domain,
        all_columns=True,
        group_columns=group_columns_in_table(decoded.groups.columns, group_columns or {}, others),
        unread_labels=labels,
        form=form,
        only=only,
    )
    files = [(file.path, file.metadata) for file in reader.files]
    return reader, is_noted(table, files, columns, decoded.sha256, artifact)


def _private_columns(decoded: Artifact, column: str | Sequence[str] | None) -> list[str]:
    """The columns that are given, or those that labeldp randomize writes."""
    columns = [column] if isinstance(column, str) else list(column or ())
    labels, one_answer = decoded.certificate.label_columns, decoded.answers_with_sets
    return columns or list(Placement.of(labels, None, one_answer=one_answer).names)


def open_all(
    decoded: Sequence[Artifact],
    pairs: Sequence[tuple[Path, Path]],
    column: str | Sequence[str] | None,
    group_columns: Mapping[str, str] | None,
    form: TextForm,
) -> list[TableReader]:
    """The table of each pair (artifact, table); no row belongs to two of them.

    A table that is given for several artifacts is divided: each artifact has the parts that note
    it. Raises InputError (DataError), also if the artifacts have different labels.
    """
    first, *_ = labels = [(one.label, one.certificate.label_columns) for one in decoded]
    for label, (path, _) in zip(labels, pairs, strict=True):
        if label != first:
            raise InputError(
                f"{path}: cannot be combined with {pairs[0][0]}: their labels have different "
                "columns, ranges, categories or rules for missing values"
            )
    any_groups = any(one.groups.columns for one in decoded)
    readers, files = [], set()
    for one, (artifact, table) in zip(decoded, pairs, strict=True):
        shared = sum(_is_same(table, other) for _, other in pairs) > 1
        only = _parts_that_note(one, artifact, table, column, decoded, form) if shared else None
        names = group_columns if one.groups.columns or not any_groups else None
        reader, _ = open_private(one, artifact, table, column, names, form, only)
        for file in reader.files:
            stat = file.path.stat()
            if (stat.st_dev, stat.st_ino) in files:
                raise refused(file.path, "is given twice: its rows would count twice")
            files.add((stat.st_dev, stat.st_ino))
        readers.append(reader)
    return readers


def _is_same(table: Path, other: Path) -> bool:
    return table == other or (table.exists() and other.exists() and table.samefile(other))


def _parts_that_note(
    decoded: Artifact,
    artifact: Path,
    table: Path,
    column: str | Sequence[str] | None,
    every: Sequence[Artifact],
    form: TextForm,
) -> list[Path]:
    """The parts whose private columns an artifact made, where others made the other parts."""

    def made(one: Artifact, note: Mapping[str, Provenance]) -> bool:
        names = _private_columns(one, column)
        return all(name in note and note[name].artifact_sha256 == one.sha256 for name in names)

    parts, listed = [], listed_in(table)
    for part in files_of(table):
        note = read_note(part, read_schema(part, form)[0].metadata)
        note = note or manifest_note(listed.get(part.name))
        if not any(made(one, note) for one in every):
            raise refused(
                part,
                "does not note that one of these artifacts made its private labels: give each "
                "artifact a table of its own",
            )
        if made(decoded, note):
            parts.append(part)
    if not parts:
        raise refused(table, f"notes no private labels of {artifact}")
    return parts


def require_public(reader: TableReader, decoded: Artifact, artifact: Path, name: str) -> None:
    """Raise InputError unless a column exists and is not the true label."""
    reader.require_column(name)
    private = (*reader.label_columns, *reader.noted_columns())
    if name in decoded.certificate.label_columns and name not in private:
        raise InputError(
            f"{name!r} is the label of {artifact}: grouping by true labels would reveal their "
            "counts; use a public column"
        )


class PrivateReader:
    """The rows of a table that have a private label, and the output that each label is.

    Attributes:
        reader: of the table.
        artifact: that made the labels.
        outputs: how many all tables of the artifact have together.
    """

    def __init__(self, reader: TableReader, artifact: Artifact) -> None:
        """Load the graph that finds a row's table. No row is read."""
        self.reader, self.artifact = reader, artifact
        self.outputs = sum(table.outputs for table in artifact.tables)
        self._tables = table_indexes(reader, artifact.groups)
        # Rows beyond a person's bound, and public nulls, are without a label.
        bounded = person_epsilon(artifact.certificate) is not None
        self._keeps_nulls = bounded or artifact.label.keeps_nulls
        listed = [() if isinstance(r, AdditiveRandomizer) else r.values for r in artifact.tables]
        distinct = sorted({value for values in listed for value in values})
        # Each column's values, and how much a step in them moves the index of a private label.
        self._columns: list[tuple[str, Sequence[Output], int]]
        if isinstance(reader.domain, JointDomain):
            domain, self._size = reader.domain, reader.domain.size
            values = map(tuple, domain.column_values)
            self._columns = list(zip(reader.label_columns, values, domain.strides, strict=True))
            place = {number: int(number) for number in distinct}
        else:
            self._columns, self._size = [(reader.column, distinct, 1)], len(distinct)
            place = {value: i for i, value in enumerate(distinct)}
        self._listed = pa.array(
            t * self._size + place[value] for t, values in enumerate(listed) for value in values
        )

    def has_label(self, batch: pa.RecordBatch | pa.Table) -> NDArray[np.bool_]:
        """Which rows [n] have a private label; all, unless the artifact lets rows be without."""
        has = np.ones(len(batch), dtype=bool)
        for name in self.reader.label_columns if self._keeps_nulls else ():
            column = batch.column(name)
            column = empty_is_null(column) if self.reader.is_text else column
            has &= column.is_valid().to_numpy(zero_copy_only=False)
        return has

    def with_label(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that have a private label."""
        return chosen_rows(batch, self.has_label(batch))

    def output_indices(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """[n] the index of each row's output among those of all tables, one after the other.

        Raises DataError for a null, and for a value that is no output of the row's own table.
        """
        path, randomizer = self.reader.path, self.artifact.tables[0]
        if isinstance(randomizer, AdditiveRandomizer):  # of one column and one table
            name = self.reader.column
            return output_indices(path, name, randomizer, batch.column(name))
        indices = self._tables(batch) * self._size
        for name, values, stride in self._columns:
            indices += output_indices(path, name, values, batch.column(name)) * stride
        outputs = _positions(pa.array(indices), self._listed)
        if (outputs < 0).any():
            names = " and ".join(repr(name) for name, _, _ in self._columns)
            where, what = "", "are they private labels of this artifact"
            if self.reader.group_names:
                where = " in their groups"
                what = f"{what}, and are the columns of the groups unchanged"
            raise refused(
                path, f"{names}: some values are not outputs of this artifact{where}: {what}?"
            )
        return outputs


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
    listed = pa.array([0.0] if isinstance(outputs, AdditiveRandomizer) else outputs)
    try:
        if not is_text(listed.type):
            given = pc.cast(pc.utf8_trim_whitespace(values) if text else values, listed.type)
        elif text:
            # As bytes: this may be the column of the true labels, whose text may not be UTF-8.
            listed, given = listed.cast(pa.large_binary()), values.cast(pa.large_binary())
        else:
            return np.full(len(values), -1)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.full(len(values), -1)
    if isinstance(outputs, AdditiveRandomizer):
        return lattice_indices(outputs, given.to_numpy(zero_copy_only=False))
    return _positions(given, listed)


def _positions(values: pa.Array, listed: pa.Array) -> NDArray[np.int64]:
    """[n] the index of each value among those listed; −1 if it is not one of them."""
    if pa.types.is_floating(listed.type):  # −0 and 0 are the same number
        values, listed = pc.add(values, 0.0), pc.add(listed, 0.0)
    positions = pc.fill_null(pc.index_in(values, value_set=listed), -1)
    return positions.to_numpy(zero_copy_only=False).astype(np.int64)


MAX_GROUPS = 10_000
Cells = tuple[list[tuple[Cell, Any]], NDArray[np.int64]]
"""Cells, each with its rank, and the index [n] of each row's cell among them."""
_NAN = math.nan  # one object, so that all NaN are the same name


def in_words(value: Any) -> str:
    """A value of a column of groups as text."""
    return "null" if value is None else "NaN" if value is _NAN else str(value)


def texts_of(cell: Cell) -> list[str]:
    """The values of a cell as people see them; text that reads like another value has quotes."""
    return [
        json.dumps(value, ensure_ascii=False)
        if value in ("", "null", "NaN", ALL_ROWS) or (isinstance(value, str) and value[0] == '"')
        else in_words(value)
        for value in cell
    ]


def count_outputs(
    sources: Sequence[PrivateReader], by: Sequence[str] = (), observer: Observer = QUIET
) -> list[GroupCounts]:
    """The counts of all rows of all sources, then those of each group by its name.

    The groups are the combinations of the columns ``by`` that occur, or without them those of the
    artifacts' groups. Rows that ``randomize`` left without a label, because they are beyond a
    person's bound, are not counted. Raises DataError for an empty table, for other nulls, for
    values that are not outputs of the row's table, and for more than ``MAX_GROUPS`` combinations of
    ``by``.
    """
    numbers: dict[Cell, tuple[int, Any]] = {}  # the number and the rank of each cell
    starts = np.cumsum([0, *(t.outputs for one in sources for t in one.artifact.tables)])
    m, first = int(starts[-1]), 0
    # Keys, cell · m + output, increasing, and how often each occurs.
    keys, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    for source in sources:
        reader, cells_in = source.reader, _cells_of(source.reader, source.artifact.groups, by)
        columns = dict.fromkeys([*reader.label_columns, *reader.group_names, *by])
        for every in reader.columns(list(columns)):
            batch = source.with_label(every)
            cells, indices = cells_in(batch)
            here = [numbers.setdefault(cell, (len(numbers), rank))[0] for cell, rank in cells]
            if by and len(numbers) > MAX_GROUPS:
                names = " and ".join(map(repr, by))
                raise refused(reader.path, f"{names}: more than {MAX_GROUPS:,} groups")
            outputs = source.output_indices(batch) + first
            new = np.unique(outputs + m * np.array(here, np.int64)[indices], return_counts=True)
            keys, counts = sums_by_key(*map(np.concatenate, zip((keys, counts), new, strict=True)))
            observer.rows(len(batch))
        first += source.outputs
    if not len(keys):
        raise refused(sources[0].reader.path, "has no rows")
    groups = [GroupCounts((), _by_table(starts, *sums_by_key(keys % m, counts)))]
    # Keys are in order, so each cell is a range of them.
    ends = np.searchsorted(keys, np.arange(len(numbers) + 1) * m)
    for cell in sorted(filter(None, numbers), key=lambda cell: numbers[cell][1]):
        number, _ = numbers[cell]
        part = slice(ends[number], ends[number + 1])
        groups.append(GroupCounts(cell, _by_table(starts, keys[part] - number * m, counts[part])))
    return groups


def sums_by_key(
    keys: NDArray[Any], counts: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Each key once, increasing, with the sum of its counts."""
    distinct, indices = np.unique(keys, return_inverse=True)
    totals = np.zeros(len(distinct), np.int64)
    np.add.at(totals, indices, counts)
    return distinct, totals


def _by_table(
    starts: NDArray[np.int64], outputs: NDArray[np.int64], counts: NDArray[np.int64]
) -> dict[int, OutputCounts]:
    """The counts of increasing indices, by the tables that occur; a table begins at each start."""
    tables = np.searchsorted(starts, outputs, side="right") - 1
    return {
        table: OutputCounts(outputs[tables == table] - starts[table], counts[tables == table])
        for table in np.unique(tables).tolist()
    }


def _cells_of(
    reader: TableReader, groups: Groups, by: Sequence[str]
) -> Callable[[pa.RecordBatch], Cells]:
    """From a batch to its cells, each with its rank, and the index [n] of each row's cell.

    Without columns ``by``, the cells are those of an artifact's ``groups``, if it has any. Raises
    DataError for columns that cannot form groups.
    """
    if by or not groups.columns:
        return lambda batch: _combinations(reader.path, batch, by)
    # Each cell for itself, although several may share a table.
    each = Groups.each(*groups.columns)
    index = table_indexes(reader, each)

    def of_groups(batch: pa.RecordBatch) -> Cells:
        numbers, indices = np.unique(index(batch), return_inverse=True)
        return [((each.name(number),), number) for number in numbers.tolist()], indices

    return of_groups


def _combinations(path: Path, batch: pa.RecordBatch, by: Sequence[str]) -> Cells:
    """The combinations of values of some columns; one without values if there is no column."""
    cells: list[Cell] = [()]
    indices = np.zeros(len(batch), np.int64)
    for name in by:
        values, here = distinct_values(path, name, batch.column(name))
        codes, indices = np.unique(indices * len(values) + here, return_inverse=True)
        pairs = (divmod(code, len(values)) for code in codes.tolist())
        cells = [(*cells[cell], values[value]) for cell, value in pairs]
    return [(cell, [rank(value) for value in cell]) for cell in cells], indices


def distinct_values(
    path: Path, column: str, values: pa.Array
) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct values of a column, and the index [n] of each row's value among them.

    Raises DataError for a column that cannot form groups.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        encoded = pc.dictionary_encode(values, null_encoding="encode")
        # Dates beyond the year 9999, for example, are no values of Python.
        names = encoded.dictionary.to_pylist()
    except (pa.ArrowException, ArithmeticError, ValueError, LookupError):
        reason = f"cannot group by {column!r}, which has the type {values.type}"
        raise refused(path, reason) from None
    # All NaN have the same name.
    names = [_NAN if name != name else name for name in names]  # noqa: PLR0124
    return names, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def rank(value: Any) -> tuple[bool, bool, Any]:
    """For sorting values: numbers in order, then other values as text, then null."""
    number = isinstance(value, int | float) and value is not _NAN
    return value is None, not number, value if number else in_words(value)
