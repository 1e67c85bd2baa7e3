"""A graph that is written node by node. A value is the name of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
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
ROWS = "rows"  # the batch dimension, which is free

Value = str


class ModelGraph:
    """Nodes, constants, inputs and outputs in the order in which they were added."""

    def __init__(self, taken: Sequence[str]) -> None:
        """``taken`` are names of inputs and outputs: no value between them has one of these."""
        self._taken, self._count = set(taken), 0
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, kind: int, example: Sequence[int] = ()) -> Value:
        """An input [rows, …]."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, [ROWS, *example]))
        return name

    def output(self, name: str, value: Value, kind: int, example: Sequence[int] = ()) -> None:
        """An output [rows, …]."""
        self._nodes.append(helper.make_node("Identity", [value], [name], name=name))
        self._outputs.append(helper.make_tensor_value_info(name, kind, [ROWS, *example]))

    def constant(self, array: ArrayLike) -> Value:
        """An array as it is; text as an array of objects."""
        name = self._fresh("constant")
        self._constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def floats(self, array: ArrayLike) -> Value:
        """A constant in float32."""
        return self.constant(np.asarray(array, np.float32))

    def whole(self, array: ArrayLike) -> Value:
        """A constant in int64."""
        return self.constant(np.asarray(array, np.int64))

    def node(self, op: str, *inputs: Value, domain: str = "", **attributes: Any) -> Value:
        """A node with one output."""
        name = self._fresh(op)
        self._nodes.append(
            helper.make_node(op, inputs, [name], name=name, domain=domain, **attributes)
        )
        return name

    def split(self, value: Value, parts: int) -> list[Value]:
        """The columns [rows, 1] of a value [rows, parts]."""
        names = [self._fresh("Split") for _ in range(parts)]
        self._nodes.append(helper.make_node("Split", [value], names, name=names[0], axis=1))
        return names

    def to_bytes(self, name: str, metadata: dict[str, str]) -> bytes:
        """The serialized model. Raises ValueError if it is none, or larger than a file may be."""
        graph = helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, initializer=self._constants
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
