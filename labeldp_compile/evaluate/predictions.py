"""The predictions of models, from the columns of a table."""

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from labeldp_runtime.columns.arrow import is_text
from labeldp_verify.forms import CategoricalDomain, Domain
from numpy.typing import NDArray

from labeldp_compile.errors import InputError, refused
from labeldp_compile.tabular.formats import TextForm, is_among
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
