"""From an artifact, predictions and private labels to metrics with intervals.

The estimates are those of the package labeldp-learn. This file reads the tables, whose rows are the
same ones in the same order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from labeldp_verify import DEFAULT_BUDGET, Budget
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import CategoricalDomain, JointDomain
from labeldp_verify.opening import open_artifact
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.tabular.reader import TableReader
from labeldp_compile.text_form import PLAIN, TextForm
from labeldp_compile.tools.estimate.aggregates import private_warnings
from labeldp_compile.tools.estimate.estimate import Estimation
from labeldp_compile.tools.estimate.inversion import NotEstimableError
from labeldp_compile.tools.estimate.private_counts import count_outputs
from labeldp_compile.tools.evaluate.predictions import (
    array_of,
    learn,
    read_predictions,
    require_rows,
)
from labeldp_compile.tools.private_table import open_private, require_public

FORMAT_VERSION = "1.0"


@dataclass(frozen=True)
class Evaluation:
    """Metrics of models, with differences of models.

    Attributes:
        artifact: the name in its certificate.
        rows: that were used.
        confidence: of the intervals.
        measured: a ``labeldp_learn.Measured`` for each metric, model or difference, and group.
        calibration: by model, the bins of ``labeldp_learn.calibration``, if it has them.
        warnings: why these may not be private labels of the artifact, in words.
    """

    artifact: str
    rows: int
    confidence: float
    measured: list[Any]
    calibration: dict[str, list[Any]]
    warnings: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """``{format_version, artifact, rows, confidence, measured, calibration}``."""
        return {
            "format_version": FORMAT_VERSION,
            "artifact": self.artifact,
            "rows": self.rows,
            "confidence": self.confidence,
            "measured": [asdict(one) for one in self.measured],
            "calibration": {
                name: [asdict(one) for one in bins] for name, bins in self.calibration.items()
            },
        }


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
) -> Evaluation:
    """Metrics of the models whose predictions are columns of a file, from private labels alone.

    ``models`` are columns: numbers, labels, or probabilities of the second of two labels. A name
    that ends in ``*`` stands for all labels: ``probability_*`` has a column ``probability_LABEL``
    each. Without names, it is what ``labeldp predict`` writes. ``by`` and ``person`` are columns of
    the table of private labels.

    Raises VerificationError if the artifact does not verify, and InputError (DataError) if the
    input is wrong, supports no estimate, or labeldp-learn is not installed.
    """
    learned = learn()
    decoded = open_artifact(artifact, budget)
    reader = open_private(decoded, artifact, private, column, group_columns, form)
    public = [name for name in (by, person) if name is not None]
    for name in public:
        require_public(reader, decoded, artifact, name)
    names = [*reader.label_columns, *reader.group_names, *public]
    table = _arrays(reader, list(dict.fromkeys(names)))
    given = read_predictions(decoded.label, predictions, models, form)
    rows = len(next(iter(table.values())))
    require_rows(predictions, given, rows, private)
    groups = {
        mine.name: table[theirs.name]
        for mine, theirs in zip(decoded.groups.columns, reader.group_columns, strict=True)
    }
    labels = learned.PrivateLabels(decoded, _private(decoded, reader, table), groups or None)
    measured = learned.evaluate(
        labels,
        given,
        list(metrics) or None,
        by=None if by is None else table[by],
        persons=None if person is None else table[person],
        confidence=confidence,
    )
    bins = {}
    two = len(labels.labels) == 2
    for name, one in given.items():
        if not isinstance(decoded.label, CategoricalDomain) or (two and one.dtype.kind == "f"):
            bins[name] = learned.calibration(labels, one, min(10, rows), confidence)
    name, warnings = decoded.certificate.name, _warnings(reader, decoded)
    return Evaluation(name, rows, confidence, measured, bins, warnings)


def _warnings(reader: TableReader, decoded: Artifact) -> list[str]:
    """Why these may not be private labels, by the test of ``labeldp estimate``."""
    (every, *_) = count_outputs([(reader, decoded)], ())
    try:
        hardly = bool(Estimation.of(decoded, tables=every.by_table).hardly_private(every))
    except NotEstimableError:
        hardly = False
    return private_warnings(reader, hardly)


def _arrays(reader: TableReader, names: list[str]) -> dict[str, NDArray[Any]]:
    """[n] columns of the table of private labels; of CSV, numbers where a label is a number."""
    batches = list(reader.columns(names))
    if not batches:
        raise refused(reader.path, "has no rows")
    table = pa.Table.from_batches(batches).select(names)
    return {name: array_of(table[name]) for name in names}


def _private(
    decoded: Artifact, reader: TableReader, table: Mapping[str, NDArray[Any]]
) -> NDArray[Any] | dict[str, NDArray[Any]]:
    if isinstance(decoded.label, JointDomain) and not decoded.answers_with_sets:
        names = decoded.certificate.label_columns
        pairs = zip(names, reader.label_columns, strict=True)
        return {name: table[column] for name, column in pairs}
    return table[reader.column]
