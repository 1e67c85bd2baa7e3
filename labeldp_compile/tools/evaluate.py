"""From an artifact, predictions and private labels to metrics with intervals.

The estimates are those of the package labeldp-learn. This file reads the tables, whose rows are the
same ones in the same order.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from labeldp_verify import DEFAULT_BUDGET, Budget
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import CategoricalDomain, JointDomain
from labeldp_verify.opening import open_artifact
from numpy.typing import NDArray

from labeldp_compile.errors import InputError, refused
from labeldp_compile.tabular.header import read_schema
from labeldp_compile.tabular.reader import TableReader, read_columns
from labeldp_compile.text_form import PLAIN, TextForm
from labeldp_compile.tools.private_table import open_private, require_public

FORMAT_VERSION = "1.0"
PREDICTION, PROBABILITY = "prediction", "probability_"  # as labeldp predict calls them


@dataclass(frozen=True)
class Evaluation:
    """Metrics of models, with differences of models.

    Attributes:
        artifact: the name in its certificate.
        rows: that were used.
        confidence: of the intervals.
        measured: a ``labeldp_learn.Measured`` for each metric, model or difference, and group.
        calibration: by model, the bins of ``labeldp_learn.calibration``, if it has them.
    """

    artifact: str
    rows: int
    confidence: float
    measured: list[Any]
    calibration: dict[str, list[Any]]

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
    learn = _learn()
    decoded = open_artifact(artifact, budget)
    reader = open_private(decoded, artifact, private, column, group_columns, form)
    public = [name for name in (by, person) if name is not None]
    for name in public:
        require_public(reader, decoded, artifact, name)
    names = [*reader.label_columns, *reader.group_names, *public]
    table = _arrays(reader, list(dict.fromkeys(names)))
    given = _models(decoded, predictions, models, form)
    rows = len(next(iter(table.values())))
    if any(len(one) != rows for one in given.values()):
        raise refused(predictions, f"its rows are not the {rows:,} of {private}, in the same order")
    groups = {
        mine.name: table[theirs.name]
        for mine, theirs in zip(decoded.groups.columns, reader.group_columns, strict=True)
    }
    labels = learn.PrivateLabels(decoded, _private(decoded, reader, table), groups or None)
    measured = learn.evaluate(
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
            bins[name] = learn.calibration(labels, one, min(10, rows), confidence)
    return Evaluation(decoded.certificate.name, rows, confidence, measured, bins)


def _learn() -> ModuleType:
    if importlib.util.find_spec("labeldp_learn") is None:
        raise InputError(
            "labeldp evaluate needs the package labeldp-learn: in a clone of labeldp, "
            "pip install ./learn"
        )
    return importlib.import_module("labeldp_learn")


def _arrays(reader: TableReader, names: list[str]) -> dict[str, NDArray[Any]]:
    """[n] columns of the table of private labels; of CSV, numbers where a label is a number."""
    batches = list(reader.columns(names))
    if not batches:
        raise refused(reader.path, "has no rows")
    table = pa.Table.from_batches(batches).select(names)
    return {name: _array(table[name]) for name in names}


def _private(
    decoded: Artifact, reader: TableReader, table: Mapping[str, NDArray[Any]]
) -> NDArray[Any] | dict[str, NDArray[Any]]:
    if isinstance(decoded.label, JointDomain) and not decoded.answers_with_sets:
        names = decoded.certificate.label_columns
        pairs = zip(names, reader.label_columns, strict=True)
        return {name: table[column] for name, column in pairs}
    return table[reader.column]


def _models(
    decoded: Artifact, path: Path, models: Sequence[str], form: TextForm
) -> dict[str, NDArray[Any]]:
    """Predictions by the name of the model."""
    there = list(read_schema(path, form)[0].names)
    labels = _label_names(decoded)
    if not models:
        every = labels is not None and all(PROBABILITY + name in there for name in labels)
        models = [f"{PROBABILITY}*" if every else PREDICTION]
    wanted: dict[str, list[str]] = {}
    for model in models:
        if model in wanted:
            raise InputError(f"--model {model} is given twice")
        if model.endswith("*") and labels is None:
            raise InputError(f"--model {model}: the labels are numbers; name a column")
        wanted[model] = (
            [model[:-1] + name for name in labels or ()] if model[-1:] == "*" else [model]
        )
    columns = list(dict.fromkeys(name for names in wanted.values() for name in names))
    batches = list(read_columns(path, columns, form, columns[0]))
    if not batches:
        raise refused(path, "has no rows")
    table = pa.Table.from_batches(batches)
    arrays = {name: _array(table[name]) for name in columns}
    found = {}
    for model, names in wanted.items():
        parts = [arrays[name] for name in names]
        if len(parts) > 1 and any(part.dtype.kind not in "iuf" for part in parts):
            raise refused(path, f"{model}: probabilities must be numbers")
        found[model] = parts[0] if len(parts) == 1 else np.stack(parts, axis=1)
        if found[model].dtype.kind == "f" and not np.isfinite(found[model]).all():
            raise refused(path, f"{model!r} has predictions that are missing or not finite")
    return found


def _label_names(decoded: Artifact) -> list[str] | None:
    domain = decoded.label
    return (
        [domain.name(v) for v in domain.values] if isinstance(domain, CategoricalDomain) else None
    )


def _array(column: pa.ChunkedArray) -> NDArray[Any]:
    """A column; text that is all numbers, as in CSV files, becomes numbers."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        try:
            column = pc.cast(pc.utf8_trim_whitespace(column), pa.float64())
        except pa.ArrowInvalid:
            return np.asarray(column.to_pylist(), object)
    found: NDArray[Any] = column.to_numpy()
    return found
