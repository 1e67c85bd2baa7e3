"""An ONNX graph that is written node by node, with the layers of ``models/layers.py`` as nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

from labeldp_trainer import operators
from labeldp_trainer.data.table import DAY_MS, HOUR_MS, calendar, date_numbers
from labeldp_trainer.models import layers
from labeldp_trainer.representations import patches

# A graph that is written node by node, and its values, which can be used like arrays.

IR_VERSION, OPSET, ML_OPSET, ML = 8, 17, 2, "ai.onnx.ml"  # those of the artifacts
FLOAT: int = TensorProto.FLOAT
DOUBLE: int = TensorProto.DOUBLE
INT64: int = TensorProto.INT64
STRING: int = TensorProto.STRING
UINT8: int = TensorProto.UINT8
ROWS = "rows"  # the batch dimension, of any size


def _binary(op: str, *, reflected: bool = False) -> Callable[[Tensor, Any], Tensor]:
    def write(left: Tensor, right: Any) -> Tensor:
        sides = (right, left) if reflected else (left, right)
        return left.graph.node(op, *sides)

    return write


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of a graph. Calculations with it become nodes, as when JAX traces a function.

    Attributes:
        graph: to which it belongs.
        name: in the graph.
        shape: of a constant; () for other values.
    """

    graph: ModelGraph
    name: str
    shape: tuple[int, ...] = ()

    __array_ufunc__ = None  # array + tensor is a tensor
    __add__ = __radd__ = _binary("Add")
    __mul__ = __rmul__ = _binary("Mul")
    __sub__, __rsub__ = _binary("Sub"), _binary("Sub", reflected=True)
    __truediv__, __matmul__, __mod__ = _binary("Div"), _binary("MatMul"), _binary("Mod")
    __ge__, __eq__ = _binary("GreaterOrEqual"), _binary("Equal")  # type: ignore[assignment]

    def node(self, op: str, *others: Any, **attributes: Any) -> Tensor:
        """A node with one output; its first input is this value."""
        return self.graph.node(op, self, *others, **attributes)

    def __floordiv__(self, other: int) -> Tensor:
        """Of whole numbers, rounded down as in Python; ONNX divides towards 0."""
        return (self - self % other) / other

    def __getitem__(self, key: Any) -> Tensor:
        """Like arrays: whole axes, new ones, and positions, which may be a tensor."""
        found = self
        for axis, part in enumerate(key if isinstance(key, tuple) else (key,)):
            if part is None:
                found = found.node("Unsqueeze", [axis])
            elif not isinstance(part, slice):
                found = found.node("Gather", part, axis=axis)
        return found

    def reshape(self, *sides: int) -> Tensor:
        """The numbers in another shape, of which one side may be -1."""
        return self.node("Reshape", list(sides))

    def transpose(self, *axes: int) -> Tensor:
        """The array with axes in another order."""
        return self.node("Transpose", perm=list(axes))

    def sum(self, axis: int) -> Tensor:
        """Sums along an axis, which is removed."""
        return self.node("ReduceSum", [axis], keepdims=0)

    def mean(self, axis: Sequence[int]) -> Tensor:
        """Means along axes, which are removed."""
        return self.node("ReduceMean", axes=list(axis), keepdims=0)

    def astype(self, kind: Any) -> Tensor:
        """As float32; any type of integers as int64."""
        return self.node("Cast", to=FLOAT if np.dtype(kind).kind == "f" else INT64)


class ModelGraph:
    """Nodes, constants, inputs and outputs in the order in which they were added."""

    def __init__(self, taken: Sequence[str]) -> None:
        """``taken`` are the names of inputs and outputs; no other value gets one of these."""
        self._taken, self._count = set(taken), 0
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, kind: int, example: Sequence[int] = ()) -> Tensor:
        """An input [rows, …]."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, [ROWS, *example]))
        return Tensor(self, name)

    def output(self, name: str, value: Tensor, kind: int, example: Sequence[int] = ()) -> None:
        """An output [rows, …]."""
        self._nodes.append(helper.make_node("Identity", [value.name], [name], name=name))
        self._outputs.append(helper.make_tensor_value_info(name, kind, [ROWS, *example]))

    def constant(self, array: ArrayLike) -> Tensor:
        """An array, unchanged; text as an array of objects."""
        name, array = self._fresh("constant"), np.asarray(array)
        self._constants.append(numpy_helper.from_array(array, name))
        return Tensor(self, name, array.shape)

    def value(self, given: Any) -> Tensor:
        """A tensor, unchanged; other numbers as a constant in float32, integers in int64."""
        if isinstance(given, Tensor):
            return given
        array = np.asarray(given)
        return self.constant(array.astype(np.float32 if array.dtype.kind == "f" else np.int64))

    def node(self, op: str, *inputs: Any, domain: str = "", **attributes: Any) -> Tensor:
        """A node with one output; its inputs may be anything that ``value`` accepts."""
        return self.nodes(op, 1, *inputs, domain=domain, **attributes)[0]

    def nodes(
        self, op: str, count: int, *inputs: Any, domain: str = "", **attributes: Any
    ) -> list[Tensor]:
        """An operator with several outputs."""
        names = [self.value(each).name for each in inputs]
        found = [self._fresh(op) for _ in range(count)]
        self._nodes.append(
            helper.make_node(op, names, found, name=found[0], domain=domain, **attributes)
        )
        return [Tensor(self, name) for name in found]

    def to_bytes(self, name: str, metadata: dict[str, str]) -> bytes:
        """The serialized model. Raises ValueError if it is invalid, or too large for a file."""
        used = {name for node in self._nodes for name in node.input}  # onnxruntime warns of others
        constants = [constant for constant in self._constants if constant.name in used]
        graph = helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, initializer=constants
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)]
        model = helper.make_model(
            graph, ir_version=IR_VERSION, opset_imports=opsets, producer_name="labeldp-trainer"
        )
        helper.set_model_props(model, metadata)
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString(deterministic=True))

    def _fresh(self, word: str) -> str:
        name = f"{word}_{self._count}"
        self._count += 1
        return name if name not in self._taken else self._fresh(word)


# The layers of ``models/layers.py`` as nodes, for models and representations.
#
# Images are [rows, height, width, channels] between layers, as in JAX. Inside a layer, channels
# come first, as in ONNX. Runtimes remove transpositions that cancel.

_FIRST, _LAST, _KERNEL = [0, 3, 1, 2], [0, 2, 3, 1], [3, 2, 0, 1]  # where channels go
_EPSILON = 1e-5  # of group_norm


def _node(op: str, **attributes: int) -> Callable[..., Tensor]:
    def write(x: Tensor, *others: Any) -> Tensor:
        return x.node(op, *others, **attributes)

    return write


for _function, _form in {
    layers.relu: _node("Relu"),
    layers.cos: _node("Cos"),
    operators.clip: _node("Clip"),
    layers.sqrt: _node("Sqrt"),
    operators.matmul: _node("MatMul"),
    operators.flat: _node("Flatten", axis=1),
    operators.joined: _node("Concat", axis=1),
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


@operators.softplus_of_log.register
def _softplus_of_log(x: Tensor, floor: float) -> Tensor:
    y = (x.node("Exp") - floor).node("Max", operators.LEAST_OVER_FLOOR)
    return y + (1.0 - y.node("Neg").node("Exp")).node("Log")


@operators.log_softplus.register
def _log_softplus(x: Tensor) -> Tensor:
    return x.node("Max", operators.LEAST_SOFTPLUS).node("Softplus").node("Log")


@operators.binned.register
def _binned(x: Tensor, edges: Tensor) -> Tensor:
    count = edges.shape[0]
    found = (x[:, None] >= edges[None, :]).astype(np.int64).sum(axis=1) if count else None
    missing = x.node("IsNaN").astype(np.int64) * (count + 1)
    return missing if found is None else found + missing


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


@patches.answers.register
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
