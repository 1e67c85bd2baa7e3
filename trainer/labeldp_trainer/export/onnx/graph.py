"""A graph that is written node by node, and its values, which can be used like arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

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
        """The same numbers in another shape, of which one side may be -1."""
        return self.node("Reshape", list(sides))

    def transpose(self, *axes: int) -> Tensor:
        """The same with axes in another order."""
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
        """The same with several outputs."""
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
