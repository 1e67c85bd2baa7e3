"""The models of ``models``: a function each, from encoded features to outputs [rows, k]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from labeldp_trainer.errors import DataError
from labeldp_trainer.losses import POISSON_FLOOR
from labeldp_trainer.models import (
    CifarCnn,
    Clamped,
    Linear,
    LogLink,
    Mlp,
    MnistCnn,
    Model,
    ResNet18,
    Scaled,
)
from labeldp_trainer.models.build import LARGEST_LOG, LEAST_OVER_FLOOR
from labeldp_trainer.models.cnn import BLOCKS_PER_STAGE, STRIDES
from labeldp_trainer.onnx_export.features import Encoded, looked_up
from labeldp_trainer.onnx_export.graph import ModelGraph, Value
from labeldp_trainer.onnx_export.layers import (
    Image,
    channels_first,
    conv,
    dense,
    flat,
    group_norm,
    pool,
    relu,
    stack,
)


def outputs(graph: ModelGraph, model: Model, params: Any, x: Encoded) -> Value:
    """What ``model.apply`` gives. Raises DataError for a model that is none of the package's."""
    if isinstance(model, Scaled):
        return _moved(graph, outputs(graph, model.model, params, x), model.scale, model.offset)
    if isinstance(model, Clamped):
        low, high = (graph.floats(end) for end in np.asarray(params["ends"], np.float32))
        return graph.node("Clip", outputs(graph, model.model, params["model"], x), low, high)
    if isinstance(model, LogLink):
        return _log_link(graph, outputs(graph, model.model, params, x))
    if type(model) not in _WRITERS:
        raise DataError(f"a model of type {type(model).__name__} has no form in ONNX here")
    return _WRITERS[type(model)](graph, model, params, x)


def _moved(graph: ModelGraph, x: Value, scale: Any, offset: Any) -> Value:
    """offset + scale·x."""
    return graph.node("Add", graph.node("Mul", x, graph.floats(scale)), graph.floats(offset))


def _log_link(graph: ModelGraph, x: Value) -> Value:
    """y + log(1 − e^(−y)) with y = e^x − floor: what softplus makes y again."""
    most = graph.floats(LARGEST_LOG)
    mean = graph.node("Exp", graph.node("Clip", x, graph.node("Neg", most), most))
    y = graph.node("Sub", mean, graph.floats(POISSON_FLOOR))
    y = graph.node("Max", y, graph.floats(LEAST_OVER_FLOOR))
    rest = graph.node("Sub", graph.floats(1), graph.node("Exp", graph.node("Neg", y)))
    return graph.node("Add", y, graph.node("Log", rest))


def _linear(graph: ModelGraph, model: Linear, params: Any, x: Encoded) -> Value:
    y = graph.floats(params["b"])
    if x.numbers is not None:
        numbers = graph.node("Flatten", x.numbers, axis=1)
        y = graph.node("Add", graph.node("MatMul", numbers, graph.floats(params["w"])), y)
    if x.codes is not None:
        found = looked_up(graph, graph.floats(params["categories"]), x.codes, _starts(model))
        y = graph.node("Add", y, graph.node("ReduceSum", found, graph.whole([1]), keepdims=0))
    return y


def _mlp(graph: ModelGraph, model: Mlp, params: Any, x: Encoded) -> Value:
    parts = [] if x.numbers is None else [graph.node("Flatten", x.numbers, axis=1)]
    if x.codes is not None:
        found = looked_up(graph, graph.floats(params["embeddings"]), x.codes, _starts(model))
        parts.append(graph.node("Flatten", found, axis=1))
    return stack(graph, params["layers"], graph.node("Concat", *parts, axis=1))


def _starts(model: Linear | Mlp) -> np.ndarray:
    return np.cumsum([0, *model.shape.vocabularies])[:-1]


def _image(graph: ModelGraph, model: MnistCnn | CifarCnn | ResNet18, x: Encoded) -> Image:
    assert x.numbers is not None
    assert model.shape.image is not None
    return channels_first(graph, x.numbers, model.shape.image)


def _mnist(graph: ModelGraph, model: MnistCnn, params: Any, x: Encoded) -> Value:
    y = _image(graph, model, x)
    for name in ("conv1", "conv2"):
        y = pool(graph, "AveragePool", relu(graph, conv(graph, params[name], y)))
    return stack(graph, [params["dense1"], params["dense2"]], flat(graph, y))


def _cifar(graph: ModelGraph, model: CifarCnn, params: Any, x: Encoded) -> Value:
    y = _image(graph, model, x)
    for layer in params["convs"]:
        y = pool(graph, "MaxPool", relu(graph, conv(graph, layer, y)))
    return stack(graph, [params["dense1"], params["dense2"]], flat(graph, y))


def _resnet(graph: ModelGraph, model: ResNet18, params: Any, x: Encoded) -> Value:
    y = conv(graph, params["stem"], _image(graph, model, x))
    y = relu(graph, group_norm(graph, params["norm"], y, model.groups))
    for index, block in enumerate(params["blocks"]):
        stage, position = divmod(index, BLOCKS_PER_STAGE)
        y = _block(graph, block, y, STRIDES[stage] if position == 0 else 1, model.groups)
    mean = graph.node("ReduceMean", y.value, axes=[2, 3], keepdims=0)
    return dense(graph, params["dense"], mean)


def _block(graph: ModelGraph, block: Any, x: Image, stride: int, groups: int) -> Image:
    y = relu(
        graph, group_norm(graph, block["norm1"], conv(graph, block["conv1"], x, stride), groups)
    )
    y = group_norm(graph, block["norm2"], conv(graph, block["conv2"], y), groups)
    if "shortcut" in block:
        x = group_norm(graph, block["norm3"], conv(graph, block["shortcut"], x, stride), groups)
    both = graph.node("Add", x.value, y.value)
    return relu(graph, Image(both, y.height, y.width, y.channels))


_WRITERS: Mapping[type, Callable[[ModelGraph, Any, Any, Encoded], Value]] = {
    Linear: _linear,
    Mlp: _mlp,
    MnistCnn: _mnist,
    CifarCnn: _cifar,
    ResNet18: _resnet,
}
