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
from labeldp_verify.forms import AdditiveRandomizer, Randomizer
from numpy.typing import NDArray

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
    keys, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    columns = [table.column, *([group_column] if group_column else [])]
    for batch in table.columns(list(dict.fromkeys(columns))):
        outputs = output_indices(table.path, table.column, randomizer, batch.column(table.column))
        groups = np.zeros(len(outputs), np.int64)
        if group_column:
            groups = _groups(table.path, group_column, batch.column(group_column), names)
        found, times = np.unique(groups * m + outputs, return_counts=True)
        merged, places = np.unique(np.concatenate([keys, found]), return_inverse=True)
        totals = np.zeros(len(merged), np.int64)
        np.add.at(totals, places, np.concatenate([counts, times]))
        keys, counts = merged, totals
        progress(len(batch))
    if not len(keys):
        raise refused(table.path, "has no rows")
    seen, places = np.unique(keys % m, return_inverse=True)
    totals = np.zeros(len(seen), np.int64)
    np.add.at(totals, places, counts)
    result = [GroupCounts("all rows", seen, totals)]
    # Keys are in order, so each group is a range of them.
    ends = np.searchsorted(keys, np.arange(len(names) + 1) * m)
    for name, group in sorted(names.items(), key=_by_name):
        here = slice(ends[group], ends[group + 1])
        result.append(GroupCounts(name, keys[here] - group * m, counts[here]))
    return result


def output_indices(
    path: Path, column: str, randomizer: Randomizer, values: pa.Array
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


def _numbers(randomizer: Randomizer, values: pa.Array) -> NDArray[np.int64]:
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
