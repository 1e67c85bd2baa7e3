"""How often each output stands in a private column, for each group of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from labeldp_runtime.columns.arrow import is_text
from labeldp_verify.forms import AdditiveRandomizer, GroupedWindows, JointDomain, Randomizer
from labeldp_verify.forms.window import Output
from numpy.typing import NDArray

from labeldp_compile.prior.histogram import table_indexes
from labeldp_compile.tabular import TableReader, refused

MAX_GROUPS = 10_000


@dataclass(frozen=True)
class GroupCounts:
    """The outputs that occur in one group.

    Attributes:
        name: value of the group column, None for nulls.
        outputs: [u] indices of outputs, increasing.
        counts: [u] how many rows have each.
    """

    name: Any
    outputs: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """Rows of the group."""
        return int(self.counts.sum())


def count_outputs(
    table: TableReader,
    randomizer: Randomizer,
    group_column: str | None,
    progress: Callable[[int], None] = lambda rows: None,
) -> list[GroupCounts]:
    """All rows together first, then each group by its name.

    Raises DataError for an empty table, nulls, values that are no outputs of the randomizer, and
    more groups than ``MAX_GROUPS``.
    """
    m = randomizer.outputs
    names: dict[Any, int] = {}

    def outputs_of(batch: pa.RecordBatch) -> NDArray[np.int64]:
        if isinstance(table.domain, JointDomain):
            return _combinations(table, table.domain, randomizer, batch)
        return output_indices(table.path, table.column, randomizer, batch.column(table.column))

    keys, counts = _counted(table, outputs_of, m, group_column, names, progress)
    result = [GroupCounts("all rows", *_summed(keys % m, counts))]
    # Keys are in order, so each group is a range of them.
    ends = np.searchsorted(keys, np.arange(len(names) + 1) * m)
    for name, group in sorted(names.items(), key=_by_name):
        here = slice(ends[group], ends[group + 1])
        result.append(GroupCounts(name, keys[here] - group * m, counts[here]))
    return result


def count_by_table(
    table: TableReader,
    randomizer: GroupedWindows,
    group_column: str | None,
    progress: Callable[[int], None] = lambda rows: None,
) -> list[tuple[Any, dict[int, GroupCounts]]]:
    """(name, outputs by the number of the table): all rows first, then each group by its name.

    The groups are those of a column, or else those that have tables of their own. Raises DataError
    as ``count_outputs``.
    """
    names: dict[Any, int] = {}
    index = _OutputsOfTables(table, randomizer)
    m = index.size
    keys, counts = _counted(table, index, m, group_column, names, progress)
    result = [("all rows", index.by_table(*_summed(keys % m, counts)))]
    if group_column is None:
        groups = randomizer.groups
        every = result[0][1]
        return result + [(groups.name(t), {t: counted}) for t, counted in every.items()]
    ends = np.searchsorted(keys, np.arange(len(names) + 1) * m)
    for name, group in sorted(names.items(), key=_by_name):
        here = slice(ends[group], ends[group + 1])
        result.append((name, index.by_table(keys[here] - group * m, counts[here])))
    return result


class _OutputsOfTables:
    """From a batch to the index [n] of each row's output among those of all tables, one behind the
    other; a private label must be an output of its own table."""

    def __init__(self, table: TableReader, randomizer: GroupedWindows) -> None:
        self._table = table
        self._tables = table_indexes(table, randomizer.groups)
        windows = randomizer.windows
        distinct = sorted({value for window in windows for value in window.values})
        self._distinct = Values(tuple(distinct))
        place = {value: i for i, value in enumerate(distinct)}
        self._starts = np.cumsum([0, *(len(window.values) for window in windows)])
        self.size = int(self._starts[-1])
        pairs = [
            table * len(distinct) + place[value]
            for table, window in enumerate(windows)
            for value in window.values
        ]
        self._order = np.argsort(pairs)
        self._pairs = np.array(pairs)[self._order]

    def __call__(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        path, column = self._table.path, self._table.column
        outputs = output_indices(path, column, self._distinct, batch.column(column))
        wanted = self._tables(batch) * len(self._distinct.values) + outputs
        found = np.minimum(np.searchsorted(self._pairs, wanted), len(self._pairs) - 1)
        if (self._pairs[found] != wanted).any():
            raise refused(
                path,
                f"{column!r} holds values that this artifact does not give in their groups: is it "
                "the private column of this artifact, and are the columns of groups unchanged?",
            )
        result: NDArray[np.int64] = self._order[found]
        return result

    def by_table(
        self, keys: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> dict[int, GroupCounts]:
        """The counts of increasing indices, by the tables that occur."""
        tables = np.searchsorted(self._starts, keys, side="right") - 1
        found = {}
        for table in np.unique(tables).tolist():
            here = tables == table
            found[table] = GroupCounts(table, keys[here] - self._starts[table], counts[here])
        return found


def _counted(
    table: TableReader,
    outputs_of: Callable[[pa.RecordBatch], NDArray[np.int64]],
    m: int,
    group_column: str | None,
    names: dict[Any, int],
    progress: Callable[[int], None],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keys, group · m + output, increasing, and how often each occurs; fills ``names``."""
    keys, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    grouped_by = [group_column] if group_column else []
    columns = [*table.label_columns, *table.group_names, *grouped_by]
    for batch in table.columns(list(dict.fromkeys(columns))):
        outputs = outputs_of(batch)
        groups = np.zeros(len(outputs), np.int64)
        if group_column:
            groups = _groups(table.path, group_column, batch.column(group_column), names)
        found, times = np.unique(groups * m + outputs, return_counts=True)
        keys, counts = _summed(np.concatenate([keys, found]), np.concatenate([counts, times]))
        progress(len(batch))
    if not len(keys):
        raise refused(table.path, "has no rows")
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
    if not isinstance(randomizer, AdditiveRandomizer) and isinstance(randomizer.values[0], str):
        # As bytes: this may be the column of the true labels, where text need be no UTF-8.
        text = is_text(values.type)
        cells = values.cast(pa.large_binary()).to_pylist() if text else [None] * len(values)
        places = {str(value).encode(): i for i, value in enumerate(randomizer.values)}
        indices = np.fromiter(map(places.get, cells, repeat(-1)), np.int64, len(cells))
    else:
        indices = _numbers(randomizer, values)
    if (indices < 0).any():
        # Which ones is not said: this may be the column of the true labels.
        raise refused(
            path,
            f"{column!r} holds values that this artifact does not give: is it the private column "
            "of this artifact?",
        )
    return indices


def _combinations(
    table: TableReader, domain: JointDomain, randomizer: Randomizer, batch: pa.RecordBatch
) -> NDArray[np.int64]:
    """[n] the index of the output in each row of several private columns. Raises DataError."""
    assert not isinstance(randomizer, AdditiveRandomizer)
    numbers = np.zeros(len(batch), np.int64)
    columns = zip(table.label_columns, domain.column_values, domain.strides, strict=True)
    for name, values, stride in columns:
        places = output_indices(table.path, name, Values(tuple(values)), batch.column(name))
        numbers += places * stride
    index_of = np.full(domain.size, -1)
    index_of[np.array(randomizer.values, dtype=np.int64)] = np.arange(randomizer.outputs)
    indices: NDArray[np.int64] = index_of[numbers]
    if (indices < 0).any():
        names = ", ".join(map(repr, table.label_columns))
        raise refused(
            table.path,
            f"{names} hold combinations that this artifact does not give: are they the private "
            "columns of this artifact?",
        )
    return indices


def _numbers(randomizer: Randomizer | Values, values: pa.Array) -> NDArray[np.int64]:
    """Indices, −1 where a value is no output."""
    whole = not isinstance(randomizer, AdditiveRandomizer) and isinstance(randomizer.values[0], int)
    try:
        if is_text(values.type):
            values = pc.utf8_trim_whitespace(values)
        given = pc.cast(values, pa.int64() if whole else pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.full(len(values), -1)
    numbers = given.to_numpy(zero_copy_only=False)
    if isinstance(randomizer, AdditiveRandomizer):
        points = np.rint((numbers - randomizer.origin) / randomizer.unit)
        points = np.nan_to_num(points, nan=np.inf)
        same = points * randomizer.unit + randomizer.origin == numbers
        same &= (points >= randomizer.low) & (points <= randomizer.high)
        return np.where(same, np.where(same, points, 0) - randomizer.low, -1).astype(np.int64)
    known = np.array(randomizer.values)
    order = np.argsort(known, kind="stable")
    place = order[np.minimum(np.searchsorted(known[order], numbers), len(known) - 1)]
    return np.where(known[place] == numbers, place, -1)


def _groups(path: Path, column: str, values: pa.Array, names: dict[Any, int]) -> NDArray[np.int64]:
    """[n] the number of each row's group; new names are added."""
    encoded = values
    if not pa.types.is_dictionary(values.type):
        try:
            encoded = pc.dictionary_encode(values, null_encoding="encode")
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise refused(path, f"cannot group by {column!r}, a {values.type}") from None
    else:
        encoded = pc.dictionary_encode(values.dictionary_decode(), null_encoding="encode")
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
