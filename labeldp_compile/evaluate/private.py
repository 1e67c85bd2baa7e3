"""From an artifact, predictions and private labels to metrics with intervals.

The estimates are those of ``labeldp_learn``. This file reads the tables, whose rows are the
same ones in the same order, once, and holds what metrics need of them on disk.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
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
    is_numeric,
    measure,
)
from labeldp_verify import DEFAULT_BUDGET, Budget
from labeldp_verify.opening import open_artifact
from labeldp_verify.printable import clipped
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.estimates.aggregates import plain, private_warnings
from labeldp_compile.estimates.counts import (
    MAX_GROUPS,
    PrivateReader,
    distinct_values,
    open_private,
    rank,
    require_public,
)
from labeldp_compile.evaluate.rows import Records, SortedRecords, read_predictions, rows_with_label
from labeldp_compile.tabular.formats import PLAIN, TextForm
from labeldp_compile.tabular.persons import persons_of
from labeldp_compile.tabular.provenance import no_note

FORMAT_VERSION = "1.0"
_FEW = 0.1  # of the variance: with more in one row, intervals covered too rarely
_NAMES = 60
_TOGETHER = 16  # bits of the number of a row without a person: rows that are together
_LARGEST = 1e30  # its eighth power, in the kurtosis of a squared error, times rows is a float64


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
    labels = PrivateLabels.of_outputs(decoded, np.empty(0, np.int64)).labels
    numeric = is_numeric(decoded)
    models, given = read_predictions(
        decoded.label, predictions, models, form, labels, numeric=numeric
    )
    for i, model in enumerate(models if numeric else ()):
        if any((np.abs(rows[str(i)]) > _LARGEST).any() for rows in given.blocks()):
            raise refused(predictions, f"{model!r} has predictions beyond ±{_LARGEST:g}")
    source = PrivateReader(reader, decoded)
    records, groups = _read(source, given, by, person)
    if not records.rows:
        raise refused(private, "has no rows with a private label")
    shapes = {name: records.type[str(i)].shape for i, name in enumerate(models)}

    def of_rows(read: Callable[[], Iterator[NDArray[Any]]]) -> Rows:
        return Rows(decoded, models, partial(_blocks, models, person is not None, read))

    whole = of_rows(records.blocks)
    names = chosen_metrics(whole.private, metrics or None, probabilities=all(shapes.values()))
    parts: list[tuple[Any, Rows]] = [(None, whole)]
    if person is not None:
        parts = [(None, of_rows(SortedRecords(records).blocks))]
    if by is not None:
        apart = SortedRecords(records, len(groups) + 1)
        for value in sorted(groups, key=rank):
            of_group = of_rows(partial(apart.blocks, groups[value]))
            parts.append(("null" if value is None else value, of_group))
    measured = [one for name, part in parts for one in measure(part, names, CONFIDENCE, name)]
    bins = {
        name: calibration_of(whole, name, min(10, records.rows), CONFIDENCE)
        for name, shape in shapes.items()
        if numeric or shape == (2,)
    }
    tables = {one.number: (one.codes, one.counts.astype(int)) for one in whole.private.parts}
    hardly = hardly_private(decoded, {i: OutputCounts(*one) for i, one in tables.items()})
    warnings = [*private_warnings(reader, hardly), *_few_rows(measured, person)]
    name, left = decoded.certificate.name, given.rows - records.rows
    return Evaluation(name, records.rows, CONFIDENCE, measured, bins, warnings, left, noted)


def _read(
    source: PrivateReader, given: Records, by: str | None, person: str | None
) -> tuple[Records, dict[Any, int]]:
    """The rows that have a private label, with their predictions, and the number of each group.

    Without persons, rows that follow one another are together. Raises DataError.
    """
    reader = source.reader
    records, groups = Records(reader.path), dict[Any, int]()
    public = filter(None, (by, person))
    columns = dict.fromkeys([*reader.label_columns, *reader.group_names, *public])
    table = reader.columns(list(columns))
    for batch, rows in rows_with_label(table, reader.path, given, source.has_label):
        group, who = np.zeros(len(batch), np.int32), np.arange(len(batch), dtype=np.uint64)
        who = who + np.uint64(records.rows) >> np.uint64(_TOGETHER)
        if by is not None:
            values, indices = distinct_values(reader.path, by, batch.column(by))
            here = [groups.setdefault(value, len(groups)) for value in values]
            group = np.array(here, np.int32)[indices]
        if len(groups) > MAX_GROUPS:
            raise refused(reader.path, f"{by!r}: more than {MAX_GROUPS:,} groups")
        if person is not None:
            who = persons_of(reader.path, person, batch.column(person))
        records.append(
            {"code": source.output_indices(batch), "group": group, "person": who, **rows}
        )
    return records, groups


def _blocks(
    models: Sequence[str], has_persons: bool, read: Callable[[], Iterator[NDArray[Any]]]
) -> Iterator[Block]:
    for rows in read():
        given = {model: rows[str(i)] for i, model in enumerate(models)}
        yield rows["code"], given, rows["person"] if has_persons else None


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
