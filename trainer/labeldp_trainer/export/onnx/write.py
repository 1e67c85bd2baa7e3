"""Exports a trained run as one ONNX model, after checking it against JAX."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import onnxruntime
import pyarrow as pa
from numpy.typing import NDArray

from labeldp_compile.toolkit import files_of
from labeldp_trainer.config.data import DATE_FEATURES, IdxData
from labeldp_trainer.config.representation import given_vectors
from labeldp_trainer.data import DataPart
from labeldp_trainer.data.arrays import MOST_BYTE
from labeldp_trainer.data.features import ArrayEncoder, Encoder, TableEncoder
from labeldp_trainer.data.table import TableColumns, date_numbers
from labeldp_trainer.errors import DataError, InputError, RunFolderError
from labeldp_trainer.export.onnx.graph import (
    DOUBLE,
    FLOAT,
    INT64,
    ML,
    STRING,
    UINT8,
    ModelGraph,
    Tensor,
)
from labeldp_trainer.operators import POISSON_FLOOR, joined
from labeldp_trainer.outcomes.predict import Trained, encoded_rows
from labeldp_trainer.run.folder import read_json

FORMAT_VERSION = "1.0"
MOST_RELATIVE = 1e-3  # the largest difference from JAX, relative to the largest output
_ROWS = 256  # at most, that are compared
_FEATURES = "features"
_OUTPUTS = _PREDICTION, _PROBABILITIES = ("prediction", "probabilities")
_MISSING = "\N{SYMBOL FOR NULL}"  # for a missing category; repeated so that no category equals it


@dataclass(frozen=True)
class Deviation:
    """How far the model is from JAX.

    Attributes:
        rows: compared.
        largest: difference of two predicted numbers, or probabilities.
        relative: the same, divided by the largest of these numbers.
    """

    rows: int
    largest: float
    relative: float


def onnx_model(trained: Trained) -> bytes:
    """Encoder, representation, model and loss as one graph, the statement in its metadata.

    Inputs: a tensor [rows] for each column of a table, double for numbers, double for dates (days
    since 1970-01-01 in UTC, with their fraction), text for categories, or ``features`` [rows, …].
    A missing number or date is NaN. Outputs: ``prediction`` [rows], for classes also
    ``probabilities`` [rows, classes]. Raises InputError.
    """
    names = _input_names(trained.encoder)
    graph = ModelGraph([*names, *_OUTPUTS])
    x = _encoded(graph, trained.encoder)
    if trained.representation is not None:
        x = trained.representation.vectors(x, graph.value)
    params = jax.tree.map(lambda leaf: graph.value(np.asarray(leaf)), trained.params)
    _add_outputs(graph, trained, trained.model.apply(params, x))
    metadata = {
        "labeldp.model.format_version": FORMAT_VERSION,
        "labeldp.model.name": trained.loaded.config.name,
        "labeldp.model.privacy": _statement(trained),
    }
    try:
        return graph.to_bytes("labeldp_model", metadata)
    except ValueError as error:  # protobuf's 2 GB
        raise InputError(
            f"{trained.folder.path}: cannot be exported as one ONNX file: {error}"
        ) from None


def check(trained: Trained, model: bytes, data: Path | None = None) -> Deviation:
    """Compare a model with JAX on real rows: of ``data``, else of the run's test or training file.

    Raises DataError if there are no rows, or the two differ by more than ``MOST_RELATIVE``.
    """
    feeds, part = _rows(trained, data)
    values, probabilities = trained.predictions(trained.outputs(part))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only; users need no warning about unused constants
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    found = dict(
        zip([o.name for o in session.get_outputs()], session.run(None, feeds), strict=True)
    )
    if probabilities is None:
        ours, theirs = values.to_numpy(), found[_PREDICTION]
    else:
        ours, theirs = probabilities, found[_PROBABILITIES]
    largest = float(np.abs(theirs.astype(np.float64) - ours.astype(np.float64)).max())
    relative = largest / max(float(np.abs(ours).max()), float(np.finfo(np.float32).tiny))
    if not relative <= MOST_RELATIVE or not _same_classes(trained, probabilities, found):
        raise DataError(
            f"{trained.folder.path}: the exported model differs from the trained one by "
            f"{relative:.2g} of the largest output, so nothing was written"
        )
    return Deviation(part.rows, largest, relative)


def _same_classes(
    trained: Trained, probabilities: NDArray[np.float32] | None, found: dict[str, Any]
) -> bool:
    """Whether predicted classes are those of JAX; between equally likely ones, either is fine."""
    if probabilities is None:
        return True
    classes = trained.classes.to_pylist()
    place = {name: i for i, name in enumerate(classes)}
    chosen = np.array([place[name] for name in found[_PREDICTION].tolist()])
    rows = np.arange(len(chosen))
    behind = probabilities.max(axis=1) - probabilities[rows, chosen]
    return bool((behind <= MOST_RELATIVE).all())


def _input_names(encoder: Encoder) -> list[str]:
    """One per column of a table, or one for arrays. Raises DataError for a name that is taken."""
    if isinstance(encoder, ArrayEncoder):
        return [_FEATURES]
    columns = (*encoder.numeric_columns, *encoder.categorical)
    names = [*(column.name for column in columns), *encoder.dates]
    for name in names:
        if name in _OUTPUTS or not name:
            raise DataError(
                f"a feature column is named {name!r}; a model input cannot have this name, so "
                "rename the column"
            )
    return names


def _encoded(graph: ModelGraph, encoder: Encoder) -> Any:
    """Declare the inputs, and return the features as ``Dataset`` has them. An input is [rows] of
    double for a numeric column or a date, [rows] of text for a categorical one, or an array."""
    if isinstance(encoder, TableEncoder):
        both = {"numeric": _numbers(graph, encoder), "categorical": _codes(graph, encoder)}
        return {kind: joined(*columns) for kind, columns in both.items() if columns}
    if not encoder.bytes:
        return graph.input(_FEATURES, FLOAT, encoder.example)
    pixels = graph.input(_FEATURES, UINT8, encoder.example).astype(np.float32)
    return pixels / float(MOST_BYTE)


def _numbers(graph: ModelGraph, encoder: TableEncoder) -> list[Tensor]:
    """[rows, 1] each. Computed in float64 first, as in training: the mean may be far from 0."""
    given = [graph.input(column.name, DOUBLE) for column in encoder.numeric_columns]
    for name in encoder.dates:
        given += date_numbers(graph.input(name, DOUBLE))
    return [
        ((number[:, None] - graph.constant(column.mean)) / graph.constant(column.deviation)).astype(
            np.float32
        )
        for number, column in zip(given, encoder.numeric, strict=True)
    ]


def _codes(graph: ModelGraph, encoder: TableEncoder) -> list[Tensor]:
    return [
        graph.input(column.name, STRING).node(
            "LabelEncoder",
            domain=ML,
            keys_strings=column.vocabulary or [""],
            values_int64s=list(range(1, len(column.vocabulary) + 1)) or [0],
            default_int64=0,
        )[:, None]
        for column in encoder.categorical
    ]


def _add_outputs(graph: ModelGraph, trained: Trained, y: Any) -> None:
    classes = trained.loss.task.classes
    if classes is None:
        number = y.node("Squeeze", [1])
        if trained.loss.name == "poisson":
            number = number.node("Softplus") + POISSON_FLOOR
        graph.output(_PREDICTION, number, FLOAT)
        return
    names = trained.classes
    is_text = pa.types.is_string(names.type)
    listed = graph.constant(names.to_numpy(zero_copy_only=False))
    chosen = listed[y.node("ArgMax", axis=1, keepdims=0)]
    graph.output(_PREDICTION, chosen, STRING if is_text else INT64)
    graph.output(_PROBABILITIES, y.node("Softmax", axis=1), FLOAT, [len(classes)])


def _statement(trained: Trained) -> str:
    path = trained.folder.path / "privacy.json"
    try:
        return json.dumps(read_json(path))
    except (OSError, ValueError):
        raise RunFolderError(f"{path}: is missing or damaged; train again") from None


def _rows(trained: Trained, data: Path | None) -> tuple[dict[str, Any], DataPart]:
    """The first rows of a file, as the model's inputs and encoded. Raises DataError."""
    config, directory = trained.loaded.config, trained.loaded.directory
    vectors = given_vectors(config.representation)
    if vectors is not None:
        names = [vectors.test, vectors.train]
    elif isinstance(config.data, IdxData):
        names = [None if f is None else f.images for f in (config.data.test, config.data.train)]
    else:
        names = [config.data.test, config.data.train]
    paths = [directory / name for name in names if name is not None]
    path = data or next((path for path in paths if path.exists()), None)
    if path is None:
        raise DataError(
            f"{paths[0]}: is missing; use --data FILE to name rows on which to compare the "
            "exported model with the trained one"
        )
    encoder = trained.encoder
    for _, columns, part in encoded_rows(trained, files_of(path)[0]):
        few = part.take(np.arange(min(_ROWS, part.rows)))
        if columns is not None and isinstance(encoder, TableEncoder) and few.rows:
            return _feeds(encoder, columns, few.rows), few
        if isinstance(encoder, ArrayEncoder):
            return {_FEATURES: _as_in_file(encoder, few)}, few
    raise DataError(f"{path}: has no rows")


def _feeds(encoder: TableEncoder, columns: TableColumns, rows: int) -> dict[str, Any]:
    """The first rows of a table, column by column."""
    numbers = [column.name for column in encoder.numeric_columns]
    places = {name: j for j, name in enumerate(numbers)}
    for j, name in enumerate(encoder.dates):  # the first of its features is the date itself
        places[name] = len(numbers) + j * len(DATE_FEATURES)
    given = np.where(np.isinf(columns.numbers[:rows]), np.nan, columns.numbers[:rows])
    feeds: dict[str, Any] = {name: given[:, j].copy() for name, j in places.items()}
    for column, texts in zip(encoder.categorical, columns.texts, strict=True):
        missing = _MISSING * (1 + max(map(len, column.vocabulary), default=0))
        few = texts.slice(0, rows).fill_null(missing)
        feeds[column.name] = np.array(few.to_pylist(), dtype=object)
    return feeds


def _as_in_file(encoder: ArrayEncoder, part: DataPart) -> Any:
    if not encoder.bytes:
        return part.features
    if not part.bytes_:
        raise DataError(
            f"{part.source}: has no bytes, unlike the training file; name another with --data"
        )
    return np.round(part.features * MOST_BYTE).astype(np.uint8)
