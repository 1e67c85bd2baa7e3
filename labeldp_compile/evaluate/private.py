"""From an artifact, predictions and private labels to metrics with intervals.

The estimates are those of ``labeldp_learn``. This file reads the tables, whose rows are the
same ones in the same order.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_learn.toolkit import (
    CONFIDENCE,
    Bin,
    Measured,
    PrivateLabels,
    calibration,
    evaluate,
    hardly_private,
)
from labeldp_verify import DEFAULT_BUDGET, Budget
from labeldp_verify.forms import CategoricalDomain
from labeldp_verify.opening import open_artifact
from labeldp_verify.printable import clipped
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.estimates.aggregates import plain, private_warnings
from labeldp_compile.estimates.counts import MAX_GROUPS, distinct_values, rank
from labeldp_compile.estimates.private_table import PrivateReader, open_private, require_public
from labeldp_compile.evaluate.predictions import read_predictions, require_rows
from labeldp_compile.tabular.formats import PLAIN, TextForm
from labeldp_compile.tabular.person_names import person_codes, person_names
from labeldp_compile.tabular.provenance import no_note

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
    hardly = hardly_private(decoded, {part.number: part.codes for part in labels.parts})
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
