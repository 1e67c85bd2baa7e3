"""The inputs of a graph, and from them what the model saw in training."""

from __future__ import annotations

from typing import Any

import numpy as np

from labeldp_trainer.data.arrays import MOST_BYTE
from labeldp_trainer.data.encoder import ArrayEncoder, Encoder, TableEncoder
from labeldp_trainer.errors import DataError
from labeldp_trainer.models.layers import joined
from labeldp_trainer.onnx_export.graph import DOUBLE, FLOAT, ML, STRING, UINT8, ModelGraph, Tensor

FEATURES = "features"
OUTPUTS = ("prediction", "probabilities")


def input_names(encoder: Encoder) -> list[str]:
    """One a column of a table, or that of arrays. Raises DataError for a name that is taken."""
    if isinstance(encoder, ArrayEncoder):
        return [FEATURES]
    names = [column.name for column in (*encoder.numeric, *encoder.categorical)]
    for name in names:
        if name in OUTPUTS or not name:
            raise DataError(f"a feature column is called {name!r}: no input of a model can be")
    return names


def encoded(graph: ModelGraph, encoder: Encoder) -> Any:
    """The features of ``Dataset``, of inputs that are declared: [rows] double a numeric column,
    text a categorical one; or an array."""
    if isinstance(encoder, TableEncoder):
        columns = {"numeric": _numbers(graph, encoder), "categorical": _codes(graph, encoder)}
        return {kind: found for kind, found in columns.items() if found is not None}
    if not encoder.bytes:
        return graph.input(FEATURES, FLOAT, encoder.example)
    pixels = graph.input(FEATURES, UINT8, encoder.example).astype(np.float32)
    return pixels / float(MOST_BYTE)


def _numbers(graph: ModelGraph, encoder: TableEncoder) -> Tensor | None:
    columns = [graph.input(column.name, DOUBLE)[:, None] for column in encoder.numeric]
    if not columns:
        return None
    # In float64, as in training: the mean of a column may be far from 0.
    centred = joined(*columns) - graph.constant(encoder.means)
    return (centred / graph.constant(encoder.deviations)).astype(np.float32)


def _codes(graph: ModelGraph, encoder: TableEncoder) -> Tensor | None:
    columns = [
        graph.input(column.name, STRING).node(
            "LabelEncoder",
            domain=ML,
            keys_strings=column.vocabulary or [""],
            values_int64s=list(range(1, len(column.vocabulary) + 1)) or [0],
            default_int64=0,
        )[:, None]
        for column in encoder.categorical
    ]
    return joined(*columns) if columns else None
