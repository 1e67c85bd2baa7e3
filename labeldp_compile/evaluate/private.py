"""From an artifact, predictions and private labels to metrics with intervals.

The estimates are those of ``labeldp_learn``. This file reads the tables, whose rows are the
same ones in the same order.
"""

import contextlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from labeldp_learn.toolkit import (
    CONFIDENCE,
    Bin,
    Measured,
    OutputCounts,
    PrivateLabels,
    calibration,
    evaluate,
    hardly_private,
)
from labeldp_runtime.columns.arrow import is_text
from labeldp_verify import DEFAULT_BUDGET, Budget
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
from labeldp_compile.tabular.persons import person_codes, person_names
from labeldp_compile.tabular.provenance import no_note
from labeldp_compile.tabular.reader import read_columns, read_schema

PREDICTION, PROBABILITY = "prediction", "probability_"  # as labeldp predict calls them


def read_predictions(
    domain: Domain,
    path: Path,
    models: Sequence[str],
    form: TextForm,
    true_labels: Collection[str] = (),
) -> dict[str, NDArray[Any]]:
    """Predictions [n] or [n, k] by the name of the model, as ``evaluate_tables`` takes names.

    None of them may be a column of ``true_labels``. Raises InputError (DataError).
    """
    columns_of = _columns_of_models(domain, path, models, list(read_schema(path, form)[0].names))
    columns = list(dict.fromkeys(name for names in columns_of.values() for name in names))
    for name in columns:
        if is_among(name, true_labels):
            reason = f"{name!r} is the label, and no prediction; rename it if it is one"
            raise refused(path, reason)
    text = isinstance(domain, CategoricalDomain) and domain.is_text
    numbers = {one for names in columns_of.values() if len(names) > 1 or not text for one in names}
    batches = list(read_columns(path, columns, form, [*columns, *true_labels], numbers=numbers))
    if not batches:
        raise refused(path, "has no rows")
    table = pa.Table.from_batches(batches)
    # Text that all is labels stays text; all other columns are numbers if they can be.
    labels = set(domain.listed) if text else set()
    arrays = {name: _array(table[name], labels) for name in columns}
    predictions = {}
    for model, names in columns_of.items():
        parts = [arrays[name] for name in names]
        if len(parts) > 1 and any(part.dtype.kind not in "iuf" for part in parts):
            raise refused(path, f"{model}: probabilities must be numbers")
        predicted = predictions[model] = parts[0] if len(parts) == 1 else np.stack(parts, axis=1)
        if predicted.dtype.kind == "f" and not np.isfinite(predicted).all():
            raise refused(path, f"{model!r} has predictions that are missing or not finite")
    return predictions


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


def _array(column: pa.ChunkedArray, labels: Collection[Any]) -> NDArray[Any]:
    """A column; text that is all numbers, as in CSV files, becomes numbers unless it is labels.

    Whole numbers are integers, as in Parquet files: labels, and no probabilities.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not is_text(column.type):
        return np.asarray(column.to_numpy())
    if not labels or not set(column.unique().to_pylist()) <= set(labels):
        for kind in (pa.int64(), pa.float64()):
            with contextlib.suppress(pa.ArrowInvalid):
                return np.asarray(pc.cast(pc.utf8_trim_whitespace(column), kind).to_numpy())
    return np.asarray(column.to_pylist(), object)


def require_rows(predictions: Path, given: dict[str, NDArray[Any]], rows: int, other: Path) -> None:
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
    public = [name for name in (by, person) if name is not None]
    for name in public:
        require_public(reader, decoded, artifact, name)
    names = list(dict.fromkeys([*reader.label_columns, *reader.group_names, *public]))
    batches = list(reader.columns(names))
    if not batches:
        raise refused(reader.path, "has no rows")
    given = read_predictions(decoded.label, predictions, models, form)
    require_rows(predictions, given, sum(map(len, batches)), private)
    for name, one in given.items():
        if one.dtype.kind == "f" and (np.abs(one) > _LARGEST).any():
            raise refused(predictions, f"{name!r} has predictions beyond ±{_LARGEST:g}")
    source = PrivateReader(reader, decoded)
    has = np.concatenate([source.has_label(batch) for batch in batches])
    if not has.any():
        raise refused(reader.path, "has no rows with a private label")
    batches = [source.with_label(batch) for batch in batches]
    given, rows = {name: one[has] for name, one in given.items()}, int(has.sum())
    codes = np.concatenate([source.output_indices(batch) for batch in batches])
    labels = PrivateLabels.of_outputs(decoded, codes)
    read = pa.Table.from_batches(batches)
    group_names, groups = ([], None) if by is None else _groups(reader.path, read, by)
    persons = None
    if person is not None:
        persons = person_codes(person_names(read[person], str(reader.path), person))
    measured = [
        one if one.group is None else replace(one, group=group_names[one.group])
        for one in evaluate(
            labels, given, list(metrics) or None, by=groups, persons=persons, confidence=CONFIDENCE
        )
    ]
    classes = isinstance(decoded.label, CategoricalDomain)
    bins = {
        name: calibration(labels, one, min(10, rows), CONFIDENCE)
        for name, one in given.items()
        if not classes or (len(labels.labels) == 2 and one.dtype.kind == "f")
    }
    every = {one.number: np.unique(one.codes, return_counts=True) for one in labels.parts}
    hardly = hardly_private(decoded, {i: OutputCounts(*counts) for i, counts in every.items()})
    warnings = [*private_warnings(reader, hardly), *_few_rows(measured, person)]
    name, left = decoded.certificate.name, len(has) - rows
    return Evaluation(name, rows, CONFIDENCE, measured, bins, warnings, left, noted)


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


def _groups(path: Path, read: pa.Table, by: str) -> tuple[list[Any], NDArray[np.int64]]:
    """The groups, in order, and the index [n] of each row's group. Nulls are the group "null"."""
    values, indices = distinct_values(path, by, read[by].combine_chunks())
    if len(values) > MAX_GROUPS:
        raise refused(path, f"{by!r}: more than {MAX_GROUPS:,} groups")
    order = sorted(range(len(values)), key=lambda i: rank(values[i]))
    names = ["null" if values[i] is None else values[i] for i in order]
    return names, np.argsort(order)[indices]
