"""The layers of ``models/layers.py``, on images [rows, channels, height, width]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labeldp_trainer.onnx_export.graph import ModelGraph, Value

_EPSILON = 1e-5  # of group_norm


@dataclass(frozen=True)
class Image:
    """Images of one size.

    Attributes:
        value: [rows, channels, height, width].
        height, width: in pixels.
        channels: of a pixel.
    """

    value: Value
    height: int
    width: int
    channels: int


def dense(graph: ModelGraph, layer: Any, x: Value) -> Value:
    """An affine function of each example."""
    return graph.node("Gemm", x, graph.floats(layer["w"]), graph.floats(layer["b"]))


def stack(graph: ModelGraph, layers: Any, x: Value) -> Value:
    """Dense layers with ReLU between them."""
    for layer in layers[:-1]:
        x = graph.node("Relu", dense(graph, layer, x))
    return dense(graph, layers[-1], x)


def channels_first(graph: ModelGraph, x: Value, shape: tuple[int, int, int]) -> Image:
    """Images [rows, height, width, channels]."""
    return Image(graph.node("Transpose", x, perm=[0, 3, 1, 2]), *shape)


def flat(graph: ModelGraph, x: Image) -> Value:
    """[rows, height · width · channels], the channels of a pixel side by side."""
    return graph.node("Flatten", graph.node("Transpose", x.value, perm=[0, 2, 3, 1]), axis=1)


def conv(graph: ModelGraph, layer: Any, x: Image, stride: int = 1) -> Image:
    """A convolution, padded to the same size; what does not split evenly goes to the end."""
    kernel = np.asarray(layer["w"])
    size, _, _, channels = kernel.shape
    sides = x.height, x.width
    outputs = [-(-side // stride) for side in sides]
    missing = [
        max((n - 1) * stride + size - side, 0) for n, side in zip(outputs, sides, strict=True)
    ]
    bias = [graph.floats(layer["b"])] if "b" in layer else []
    value = graph.node(
        "Conv",
        x.value,
        graph.floats(kernel.transpose(3, 2, 0, 1)),
        *bias,
        strides=[stride, stride],
        pads=[m // 2 for m in missing] + [m - m // 2 for m in missing],
    )
    return Image(value, outputs[0], outputs[1], channels)


def pool(graph: ModelGraph, op: str, x: Image) -> Image:
    """``AveragePool`` or ``MaxPool`` of 2 × 2 blocks; an odd last row or column is dropped."""
    value = graph.node(op, x.value, kernel_shape=[2, 2], strides=[2, 2])
    return Image(value, x.height // 2, x.width // 2, x.channels)


def relu(graph: ModelGraph, x: Image) -> Image:
    """The positive part."""
    return Image(graph.node("Relu", x.value), x.height, x.width, x.channels)


def group_norm(graph: ModelGraph, layer: Any, x: Image, groups: int) -> Image:
    """Groups of channels of each example, normalised as if each were one channel."""
    size = x.channels // groups * x.height * x.width
    together = graph.node("Reshape", x.value, graph.whole([0, groups, size]))
    one, zero = graph.floats(np.ones(groups)), graph.floats(np.zeros(groups))
    normal = graph.node("InstanceNormalization", together, one, zero, epsilon=_EPSILON)
    apart = graph.node("Reshape", normal, graph.whole([0, x.channels, x.height, x.width]))
    scale, shift = (np.asarray(layer[key])[:, None, None] for key in ("scale", "shift"))
    scaled = graph.node("Mul", apart, graph.floats(scale))
    return Image(graph.node("Add", scaled, graph.floats(shift)), x.height, x.width, x.channels)
