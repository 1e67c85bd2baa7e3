"""From an artifact, predictions and private labels to metrics with intervals.

The estimates are those of the package labeldp-learn. This file reads the tables, whose rows are the
same ones in the same order.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_verify import DEFAULT_BUDGET, Budget
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import CategoricalDomain, columns_of
from labeldp_verify.opening import open_artifact
from labeldp_verify.printable import clipped
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.tabular.person_names import person_codes, person_names
from labeldp_compile.tabular.provenance import no_note
from labeldp_compile.tabular.reader import TableReader
from labeldp_compile.text_form import PLAIN, TextForm
from labeldp_compile.tools.estimate.aggregates import hardly_private, private_warnings
from labeldp_compile.tools.estimate.cells import distinct, rank
from labeldp_compile.tools.estimate.document import plain
from labeldp_compile.tools.estimate.private_counts import (
    MAX_GROUPS,
    has_labels,
)
from labeldp_compile.tools.evaluate.predictions import (
    array_of,
    learn,
    read_predictions,
    require_rows,
)
from labeldp_compile.tools.private_table import open_private, require_public

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
        measured: a ``labeldp_learn.Measured`` for each metric, model or difference, and group.
        calibration: by model, the bins of ``labeldp_learn.calibration``, if it has them.
        warnings: why these may not be private labels of the artifact, or why intervals may be too
            narrow, in words.
        left_out: rows without a private label.
        noted: whether the table notes that the artifact made its labels.
    """

    artifact: str
    rows: int
    confidence: float
    measured: list[Any]
    calibration: dict[str, list[Any]]
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


def _facts(one: Any) -> dict[str, Any]:
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
    confidence: float = 0.95,
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
    input is wrong, supports no estimate, or labeldp-learn is not installed.
    """
    learned = learn()
    decoded = open_artifact(artifact, budget)
    reader, noted = open_private(decoded, artifact, private, column, group_columns, form)
    if not noted and not unnoted:
        raise no_note(private, reader.label_columns, artifact, "accept that with --unnoted")
    public = [name for name in (by, person) if name is not None]
    for name in public:
        require_public(reader, decoded, artifact, name)
    names = [*reader.label_columns, *reader.group_names, *public]
    read = _read(reader, list(dict.fromkeys(names)))
    given = read_predictions(decoded.label, predictions, models, form)
    require_rows(predictions, given, len(read), private)
    for name, one in given.items():
        if one.dtype.kind == "f" and (np.abs(one) > _LARGEST).any():
            raise refused(predictions, f"{name!r} has predictions beyond ±{_LARGEST:g}")
    has = has_labels(reader, decoded, read)
    read = read.filter(has)
    given, rows = {name: one[has] for name, one in given.items()}, int(has.sum())
    if not rows:
        raise refused(reader.path, "has no rows with a private label")
    named, codes = ([], None) if by is None else _groups(reader.path, read, by)
    persons = None
    if person is not None:
        persons = person_codes(person_names(read[person], str(reader.path), person))
    parts = [reader.groups_of(batch) for batch in read.to_batches()]
    groups = {
        mine.name: np.concatenate([part[theirs.name] for part in parts])
        for mine, theirs in zip(decoded.groups.columns, reader.group_columns, strict=True)
    }
    labels = learned.PrivateLabels(decoded, _private(decoded, reader, read), groups or None)
    measured = learned.evaluate(
        labels,
        given,
        list(metrics) or None,
        by=codes,
        persons=persons,
        confidence=confidence,
    )
    measured = [
        one if one.group is None else replace(one, group=named[one.group]) for one in measured
    ]
    bins = {}
    two = len(labels.labels) == 2
    for name, one in given.items():
        if not isinstance(decoded.label, CategoricalDomain) or (two and one.dtype.kind == "f"):
            bins[name] = learned.calibration(labels, one, min(10, rows), confidence)
    hardly = hardly_private(decoded, {part.number: part.codes for part in labels.parts})
    warnings = [*private_warnings(reader, hardly), *_few_rows(measured, person)]
    name, left = decoded.certificate.name, len(has) - rows
    return Evaluation(name, rows, confidence, measured, bins, warnings, left, noted)


def _few_rows(measured: Sequence[Any], person: str | None) -> list[str]:
    """Where one row, or person, has much of the variance that is expected: intervals may fail."""
    unit = "row" if person is None else "person"
    return [
        f"one {unit} has {100 * one.largest:.0f}% of the expected variance of the {one.metric} of "
        f"{clipped(one.model, _NAMES)}, by its predictions: the interval may be too narrow. Keep "
        "predictions in the range of labels"
        for one in measured
        if one.group is None and (one.largest or 0) > _FEW
    ]


def _groups(path: Path, read: pa.Table, by: str) -> tuple[list[Any], NDArray[np.int64]]:
    """The groups, in order, and the place [n] of each row's group. Nulls are the group "null"."""
    values, places = distinct(path, by, read[by].combine_chunks())
    if len(values) > MAX_GROUPS:
        raise refused(path, f"{by!r}: more than {MAX_GROUPS:,} groups")
    order = sorted(range(len(values)), key=lambda i: rank(values[i]))
    names = ["null" if values[i] is None else values[i] for i in order]
    return names, np.argsort(order)[places]


def _read(reader: TableReader, names: list[str]) -> pa.Table:
    """[n] columns of the table of private labels."""
    batches = list(reader.columns(names))
    if not batches:
        raise refused(reader.path, "has no rows")
    return pa.Table.from_batches(batches).select(names)


def _private(
    decoded: Artifact, reader: TableReader, read: pa.Table
) -> NDArray[Any] | dict[str, NDArray[Any]]:
    """The private labels; those of a joint label by the names of its columns."""
    found = [
        array_of(read[name], text=isinstance(one, CategoricalDomain) and one.is_text)
        for name, one in zip(reader.label_columns, columns_of(reader.domain), strict=True)
    ]
    if len(found) == 1:
        return found[0]
    return dict(zip(decoded.certificate.label_columns, found, strict=True))
