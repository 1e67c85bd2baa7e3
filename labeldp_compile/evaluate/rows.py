"""Rows of predictions and of a table with labels, which are read together, batch by batch.

What metrics need of them is put into files without a name, and read in blocks: memory does not grow
with the tables. A block has the same rows however the tables are read. The files hold predictions,
digests of persons, private labels and numbers of groups, which their owner can compute from the
tables, and no true label. Only their owner may read them, and they are gone with the process.
"""

import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from labeldp_learn.toolkit import prepared
from labeldp_runtime.columns.arrow import is_text
from labeldp_verify.forms import CategoricalDomain, Domain
from numpy.typing import NDArray

from labeldp_compile.errors import InputError, refused
from labeldp_compile.tabular.columns import chosen_rows
from labeldp_compile.tabular.formats import TextForm, is_among
from labeldp_compile.tabular.reader import read_columns, read_schema

PREDICTION, PROBABILITY = "prediction", "probability_"  # as labeldp predict calls them
_IN_MEMORY = 1 << 22  # bytes that need no file
_BLOCK, _BYTES = 1 << 16, 1 << 23  # rows, or bytes, of a block
_RUN = 16  # blocks
_KEY_BITS, _ODD = 16, np.uint64(0x9E3779B97F4A7C15)


class Records:
    """Rows of one type in a file without a name: all are appended, then read.

    Attributes:
        path: of their table, for messages.
        rows: n.
        type: of a row; it has named fields.
        block: how many rows a block has.
    """

    def __init__(self, path: Path) -> None:
        """No rows."""
        self.path, self.rows, self.type, self.block = path, 0, np.dtype([("", "u1")]), 1
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - gone with this

    def __del__(self) -> None:
        """Remove the file."""
        self._file.close()

    def append(self, fields: Mapping[str, NDArray[Any]]) -> None:
        """Take the next rows, by fields [b] or [b, c]. Raises DataError if the disk is full."""
        self.type = np.dtype([(name, one.dtype, one.shape[1:]) for name, one in fields.items()])
        rows: Any = np.empty(len(next(iter(fields.values()))), self.type)
        for name, one in fields.items():
            rows[name] = one
        self.rows += len(rows)
        self.block = max(1, min(_BLOCK, _BYTES // self.type.itemsize))
        try:
            self._file.write(rows.data)
            self._file.flush()
        except OSError as error:
            reason = f"cannot hold its rows on disk: {error.strerror}"
            raise refused(
                self.path, f"{reason}; set TMPDIR to a folder that has room for a copy"
            ) from None

    def read(self, start: int, end: int) -> NDArray[Any]:
        """Rows that follow one another, at most to the last."""
        self._file.seek(start * self.type.itemsize)
        return np.frombuffer(self._file.read((end - start) * self.type.itemsize), self.type)

    def sha256(self, name: str) -> str:
        """The SHA-256 of all values of a field, in hexadecimal digits."""
        digest = hashlib.sha256()
        for rows in self.blocks():
            digest.update(np.ascontiguousarray(rows[name]).data)
        return digest.hexdigest()

    def blocks(self) -> Iterator[NDArray[Any]]:
        """All rows in order, block by block."""
        return (self.read(at, at + self.block) for at in range(0, self.rows, self.block))


def read_predictions(
    domain: Domain,
    path: Path,
    models: Sequence[str],
    form: TextForm,
    labels: Sequence[Any],
    *,
    numeric: bool,
    true_labels: Collection[str] = (),
) -> tuple[list[str], Records]:
    """The names of models, as ``evaluate_tables`` takes names, and a field "0", "1", … of each.

    ``labels`` and ``numeric`` are as of ``prepared``. No model may be a column of ``true_labels``.
    Raises InputError (DataError).
    """
    schema = read_schema(path, form)[0]
    columns_of = _columns_of_models(domain, path, models, schema.names)
    # Text is labels, or the first kind that all cells can be. Whole numbers are labels, and no
    # probabilities, as in Parquet files.
    kinds: dict[str, list[pa.DataType | None]] = {
        name: [None, pa.int64(), pa.float64()] for names in columns_of.values() for name in names
    }
    for name in kinds:
        if is_among(name, true_labels):
            reason = f"{name!r} is the label, and no prediction; rename it if it is one"
            raise refused(path, reason)
    single = {names[0] for names in columns_of.values() if len(names) == 1}
    text = isinstance(domain, CategoricalDomain) and domain.is_text

    def batches() -> Iterator[dict[str, NDArray[Any]]]:
        numbers = kinds.keys() - (single if text else ())
        names = [*kinds, *true_labels]
        for batch in read_columns(path, list(kinds), form, names, numbers=numbers):
            yield {one: _array(batch.column(one), labels, left) for one, left in kinds.items()}

    if not numeric and any(is_text(one.type) for one in schema if one.name in single):
        for _ in batches():  # which finds the kinds
            pass
    records = Records(path)
    for arrays in filter(len, batches()):
        predictions = {}
        for i, (model, names) in enumerate(columns_of.items()):
            parts = [arrays[name] for name in names]
            if len(parts) > 1 and any(part.dtype.kind not in "iuf" for part in parts):
                raise refused(path, f"{model}: probabilities must be numbers")
            given = parts[0] if len(parts) == 1 else np.stack(parts, axis=1)
            if given.dtype.kind == "f" and not np.isfinite(given).all():
                raise refused(path, f"{model!r} has predictions that are missing or not finite")
            predictions[str(i)] = prepared(labels, given, numeric=numeric)
        records.append(predictions)
    if not records.rows:
        raise refused(path, "has no rows")
    return list(columns_of), records


def _array(
    column: pa.Array, labels: Sequence[Any], kinds: list[pa.DataType | None]
) -> NDArray[Any]:
    """The cells of a column; ``kinds`` that cells of text cannot be are removed."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not is_text(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    while kinds:
        if kinds[0] is None and set(column.unique().to_pylist()) <= set(labels):
            break
        if kinds[0] is not None:
            with contextlib.suppress(pa.ArrowInvalid):
                numbers = pc.cast(pc.utf8_trim_whitespace(column), kinds[0])
                return np.asarray(numbers.to_numpy(zero_copy_only=False))
        kinds.pop(0)
    return np.asarray(column.to_pylist(), object)


def _columns_of_models(
    domain: Domain, path: Path, models: Sequence[str], there: Collection[str]
) -> dict[str, list[str]]:
    """The columns of each model: its own, or those of all labels."""
    labels = None
    if isinstance(domain, CategoricalDomain):
        labels = [domain.name(value) for value in domain.values]
    if not models:
        every = labels is not None and all(PROBABILITY + name in there for name in labels)
        models = [f"{PROBABILITY}*" if every else PREDICTION]
        if not every and PREDICTION not in there:
            classes = "" if labels is None else f", or {PROBABILITY}LABEL for each label"
            raise refused(
                path, f"has no column {PREDICTION!r}{classes}; name yours with --model COLUMN"
            )
    columns: dict[str, list[str]] = {}
    for model in models:
        if model in columns:
            raise InputError(f"--model {model} is given twice")
        if model.endswith("*") and labels is None:
            raise InputError(f"--model {model}: the labels are numbers; name a column")
        several = [model[:-1] + name for name in labels or ()]
        columns[model] = several if model.endswith("*") else [model]
    return columns


def rows_with_label(
    table: Iterable[pa.RecordBatch],
    path: Path,
    given: Records,
    has_label: Callable[[pa.RecordBatch], NDArray[np.bool_] | None],
) -> Iterator[tuple[pa.RecordBatch, dict[str, NDArray[Any]]]]:
    """The rows of a table that have a label, batch by batch, with their predictions by field.

    Raises DataError if predictions are not of the rows of this table.
    """
    end = 0
    for batch in table:
        start, end = end, end + len(batch)
        has, rows = has_label(batch), given.read(start, end)
        has = np.ones(len(batch), bool) if has is None else has
        if len(rows) == len(batch):
            names = given.type.names or ()
            yield chosen_rows(batch, has), {name: rows[name][has] for name in names}
    if end != given.rows:
        raise refused(given.path, f"its rows are not the {end:,} of {path}, in the same order")


class SortedRecords:
    """Rows in runs that are sorted by their ``group`` and by a hash of their ``person``.

    The rows of a group whose hashes are between two numbers are next to each other in each run.
    """

    def __init__(self, records: Records, groups: int = 1) -> None:
        """Write the runs. With one group, rows of all groups are together."""
        self._records, self._runs = Records(records.path), list[tuple[Any, Any]]()
        self._bits = max(_KEY_BITS - groups.bit_length(), 2)  # of a hash
        for start in range(0, records.rows, _RUN * records.block):
            rows = records.read(start, start + _RUN * records.block)
            keys = (rows["person"] * _ODD >> np.uint64(64 - self._bits)).astype(np.int64)
            if groups > 1:
                keys += rows["group"].astype(np.int64) << self._bits
            order = np.argsort(keys, kind="stable")
            self._records.append({name: rows[name][order] for name in records.type.names or ()})
            distinct, first = np.unique(keys[order], return_index=True)
            self._runs.append((distinct, np.append(first, len(order)) + start))

    def blocks(self, group: int = 0) -> Iterator[NDArray[Any]]:
        """The rows of one group, of which those of a person are in one block."""
        ends = group << self._bits, (group + 1) << self._bits
        sizes = np.zeros(1 << self._bits, np.int64)
        for keys, starts in self._runs:
            own = slice(*np.searchsorted(keys, ends))
            sizes[keys[own] - ends[0]] += np.diff(starts)[own]
        number = (np.cumsum(sizes) - 1) // self._records.block
        edges = np.flatnonzero(np.diff(number, prepend=-1, append=number[-1] + 1)) + ends[0]
        for between in pairwise(edges.tolist()):
            parts = (starts[np.searchsorted(keys, between)].tolist() for keys, starts in self._runs)
            yield np.concatenate([self._records.read(*part) for part in parts])
