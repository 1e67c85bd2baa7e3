"""The layers of ``models/layers.py`` as nodes, for models and representations.

Images are [rows, height, width, channels] between layers, as in JAX. Inside a layer, channels come
first, as in ONNX. Runtimes remove transpositions that cancel.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from labeldp_trainer.data.dates import DAY_MS, HOUR_MS, calendar, date_numbers
from labeldp_trainer.export.onnx.graph import DOUBLE, Tensor
from labeldp_trainer.models import layers
from labeldp_trainer.representation import patches

_FIRST, _LAST, _KERNEL = [0, 3, 1, 2], [0, 2, 3, 1], [3, 2, 0, 1]  # where channels go
_EPSILON = 1e-5  # of group_norm


def _node(op: str, **attributes: int) -> Callable[..., Tensor]:
    def write(x: Tensor, *others: Any) -> Tensor:
        return x.node(op, *others, **attributes)

    return write


for _function, _form in {
    layers.relu: _node("Relu"),
    layers.cos: _node("Cos"),
    layers.clip: _node("Clip"),
    layers.sqrt: _node("Sqrt"),
    layers.matmul: _node("MatMul"),
    layers.flat: _node("Flatten", axis=1),
    layers.joined: _node("Concat", axis=1),
}.items():
    _function.register(Tensor, _form)


@layers.softmax.register
def _softmax(x: Tensor, axis: int) -> Tensor:
    return x.node("Softmax", axis=axis)


@layers.top_k.register
def _top_k(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    values, places = x.graph.nodes("TopK", 2, x, [count], axis=1)
    return values, places


@layers.cube_root.register
def _cube_root(x: Tensor) -> Tensor:
    return x.node("Sign") * x.node("Abs").node("Pow", 1 / 3)


@layers.softplus_of_log.register
def _softplus_of_log(x: Tensor, floor: float) -> Tensor:
    y = (x.node("Exp") - floor).node("Max", layers.LEAST_OVER_FLOOR)
    return y + (1.0 - y.node("Neg").node("Exp")).node("Log")


@layers.log_softplus.register
def _log_softplus(x: Tensor) -> Tensor:
    return x.node("Max", layers.LEAST_SOFTPLUS).node("Softplus").node("Log")


@layers.binned.register
def _binned(x: Tensor, edges: Tensor) -> Tensor:
    count = edges.shape[0]
    found = (x[:, None] >= edges[None, :]).astype(np.int64).sum(axis=1) if count else None
    missing = x.node("IsNaN").astype(np.int64) * (count + 1)
    return missing if found is None else found + missing


@layers.counted.register
def _counted(column: Tensor, pairs: int, width: int) -> Tensor:
    """One pair after another: all at once would take many times the memory."""
    columns = column.graph.value(np.arange(width))
    hits = [(column[:, [pair]] == columns).astype(np.float32) for pair in range(pairs)]
    return hits[0].node("Sum", *hits[1:])


@layers.conv.register
def _conv(x: Tensor, layer: Any, stride: int = 1) -> Tensor:
    """Padded to the same size; an odd row or column of padding goes to the end."""
    kernel = layer["w"].node("Transpose", perm=_KERNEL)
    found = x.node("Transpose", perm=_FIRST).node(
        "Conv", kernel, strides=[stride, stride], auto_pad="SAME_UPPER"
    )
    found = found.node("Transpose", perm=_LAST)
    return found + layer["b"] if "b" in layer else found


@layers.pool_average.register
def _pool_average(x: Tensor) -> Tensor:
    return _pool("AveragePool", x)


@layers.pool_max.register
def _pool_max(x: Tensor) -> Tensor:
    return _pool("MaxPool", x)


def _pool(op: str, x: Tensor) -> Tensor:
    first = x.node("Transpose", perm=_FIRST)
    return first.node(op, kernel_shape=[2, 2], strides=[2, 2]).node("Transpose", perm=_LAST)


@layers.group_norm.register
def _group_norm(x: Tensor, layer: dict[str, Tensor], groups: int) -> Tensor:
    """Groups of channels of each example, normalized as if each were one channel."""
    first = x.node("Transpose", perm=_FIRST)
    ones, zeros = np.ones(groups), np.zeros(groups)
    together = first.node("Reshape", [0, groups, -1])
    normal = together.node("InstanceNormalization", ones, zeros, epsilon=_EPSILON)
    apart = normal.node("Reshape", first.node("Shape")).node("Transpose", perm=_LAST)
    return apart * layer["scale"] + layer["shift"]


@date_numbers.register
def _date_numbers(days: Tensor) -> list[Tensor]:
    """In float64, as before standardization."""
    double, missing = days.graph.constant, days.node("IsNaN")
    ms = (missing.node("Where", double(0.0), days) * double(float(DAY_MS))).node("Round")
    dates = [number.node("Cast", to=DOUBLE) for number in calendar(ms.astype(np.int64))]
    *others, of_day = [missing.node("Where", days, number) for number in dates]
    return [days, *others, of_day / double(float(HOUR_MS))]


@patches.raw.register
def _patches(x: Tensor, arrays: Mapping[str, Tensor]) -> Tensor:
    """The kernels' answers to normalized patches: each is divided by the scale of its patch."""
    kernel, pooling = arrays["kernel"], arrays["pooling"]
    size, _, channels, count = kernel.shape
    image = x.node("Transpose", perm=_FIRST)
    mean_of = np.full((1, channels, size, size), 1 / (size * size * channels))
    mean, squares = image.node("Conv", mean_of), (image * image).node("Conv", mean_of)
    scale = ((squares - mean * mean).node("Relu") + arrays["contrast"]).node("Sqrt")
    answers = image.node("Conv", kernel.node("Transpose", perm=_KERNEL)) / scale
    answers = (answers + arrays["bias"][:, None, None]).node("Relu")
    pooled = answers.node("Reshape", [0, count, pooling.shape[0]]) @ pooling
    return pooled.node("Transpose", perm=[0, 2, 1]).node("Flatten", axis=1).node("Sqrt")
