"""From an artifact, predictions and private labels to metrics with intervals.

The estimates are those of ``labeldp_learn``. This file reads the tables, whose rows are the
same ones in the same order, batch by batch, each once. What metrics need of them is put into files
without a name, and read in blocks: memory does not grow with the tables, but for AUC.

A block has the same rows however the tables are read. The rows of a person are in one block: a hash
of persons says which. The files hold private labels, predictions, numbers of groups and digests of
persons, which anyone can compute. Only their owner may read them, and they are gone with the
process.
"""

import contextlib
import hashlib
import math
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from labeldp_learn.toolkit import (
    CONFIDENCE,
    Bin,
    Block,
    Measured,
    OutputCounts,
    PrivateLabels,
    Rows,
    calibration_of,
    chosen_metrics,
    hardly_private,
    indices_in,
    is_numeric,
    measure,
    prepared,
    rows_of_block,
)
from labeldp_runtime.columns.arrow import is_text
from labeldp_verify import DEFAULT_BUDGET, Budget
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import CategoricalDomain, Domain
from labeldp_verify.opening import open_artifact
from labeldp_verify.printable import clipped
from numpy.typing import NDArray

from labeldp_compile.errors import InputError, refused
from labeldp_compile.estimates.aggregates import plain, private_warnings
from labeldp_compile.estimates.counts import (
    MAX_GROUPS,
    PrivateReader,
    distinct_values,
    open_private,
    rank,
    require_public,
)
from labeldp_compile.tabular.formats import PLAIN, TextForm, is_among
from labeldp_compile.tabular.persons import persons_of
from labeldp_compile.tabular.provenance import no_note
from labeldp_compile.tabular.reader import TableReader, read_columns, read_schema

PREDICTION, PROBABILITY = "prediction", "probability_"  # as labeldp predict calls them


_IN_MEMORY = 1 << 22  # bytes of a column that need no file
_BLOCK = 1 << 16  # rows
_RUN = 16  # blocks
_HASH_BITS, _ODD = 12, np.uint64(0x9E3779B97F4A7C15)
_KINDS = (None, pa.int64(), pa.float64())  # of text: labels, or the first that all cells can be


class Column:
    """Values [n] or [n, c] of one type in a file without a name; all are appended, then read.

    Attributes:
        dtype: of the values.
        shape: (n,) or (n, c).
        are_places: whether they are places of labels; −1 for what is no label.
    """

    def __init__(self) -> None:
        """No values."""
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - gone with this
        self.dtype, self.are_places = np.dtype(np.int64), False
        self.shape: tuple[int, ...] = (0,)

    def __len__(self) -> int:
        """n."""
        return self.shape[0]

    def __del__(self) -> None:
        """Remove the file."""
        self._file.close()

    def append(self, values: NDArray[Any]) -> None:
        """Take the next values. Raises DataError if the disk has no room."""
        if not len(self):
            self.dtype = values.dtype
        self.shape = (len(self) + len(values), *values.shape[1:])
        try:
            self._file.write(np.ascontiguousarray(values).data)
            self._file.flush()
        except OSError as error:
            raise refused(
                Path(tempfile.gettempdir()),
                f"cannot hold the rows: {error.strerror}; set TMPDIR to a folder on a larger disk",
            ) from None

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        """Values that follow one another."""
        start, stop, _ = rows.indices(len(self))
        width = self.dtype.itemsize * math.prod(self.shape[1:])
        self._file.seek(start * width)
        data = self._file.read(max(stop - start, 0) * width)
        return np.frombuffer(data, self.dtype).reshape(-1, *self.shape[1:])

    def slices(self) -> Iterator[slice]:
        """All rows, block by block."""
        step = rows_of_block([self])
        return (slice(start, start + step) for start in range(0, len(self), step))

    def sha256(self) -> str:
        """The SHA-256 of all values, in hexadecimal digits."""
        digest = hashlib.sha256()
        for rows in self.slices():
            digest.update(self[rows].data)
        return digest.hexdigest()


def read_predictions(
    domain: Domain,
    path: Path,
    models: Sequence[str],
    form: TextForm,
    true_labels: Collection[str] = (),
) -> dict[str, Column]:
    """Predictions [n] or [n, k] by the name of the model, as ``evaluate_tables`` takes names.

    They are as in the file, for ``prepared_columns``. None of them may be a column of
    ``true_labels``. Raises InputError (DataError).
    """
    columns_of = _columns_of_models(domain, path, models, list(read_schema(path, form)[0].names))
    columns = list(dict.fromkeys(name for names in columns_of.values() for name in names))
    for name in columns:
        if is_among(name, true_labels):
            reason = f"{name!r} is the label, and no prediction; rename it if it is one"
            raise refused(path, reason)
    listed = list(domain.listed) if isinstance(domain, CategoricalDomain) else []
    text = isinstance(domain, CategoricalDomain) and domain.is_text
    numbers = {one for names in columns_of.values() if len(names) > 1 or not text for one in names}
    kinds = {name: list(_KINDS[not text :]) for name in columns}
    while True:
        predictions, before = {model: Column() for model in columns_of}, None
        for batch in read_columns(path, columns, form, [*columns, *true_labels], numbers=numbers):
            arrays = {name: _array(batch.column(name), listed, kinds[name]) for name in columns}
            if before is not None and before != kinds:
                break
            before = {name: list(left) for name, left in kinds.items()}
            for model, names in columns_of.items():
                parts = [arrays[name] for name in names]
                if len(parts) > 1 and any(part.dtype.kind not in "iuf" for part in parts):
                    raise refused(path, f"{model}: probabilities must be numbers")
                predicted = parts[0] if len(parts) == 1 else np.stack(parts, axis=1)
                if predicted.dtype.kind == "f" and not np.isfinite(predicted).all():
                    reason = "has predictions that are missing or not finite"
                    raise refused(path, f"{model!r} {reason}")
                column = predictions[model]
                if predicted.dtype.kind not in "buif":
                    column.are_places, predicted = True, indices_in(predicted, listed)
                column.append(predicted)
        else:  # otherwise earlier cells were read as what later ones are not
            break
    if before is None:
        raise refused(path, "has no rows")
    return predictions


def prepared_columns(
    path: Path,
    predictions: Mapping[str, Column],
    labels: Sequence[Any],
    keep: Callable[[slice], NDArray[np.bool_]],
    *,
    numeric: bool,
    most: float = math.inf,
) -> dict[str, Column]:
    """Predictions of the rows to ``keep``, as ``prepared`` makes them for these labels.

    Raises InputError (DataError) for numbers beyond ±``most`` in any row, and for what is no
    prediction.
    """
    found = {model: Column() for model in predictions}
    for model, column in predictions.items():
        for rows in column.slices():
            given = column[rows]
            if given.dtype.kind == "f" and (np.abs(given) > most).any():
                raise refused(path, f"{model!r} has predictions beyond ±{most:g}")
            given = given[keep(rows)]
            if not column.are_places:
                given = prepared(labels, given, numeric=numeric)
            elif numeric or (given < 0).any():
                prepared(labels, [None], numeric=numeric)  # which refuses it
            found[model].append(given)
    return found


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


def _array(
    column: pa.Array, labels: Sequence[Any], kinds: list[pa.DataType | None]
) -> NDArray[Any]:
    """Cells; text that is all numbers, as in CSV files, becomes numbers unless it is labels.

    Whole numbers are integers, as in Parquet files: labels, and no probabilities. Text can be of
    the first of ``kinds``; those that do not fit are removed.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not is_text(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    while kinds:
        if kinds[0] is not None:
            with contextlib.suppress(pa.ArrowInvalid):
                numbers = pc.cast(pc.utf8_trim_whitespace(column), kinds[0])
                return np.asarray(numbers.to_numpy(zero_copy_only=False))
        elif set(column.unique().to_pylist()) <= set(labels):
            break
        kinds.pop(0)
    return np.asarray(column.to_pylist(), object)


def require_rows(predictions: Path, given: dict[str, Column], rows: int, other: Path) -> None:
    """Raise DataError unless predictions have these rows, which are those of another table."""
    if any(len(one) != rows for one in given.values()):
        raise refused(predictions, f"its rows are not the {rows:,} of {other}, in the same order")


FORMAT_VERSION = "1.0"
_FEW = 0.1  # of the variance: with more in one row, intervals covered too rarely
_NAMES = 60
_LARGEST = 1e60  # its fourth power, in the variance of a squared error, is a float64


@dataclass(frozen=True)
class Evaluation:
    """Metrics of models, with differences of models.

    Attributes:
        artifact: the name in its certificate.
        rows: that were used.
        confidence: of the intervals.
        measured: each metric, of each model or difference, and group.
        calibration: by model, its bins, if it has them.
        warnings: why these may not be private labels of the artifact, or why intervals may be too
            narrow, in words.
        left_out: rows without a private label.
        noted: whether the table notes that the artifact made its labels.
    """

    artifact: str
    rows: int
    confidence: float
    measured: list[Measured]
    calibration: dict[str, list[Bin]]
    warnings: list[str] = field(default_factory=list)
    left_out: int = 0
    noted: bool = True

    def to_json(self) -> dict[str, Any]:
        """``{format_version, artifact, rows, left_out, noted, confidence, measured,
        calibration}``."""
        return {
            "format_version": FORMAT_VERSION,
            "artifact": self.artifact,
            "rows": self.rows,
            "left_out": self.left_out,
            "noted": self.noted,
            "confidence": self.confidence,
            "measured": [_facts(one) for one in self.measured],
            "calibration": {
                name: [_facts(one) for one in bins] for name, bins in self.calibration.items()
            },
        }


def _facts(one: Measured | Bin) -> dict[str, Any]:
    """The fields of a measured metric or a bin, for JSON, which has no infinity.

    A number that is not known is null. A group that JSON does not know, such as NaN or a date, is
    text: null is that of all rows.
    """
    facts = asdict(one)
    for name, fact in facts.items():
        if name == "group":
            facts[name] = plain(fact)
        elif isinstance(fact, float) and not math.isfinite(fact):
            facts[name] = None
    return facts


def evaluate_tables(
    artifact: Path,
    predictions: Path,
    private: Path,
    models: Sequence[str] = (),
    metrics: Sequence[str] = (),
    *,
    column: str | Sequence[str] | None = None,
    by: str | None = None,
    person: str | None = None,
    group_columns: Mapping[str, str] | None = None,
    budget: Budget = DEFAULT_BUDGET,
    form: TextForm = PLAIN,
    unnoted: bool = False,
) -> Evaluation:
    """Metrics of the models whose predictions are columns of a file, from private labels alone.

    ``models`` are columns: numbers, labels, or probabilities of the second of two labels. A name
    that ends in ``*`` stands for all labels: ``probability_*`` has a column ``probability_LABEL``
    each. Without names, it is what ``labeldp predict`` writes. ``by`` and ``person`` are columns of
    the table of private labels. ``unnoted`` takes a table that does not note that the artifact made
    its labels.

    Raises VerificationError if the artifact does not verify, and InputError (DataError) if the
    input is wrong or supports no estimate.
    """
    decoded = open_artifact(artifact, budget)
    reader, noted = open_private(decoded, artifact, private, column, group_columns, form)
    if not noted and not unnoted:
        raise no_note(private, reader.label_columns, artifact, "accept that with --unnoted")
    for name in (by, person):
        if name is not None:
            require_public(reader, decoded, artifact, name)
    table = _PrivateTable(reader, decoded, by, person)
    given = read_predictions(decoded.label, predictions, models, form)
    require_rows(predictions, given, len(table.has), private)
    if not len(table.places):
        raise refused(reader.path, "has no rows with a private label")
    numeric, kinds = is_numeric(decoded), {name: one.dtype.kind for name, one in given.items()}
    listed = PrivateLabels.of_outputs(decoded, table.codes).labels
    every = prepared_columns(
        predictions, given, listed, table.has.__getitem__, numeric=numeric, most=_LARGEST
    )
    del given
    columns = [table.places, table.groups, table.persons, *every.values()]
    whole = table.rows(every, partial(_in_order, columns))
    names = chosen_metrics(whole.private, every, metrics or None)
    parts: list[tuple[Any, Rows]] = [(None, whole)]
    if person is not None:
        together = _Sorted(columns, by_group=False)
        parts = [(None, table.rows(every, partial(together.blocks, 0)))]
    if by is not None:
        apart = _Sorted(columns, by_group=True)
        for name in sorted(table.names, key=rank):
            of_group = table.rows(every, partial(apart.blocks, table.names[name]))
            parts.append(("null" if name is None else name, of_group))
    measured = [one for name, part in parts for one in measure(part, names, CONFIDENCE, name)]
    rows = whole.count
    classes = isinstance(decoded.label, CategoricalDomain)
    bins = {
        name: calibration_of(whole, name, min(10, rows), CONFIDENCE)
        for name in every
        if not classes or (len(listed) == 2 and kinds[name] == "f")
    }
    tables = {one.number: (one.codes, one.counts.astype(int)) for one in whole.private.parts}
    hardly = hardly_private(decoded, {i: OutputCounts(*one) for i, one in tables.items()})
    warnings = [*private_warnings(reader, hardly), *_few_rows(measured, person)]
    name, left = decoded.certificate.name, len(table.has) - rows
    return Evaluation(name, rows, CONFIDENCE, measured, bins, warnings, left, noted)


_Values = list[NDArray[Any]]
"""Places, groups, persons and predictions of some rows."""


def _in_order(columns: Sequence[Column]) -> Iterator[_Values]:
    """All rows in the order of the table, block by block."""
    step = rows_of_block(columns)
    for start in range(0, len(columns[0]), step):
        yield [column[start : start + step] for column in columns]


class _Sorted:
    """Rows on disk in runs that are sorted by group and by a hash of persons.

    The rows of a group whose hashes are between two numbers are next to each other in each run.
    """

    def __init__(self, columns: Sequence[Column], *, by_group: bool) -> None:
        """Write the runs."""
        self._columns, self._runs = [Column() for _ in columns], []
        self._most = rows_of_block(columns)
        step = _RUN * self._most
        for start in range(0, len(columns[0]), step):
            values = [column[start : start + step] for column in columns]
            keys = (values[2] * _ODD >> np.uint64(64 - _HASH_BITS)).astype(np.int64)
            if by_group:
                keys += values[1].astype(np.int64) << _HASH_BITS
            order = np.argsort(keys, kind="stable")
            for column, own in zip(self._columns, values, strict=True):
                column.append(own[order])
            distinct, first = np.unique(keys[order], return_index=True)
            self._runs.append((distinct, np.append(first, len(order)) + start))

    def blocks(self, group: int) -> Iterator[_Values]:
        """The rows of one group, of which those of a person are in one block."""
        ends = group << _HASH_BITS, (group + 1) << _HASH_BITS
        sizes = np.zeros(1 << _HASH_BITS, np.int64)
        for keys, starts in self._runs:
            own = slice(*np.searchsorted(keys, ends))
            sizes[keys[own] - ends[0]] += np.diff(starts)[own]
        number = (np.cumsum(sizes) - 1) // self._most
        edges = np.flatnonzero(np.diff(number, prepend=-1, append=number[-1] + 1)) + ends[0]
        for low, high in pairwise(edges.tolist()):
            parts = [
                slice(*starts[np.searchsorted(keys, (low, high))]) for keys, starts in self._runs
            ]
            yield [np.concatenate([column[part] for part in parts]) for column in self._columns]


class _PrivateTable:
    """The rows of a table that have a private label, on disk.

    Attributes:
        has: [n] whether a row of the table has a private label. Only these rows are in the others.
        places: [r] the number of each private label, in the order in which they first occurred.
        groups, names: [r] the number of each row's group, and the number of each name.
        persons: [r] digests of persons; without a column of persons, the number of a block.
        codes: [m] the distinct private labels, increasing.
    """

    def __init__(
        self, reader: TableReader, decoded: Artifact, by: str | None, person: str | None
    ) -> None:
        """Read the table. Raises DataError."""
        self.has, self.places, self.groups, self.persons = (Column() for _ in range(4))
        self._decoded, self._has_persons = decoded, person is not None
        self.codes, self._places = np.empty(0, np.int64), np.empty(0, np.int64)
        self.names: dict[Any, int] = {}
        source, public = PrivateReader(reader, decoded), filter(None, (by, person))
        columns = dict.fromkeys([*reader.label_columns, *reader.group_names, *public])
        for batch in reader.columns(list(columns)):
            self.has.append(source.has_label(batch))
            rows, start = source.with_label(batch), len(self.places)
            codes = source.output_indices(rows)
            new = np.setdiff1d(codes, self.codes)
            at = np.searchsorted(self.codes, new)
            numbers = np.arange(len(self.codes), len(self.codes) + len(new))
            self._places = np.insert(self._places, at, numbers)
            self.codes = np.insert(self.codes, at, new)
            self.places.append(self._places[np.searchsorted(self.codes, codes)].astype(np.int32))
            groups = np.zeros(len(rows), np.int32)
            if by is not None:
                values, indices = distinct_values(reader.path, by, rows.column(by))
                here = [self.names.setdefault(value, len(self.names)) for value in values]
                groups = np.array(here, np.int32)[indices]
            if len(self.names) > MAX_GROUPS:
                raise refused(reader.path, f"{by!r}: more than {MAX_GROUPS:,} groups")
            self.groups.append(groups)
            persons = np.arange(start, start + len(rows), dtype=np.uint64) // _BLOCK
            if person is not None:
                persons = persons_of(reader.path, person, rows.column(person))
            self.persons.append(persons)
        if not len(self.has):
            raise refused(reader.path, "has no rows")

    def rows(self, models: Collection[str], read: Callable[[], Iterator[_Values]]) -> Rows:
        """Some of the rows, which ``read`` gives block by block."""
        counts = np.zeros(len(self.codes), np.int64)
        for places, *_ in read():
            counts += np.bincount(places, minlength=len(counts))
        counts = counts[self._places]
        there = counts > 0
        place = np.empty(len(counts), np.int64)
        place[self._places[there]] = np.arange(there.sum())

        def blocks() -> Iterator[Block]:
            for places, _, persons, *given in read():
                predictions = dict(zip(models, given, strict=True))
                yield Block(place[places], predictions, persons if self._has_persons else None)

        private = PrivateLabels.of_outputs(self._decoded, self.codes[there], counts[there])
        return Rows(private, list(models), blocks)


def _few_rows(measured: Sequence[Measured], person: str | None) -> list[str]:
    """Where one row, or person, has much of the variance that is expected: intervals may fail."""
    unit = "row" if person is None else "person"
    return [
        f"one {unit} has {100 * one.largest:.0f}% of the expected variance of the {one.metric} of "
        f"{clipped(one.model, _NAMES)}, by its predictions: the interval may be too narrow. Keep "
        "predictions in the range of labels"
        for one in measured
        if one.group is None and one.largest is not None and one.largest > _FEW
    ]
