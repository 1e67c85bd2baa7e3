"""Tables with a model's predictions, read for an audit of its training labels."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from labeldp_runtime.columns.arrow import is_number, is_text
from numpy.typing import NDArray

from labeldp_compile.errors import refused, require_installed, trainer_module
from labeldp_compile.evaluate.rows import PREDICTION, PROBABILITY
from labeldp_compile.tabular.columns import kind_of, value_type
from labeldp_compile.tabular.formats import PLAIN, TextForm, files_of
from labeldp_compile.tabular.reader import read_columns, read_schema, require_column

if TYPE_CHECKING:
    from labeldp_learn.model_audit import AuditRows, ModelAudit

_MOST_CATEGORIES = 250  # of a feature; others are missing


@dataclass(frozen=True)
class Claim:
    """What is stated of a model: ε and δ of a label, if anything is."""

    epsilon: float | None
    delta: float


def audit_run(
    run: Path,
    trained: Path | None,
    untrained: Path | None,
    label: str | None,
    confidence: float,
) -> tuple[ModelAudit, Claim]:
    """Audit a finished run of labeldp train, on its own tables where none are given.

    Raises InputError.
    """
    outcomes = trainer_module("outcomes.audited", "audit RUN")
    with tempfile.TemporaryDirectory() as folder:
        found = outcomes.predicted(run, trained, untrained, label, Path(folder))
        claim = Claim(found.epsilon, found.delta)
        audit = audit_predictions(
            found.trained,
            found.untrained,
            found.label,
            claim,
            confidence,
            found.features,
            named=found.sources,
        )
    return audit, claim


def audit_predictions(
    trained: Path,
    untrained: Path,
    label: str,
    claim: Claim,
    confidence: float,
    features: Sequence[str] | None = None,
    form: TextForm = PLAIN,
    named: tuple[Path, Path] | None = None,
) -> ModelAudit:
    """Audit the model whose predictions are columns of two tables, with true labels.

    The columns are ``prediction`` (numbers or classes) or ``probability_CLASS`` of every class, as
    labeldp predict writes. All other columns of numbers and text are features, or those of
    ``features``. Rows without a label are left out. Raises InputError, which says ``named`` for the
    two tables.
    """
    require_installed("audit of a model", "sklearn", install="pip install scikit-learn")
    from labeldp_learn.model_audit import LEAST_ROWS, AuditRows, audit_model  # noqa: PLC0415

    tables = [_read(path, label, features, form) for path in (trained, untrained)]
    trained, untrained = named or (trained, untrained)
    names = tables[0].column_names
    if set(tables[1].column_names) != set(names):
        other = sorted(set(names) ^ set(tables[1].column_names))
        raise refused(untrained, f"has other columns than {trained}: {other[0]!r}")
    if tables[1].select(names).equals(tables[0]):
        raise refused(untrained, f"has the rows of {trained}; give rows that were not trained on")
    classes = _classes(tables, names, label)
    used = [
        name
        for name in names
        if name not in (label, PREDICTION) and not name.startswith(PROBABILITY)
    ]
    columns, categorical = _features(tables, used)
    parts: list[AuditRows] = []
    for path, table, own in zip((trained, untrained), tables, columns, strict=True):
        labels, known = _labels(path, table[label], classes)
        outputs = _outputs(path, table, classes)
        rows = AuditRows(labels[known], outputs[known], own[known])
        if len(rows) < LEAST_ROWS:
            raise refused(path, f"has {len(rows):,} rows with a label; an audit needs {LEAST_ROWS}")
        parts.append(rows)
    return audit_model(
        parts[0],
        parts[1],
        None if classes is None else len(classes),
        epsilon=claim.epsilon,
        delta=claim.delta,
        confidence=confidence,
        categorical=categorical,
    )


def _read(path: Path, label: str, features: Sequence[str] | None, form: TextForm) -> pa.Table:
    """The columns that an audit uses; text that is all numbers becomes numbers."""
    files = files_of(path)
    there = list(read_schema(files[0], form)[0].names)
    predicted = [name for name in there if name == PREDICTION or name.startswith(PROBABILITY)]
    if not predicted:
        raise refused(path, f"has no column {PREDICTION!r} and none that starts {PROBABILITY!r}")
    for name in (label, *(features or ())):
        require_column(path, name, there)
    others = [name for name in there if name != label and name not in predicted]
    used = [label, *predicted, *(others if features is None else features)]
    batches = [
        batch for file in files for batch in read_columns(file, used, form, [label], numbers=used)
    ]
    if not batches:
        raise refused(path, "has no rows")
    table = pa.Table.from_batches(batches)
    kept = [name for name in used if kind_of(table[name].type) is not None]
    return pa.table({name: _plain(table[name]) for name in kept})


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers as float64, also those of text; other text as it is, without empty cells."""
    column = column.cast(value_type(column.type))
    if not is_text(column.type):
        return column.cast(pa.float64(), safe=False)
    trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
    trimmed = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
    with contextlib.suppress(pa.ArrowInvalid):
        return pc.cast(trimmed, pa.float64())
    return trimmed


def _classes(tables: Sequence[pa.Table], names: Sequence[str], label: str) -> list[str] | None:
    """The classes as text; None if labels are numbers."""
    listed = [name.removeprefix(PROBABILITY) for name in names if name.startswith(PROBABILITY)]
    if listed:
        return listed
    if all(is_number(table[label].type) for table in tables):
        return None
    texts: set[str] = set()
    for table in tables:
        for name in (label, PREDICTION):
            texts |= set(map(str, _texts(table[name]).unique().drop_null().to_pylist()))
    return sorted(texts)


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers as the names of classes have them: 1 and not 1.0."""
    if not is_number(column.type):
        return column
    whole = pc.cast(column, pa.int64(), safe=False)
    if pc.all(pc.or_kleene(pc.equal(pc.cast(whole, pa.float64()), column), False)).as_py():
        column = whole
    return pc.cast(column, pa.string())


def _labels(
    path: Path, column: pa.ChunkedArray, classes: Collection[str] | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Labels, and which rows have one."""
    if classes is None:
        numbers = _numbers(column)
        return numbers, np.isfinite(numbers)
    texts = _texts(column)
    codes = pc.index_in(texts, pa.array(list(classes), pa.string()))
    if codes.null_count > texts.null_count:
        raise refused(path, "has labels that are none of the classes of the predictions")
    numbers = _numbers(codes)
    return numbers, np.isfinite(numbers)


def _numbers(column: Any) -> NDArray[np.float64]:
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def _outputs(path: Path, table: pa.Table, classes: Sequence[str] | None) -> NDArray[np.float64]:
    """[n, k] probabilities, or [n, 1] numbers."""
    listed = [f"{PROBABILITY}{name}" for name in classes or ()]
    if listed and all(name in table.column_names for name in listed):
        found = np.stack([_numbers(table[name]) for name in listed], axis=1)
    elif classes is not None:
        codes, _ = _labels(path, table[PREDICTION], classes)
        found = (codes[:, None] == np.arange(len(classes))).astype(np.float64)
    elif is_text(table[PREDICTION].type):
        raise refused(path, f"{PREDICTION!r} is text, but labels are numbers")
    else:
        found = _numbers(table[PREDICTION])[:, None]
    if not np.isfinite(found).all():
        raise refused(path, "has predictions that are missing or not finite")
    return found


def _features(
    tables: Sequence[pa.Table], names: Sequence[str]
) -> tuple[list[NDArray[np.float64]], NDArray[np.bool_]]:
    """[n, p] of each table: numbers, and codes of text; and [p] which are codes."""
    columns: list[list[NDArray[np.float64]]] = [[] for _ in tables]
    categorical = []
    for name in names:
        own = [table[name] for table in tables]
        texts = any(is_text(column.type) for column in own)
        categorical.append(texts)
        if texts:
            counts = pa.concat_arrays([_texts(c).combine_chunks() for c in own]).value_counts()
            order = sorted(counts.to_pylist(), key=lambda each: -each["counts"])
            kept = [each["values"] for each in order if each["values"] is not None]
            kept = kept[:_MOST_CATEGORIES]
            own = [pc.index_in(_texts(c), pa.array(kept, pa.string())) for c in own]
        for place, column in zip(columns, own, strict=True):
            place.append(_numbers(column))
    arrays = [
        np.stack(place, axis=1) if place else np.zeros((len(table), 0))
        for place, table in zip(columns, tables, strict=True)
    ]
    return arrays, np.array(categorical, np.bool_)
