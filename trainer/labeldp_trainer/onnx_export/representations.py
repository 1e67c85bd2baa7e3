"""The representations of ``representation``: from encoded features to vectors [rows, width]."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from labeldp_trainer.errors import DataError
from labeldp_trainer.onnx_export.features import Encoded, looked_up
from labeldp_trainer.onnx_export.graph import FLOAT, INT64, ModelGraph, Value
from labeldp_trainer.onnx_export.layers import channels_first
from labeldp_trainer.representation import Representation

Arrays = Mapping[str, Any]
Shape = tuple[int, int, int] | None


def vectors(graph: ModelGraph, representation: Representation, x: Encoded) -> Encoded:
    """What ``representation.apply`` gives. Raises DataError for a kind that is not known here."""
    if representation.kind not in _RAW:
        raise DataError(f"a representation of kind {representation.kind} has no form in ONNX here")
    raw = _RAW[representation.kind](graph, representation.arrays, x, representation.shape.image)
    return Encoded(_projected(graph, representation.arrays, raw))


def _projected(graph: ModelGraph, arrays: Arrays, raw: Value) -> Value:
    if "projection" in arrays:
        centred = graph.node("Sub", raw, graph.floats(arrays["mean"]))
        return graph.node("MatMul", centred, graph.floats(arrays["projection"]))
    kept = graph.node("Gather", raw, graph.whole(arrays["columns"]), axis=1)
    centred = graph.node("Sub", kept, graph.floats(arrays["mean"]))
    return graph.node("Div", centred, graph.floats(arrays["deviation"]))


def _patches(graph: ModelGraph, arrays: Arrays, x: Encoded, shape: Shape) -> Value:
    """Answers of the kernels to normalised patches: the scale of a patch is taken out of them."""
    assert x.numbers is not None
    assert shape is not None
    image = channels_first(graph, x.numbers, shape).value
    kernel = np.asarray(arrays["kernel"])
    size, _, channels, count = kernel.shape
    mean_of = graph.floats(np.full((1, channels, size, size), 1 / (size * size * channels)))
    mean = graph.node("Conv", image, mean_of)
    squares = graph.node("Conv", graph.node("Mul", image, image), mean_of)
    variance = graph.node("Relu", graph.node("Sub", squares, graph.node("Mul", mean, mean)))
    scale = graph.node("Sqrt", graph.node("Add", variance, graph.floats(arrays["contrast"])))
    answers = graph.node("Conv", image, graph.floats(kernel.transpose(3, 2, 0, 1)))
    bias = graph.floats(np.asarray(arrays["bias"])[:, None, None])
    answers = graph.node("Relu", graph.node("Add", graph.node("Div", answers, scale), bias))
    pooling = np.asarray(arrays["pooling"])
    places = graph.node("Reshape", answers, graph.whole([0, count, len(pooling)]))
    pooled = graph.node("MatMul", places, graph.floats(pooling))
    by_region = graph.node("Transpose", pooled, perm=[0, 2, 1])
    return graph.node("Sqrt", graph.node("Flatten", by_region, axis=1))


def _columns(graph: ModelGraph, arrays: Arrays, x: Encoded, shape: Shape) -> Value:
    """Standardised numbers and one-hot categories; images are flattened pixels."""
    if "numeric_kept" not in arrays:
        assert x.numbers is not None
        return graph.node("Flatten", x.numbers, axis=1)
    numbers, codes = _fields(graph, arrays, x)
    parts = [numbers, None if codes is None else _one_hot(graph, arrays, codes)]
    return graph.node("Concat", *(part for part in parts if part is not None), axis=1)


def _splines(graph: ModelGraph, arrays: Arrays, x: Encoded, shape: Shape) -> Value:
    """Ramps, one-hot categories and crosses."""
    numbers, codes = _fields(graph, arrays, x)
    parts = []
    if numbers is not None:
        of = graph.node("Gather", numbers, graph.whole(arrays["ramp_column"]), axis=1)
        moved = graph.node("Sub", of, graph.floats(arrays["ramp_start"]))
        sloped = graph.node("Mul", moved, graph.floats(arrays["ramp_slope"]))
        parts.append(graph.node("Clip", sloped, graph.floats(0), graph.floats(1)))
    if codes is not None:
        parts.append(_one_hot(graph, arrays, codes))
    if "cross_left" in arrays:
        parts.append(_crossed(graph, arrays, numbers, codes))
    return graph.node("Concat", *parts, axis=1)


def _one_hot(graph: ModelGraph, arrays: Arrays, codes: Value) -> Value:
    of = graph.node("Gather", codes, graph.whole(arrays["one_hot_column"]), axis=1)
    hits = graph.node("Equal", of, graph.whole(arrays["one_hot_code"]))
    return graph.node("Cast", hits, to=FLOAT)


def _fourier(graph: ModelGraph, arrays: Arrays, x: Encoded, shape: Shape) -> Value:
    columns = _columns(graph, arrays, x, shape)
    turned = graph.node("MatMul", columns, graph.floats(arrays["directions"]))
    waves = graph.node("Cos", graph.node("Add", turned, graph.floats(arrays["phases"])))
    return graph.node("Mul", waves, graph.floats(math.sqrt(2)))


def _file(graph: ModelGraph, arrays: Arrays, x: Encoded, shape: Shape) -> Value:
    assert x.numbers is not None
    return x.numbers


def _fields(graph: ModelGraph, arrays: Arrays, x: Encoded) -> tuple[Value | None, Value | None]:
    """Numbers [rows, kept] and merged codes [rows, categorical]; None if there are none."""
    numbers, codes = None, None
    if len(arrays["numeric_kept"]):
        assert x.numbers is not None
        kept = graph.node("Gather", x.numbers, graph.whole(arrays["numeric_kept"]), axis=1)
        centred = graph.node("Sub", kept, graph.floats(arrays["numeric_mean"]))
        numbers = graph.node("Div", centred, graph.floats(arrays["numeric_deviation"]))
    if x.codes is not None:
        table = graph.whole(arrays["code_merged"])
        codes = looked_up(graph, table, x.codes, arrays["code_offset"])
    return numbers, codes


def _crossed(
    graph: ModelGraph, arrays: Arrays, numbers: Value | None, codes: Value | None
) -> Value:
    """How many pairs of fields fall into each column, times its scale."""
    fields = [] if codes is None else [codes]
    if numbers is not None:
        of = graph.node("Unsqueeze", numbers, graph.whole([2]))
        edges = graph.floats(np.asarray(arrays["bin_edge"])[None])
        above = graph.node("Cast", graph.node("GreaterOrEqual", of, edges), to=INT64)
        fields.append(graph.node("ReduceSum", above, graph.whole([2]), keepdims=0))
    both = graph.node("Concat", *fields, axis=1)
    left, right = (
        graph.node("Gather", both, graph.whole(arrays[name]), axis=1)
        for name in ("cross_left", "cross_right")
    )
    place = graph.node("Add", graph.node("Mul", left, graph.whole(arrays["cross_size"])), right)
    column = looked_up(graph, graph.whole(arrays["cross_column"]), place, arrays["cross_offset"])
    # Pairs one after another: all columns at once would be many times as large.
    scale = np.asarray(arrays["cross_scale"])
    width, pairs = len(scale), len(arrays["cross_left"])
    columns = graph.whole(np.arange(width))
    hits = [
        graph.node("Cast", graph.node("Equal", one, columns), to=FLOAT)
        for one in graph.split(column, pairs)
    ]
    counts = graph.node("Sum", *hits)
    return graph.node("Mul", counts, graph.floats(scale))


_RAW: Mapping[str, Callable[[ModelGraph, Arrays, Encoded, Shape], Value]] = {
    "file": _file,
    "patches": _patches,
    "pca": _columns,
    "random_fourier": _fourier,
    "splines": _splines,
}
