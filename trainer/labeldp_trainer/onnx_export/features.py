"""The inputs of a graph, and from them what the model saw in training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labeldp_trainer.data.encoder import MOST_BYTE, ArrayEncoder, Encoder, TableEncoder
from labeldp_trainer.errors import DataError
from labeldp_trainer.onnx_export.graph import DOUBLE, FLOAT, ML, STRING, UINT8, ModelGraph, Value

FEATURES = "features"
OUTPUTS = ("prediction", "probabilities")


@dataclass(frozen=True)
class Encoded:
    """Encoded examples.

    Attributes:
        numbers: float32 [rows, numeric], or images [rows, height, width, channels]; None: none.
        codes: int64 [rows, categorical]; None: none.
    """

    numbers: Value | None
    codes: Value | None = None


def input_names(encoder: Encoder) -> list[str]:
    """One a column of a table, or that of arrays. Raises DataError for a name that is taken."""
    if isinstance(encoder, ArrayEncoder):
        return [FEATURES]
    names = [*encoder.numeric, *encoder.categorical]
    for name in names:
        if name in OUTPUTS or not name:
            raise DataError(f"a feature column is called {name!r}: no input of a model can be")
    return names


def encoded(graph: ModelGraph, encoder: Encoder) -> Encoded:
    """Declares the inputs: [rows] double a numeric column, text a categorical one; or an array."""
    if isinstance(encoder, TableEncoder):
        return Encoded(_numbers(graph, encoder), _codes(graph, encoder))
    if not encoder.bytes_:
        return Encoded(graph.input(FEATURES, FLOAT, encoder.example))
    pixels = graph.node("Cast", graph.input(FEATURES, UINT8, encoder.example), to=FLOAT)
    return Encoded(graph.node("Div", pixels, graph.floats(MOST_BYTE)))


def _numbers(graph: ModelGraph, encoder: TableEncoder) -> Value | None:
    columns = [graph.input(name, DOUBLE) for name in encoder.numeric]
    if not columns:
        return None
    # In float64, as in training: the mean of a column may be far from 0.
    centred = graph.node("Sub", _side_by_side(graph, columns), graph.constant(encoder.means))
    scaled = graph.node("Div", centred, graph.constant(encoder.deviations))
    return graph.node("Cast", scaled, to=FLOAT)


def _codes(graph: ModelGraph, encoder: TableEncoder) -> Value | None:
    columns = []
    for name, vocabulary in zip(encoder.categorical, encoder.vocabularies, strict=True):
        known = vocabulary.to_pylist()
        codes = list(range(1, len(known) + 1))
        column = graph.node(
            "LabelEncoder",
            graph.input(name, STRING),
            domain=ML,
            keys_strings=known or [""],
            values_int64s=codes or [0],
            default_int64=0,
        )
        columns.append(column)
    return _side_by_side(graph, columns) if columns else None


def _side_by_side(graph: ModelGraph, columns: list[Value]) -> Value:
    """[rows, columns] of columns [rows]."""
    axis = graph.whole([1])
    return graph.node("Concat", *(graph.node("Unsqueeze", c, axis) for c in columns), axis=1)


def looked_up(graph: ModelGraph, table: Value, codes: Value, starts: np.ndarray) -> Value:
    """[rows, columns, …]: the rows of one table in which the columns' codes lie in turn."""
    return graph.node("Gather", table, graph.node("Add", codes, graph.whole(starts)), axis=0)
