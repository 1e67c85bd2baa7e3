"""The predictions of models, from the columns of a table."""

import contextlib
import importlib
import importlib.util
from collections.abc import Collection, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from labeldp_runtime.columns.arrow import is_text
from labeldp_verify.forms import CategoricalDomain, Domain
from numpy.typing import NDArray

from labeldp_compile.column_names import is_among
from labeldp_compile.errors import InputError, refused
from labeldp_compile.tabular.header import read_schema
from labeldp_compile.tabular.reader import read_columns
from labeldp_compile.text_form import TextForm

PREDICTION, PROBABILITY = "prediction", "probability_"  # as labeldp predict calls them


def learn() -> ModuleType:
    """Evaluation of labeldp-learn. Raises InputError if that is not installed."""
    if importlib.util.find_spec("labeldp_learn") is None:
        raise InputError(
            "labeldp evaluate needs the package labeldp-learn: in a clone of labeldp, "
            "pip install ./learn"
        )
    return importlib.import_module("labeldp_learn.evaluation")


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
    there = list(read_schema(path, form)[0].names)
    labels = _label_names(domain)
    if not models:
        every = labels is not None and all(PROBABILITY + name in there for name in labels)
        models = [f"{PROBABILITY}*" if every else PREDICTION]
        if not every and PREDICTION not in there:
            classes = "" if labels is None else f", or {PROBABILITY}LABEL for each label"
            raise refused(
                path, f"has no column {PREDICTION!r}{classes}; name yours with --model COLUMN"
            )
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
    for name in columns:
        if is_among(name, true_labels):
            reason = f"{name!r} is the label, and no prediction; rename it if it is one"
            raise refused(path, reason)
    is_text = isinstance(domain, CategoricalDomain) and domain.is_text
    numbers = {one for names in wanted.values() if len(names) > 1 or not is_text for one in names}
    batches = list(read_columns(path, columns, form, [*columns, *true_labels], numbers=numbers))
    if not batches:
        raise refused(path, "has no rows")
    table = pa.Table.from_batches(batches)
    arrays = {name: _array(table[name], domain) for name in columns}
    found = {}
    for model, names in wanted.items():
        parts = [arrays[name] for name in names]
        if len(parts) > 1 and any(part.dtype.kind not in "iuf" for part in parts):
            raise refused(path, f"{model}: probabilities must be numbers")
        found[model] = parts[0] if len(parts) == 1 else np.stack(parts, axis=1)
        if found[model].dtype.kind == "f" and not np.isfinite(found[model]).all():
            raise refused(path, f"{model!r} has predictions that are missing or not finite")
    return found


def require_rows(predictions: Path, given: dict[str, NDArray[Any]], rows: int, other: Path) -> None:
    """Raise DataError unless predictions have these rows, which are those of another table."""
    if any(len(one) != rows for one in given.values()):
        raise refused(predictions, f"its rows are not the {rows:,} of {other}, in the same order")


def _label_names(domain: Domain) -> list[str] | None:
    return (
        [domain.name(v) for v in domain.values] if isinstance(domain, CategoricalDomain) else None
    )


def _array(column: pa.ChunkedArray, domain: Domain) -> NDArray[Any]:
    """Predictions: text labels where all of them are, and otherwise numbers if they can be."""
    known = isinstance(domain, CategoricalDomain) and domain.is_text
    text = known and set(column.unique().to_pylist()) <= set(domain.listed)
    return array_of(column, text=text)


def array_of(column: pa.ChunkedArray, *, text: bool = False) -> NDArray[Any]:
    """A column; text that is all numbers, as in CSV files, becomes numbers unless it is ``text``.

    Whole numbers are integers, as in Parquet files: labels, and no probabilities.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not is_text(column.type):
        return np.asarray(column.to_numpy())
    for kind in () if text else (pa.int64(), pa.float64()):
        with contextlib.suppress(pa.ArrowInvalid):
            return np.asarray(pc.cast(pc.utf8_trim_whitespace(column), kind).to_numpy())
    return np.asarray(column.to_pylist(), object)
