"""A minimal ONNX graph under construction: constants, nodes, bytes.

The protobuf messages are written field by field: the helpers of the onnx package fill optional
fields differently from version to version, and take their time to be imported.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from labeldp_verify.artifact.messages import integer, integers, message, messages, text, texts

# Constants that onnxruntime takes for 0 or 1, though they are neither.
#
# Its NoopElimination leaves out x + 0, x − 0, x·1 and x/1, and looks at a float64 constant in
# float32 when it decides that: 1.000000000001 is 1 there, and 1e-50 is 0. A node with such a
# constant is never computed, so no graph may hold one.


_LEAST_NORMAL = 2.0**-126  # of float32; what lies below, some platforms flush to 0
NEUTRAL = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0}


def is_taken_for(number: float, neutral: float) -> bool:
    """True if float32 cannot tell ``number`` from the neutral one, which it is not."""
    rounded = ctypes.c_float(number).value if abs(number) >= _LEAST_NORMAL else 0.0
    return number != neutral and rounded == neutral


def vanishes(op_type: str, number: float) -> bool:
    """True if onnxruntime would leave out this operation with this constant, wrongly."""
    return op_type in NEUTRAL and is_taken_for(number, NEUTRAL[op_type])


# ONNX's numbers of types of elements, and of attributes.
INT64 = 7
STRING = 8
DOUBLE = 11
UINT64 = 13
_ONE_INT, _ONE_STRING, _INTS, _STRINGS = 2, 3, 7, 8

IR_VERSION = 8
OPSET = 17
ML_OPSET = 2

_PACK = {INT64: "q", UINT64: "Q", DOUBLE: "d"}

Attribute = int | Sequence[int] | Sequence[str] | str
Scalar = int | float | str


def output_type(value: Scalar) -> int:
    """ONNX element type of the outputs: double for numbers, else that of the categories."""
    if isinstance(value, float):
        return DOUBLE
    return STRING if isinstance(value, str) else INT64


class Graph:
    """Nodes and constants in the order in which they were added."""

    def __init__(self, name: str) -> None:
        """Start an empty graph called ``name``."""
        self._name = name
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self._doubles: dict[str, float] = {}  # the constants that stand for one float64
        self._prefix = ""

    @contextmanager
    def within(self, prefix: str) -> Iterator[None]:
        """Let the names of constants and nodes begin with a prefix, so that a part can repeat."""
        self._prefix = prefix
        yield
        self._prefix = ""

    def input(self, name: str, element_type: int, shape: Sequence[int | str]) -> str:
        """Declare an input; a text dimension is symbolic."""
        self._inputs.append(_value_info(name, element_type, shape))
        return name

    def output(self, name: str, element_type: int, shape: Sequence[int | str]) -> None:
        """Declare an output."""
        self._outputs.append(_value_info(name, element_type, shape))

    def scalar(self, name: str, element_type: int, value: Scalar) -> str:
        """Add a constant without dimensions."""
        return self._constant(name, element_type, [value], [])

    def vector(self, name: str, element_type: int, values: Sequence[Scalar]) -> str:
        """Add a constant with one dimension."""
        return self._constant(name, element_type, values, [len(values)])

    def node(
        self,
        op_type: str,
        inputs: Sequence[str],
        output: str,
        domain: str = "",
        **attributes: Attribute,
    ) -> str:
        """Add a node with one output, named after it; returns the output's full name.

        Raises ValueError for a constant with which onnxruntime would leave the node out.
        """
        if any(name in self._doubles and vanishes(op_type, self._doubles[name]) for name in inputs):
            raise ValueError(f"the constant of {output} is 0 or 1 in float32, but is neither")
        output = self._prefix + output
        self._add(op_type, inputs, [output], domain, attributes)
        return output

    def product(self, value: str, constant: str, factor: float, output: str) -> str:
        """Add the nodes of ``value`` · ``factor`` in float64; returns the output's name.

        A factor that onnxruntime would take for 1 is applied as twice itself, and then a half: both
        ways round alike, as long as nothing overflows and no product of interest is subnormal.
        """
        if not is_taken_for(factor, 1.0):
            return self.node("Mul", [value, self.scalar(constant, DOUBLE, factor)], output)
        twice = self.scalar(f"{constant}_doubled", DOUBLE, 2 * factor)
        doubled = self.node("Mul", [value, twice], f"{output}_doubled")
        half = self.scalar(f"{constant}_halving", DOUBLE, 0.5)
        return self.node("Mul", [doubled, half], output)

    def split(self, tensor: str, outputs: Sequence[str], axis: int) -> Sequence[str]:
        """Add a node that cuts a tensor into equal parts; returns their names."""
        self._add("Split", [tensor], outputs, "", {"axis": axis})
        return outputs

    def _add(
        self,
        op_type: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        domain: str,
        attributes: dict[str, Attribute],
    ) -> None:
        node = (
            texts(1, inputs),
            texts(2, outputs),
            text(3, outputs[0]),
            text(4, op_type),
            messages(5, (_attribute(key, attributes[key]) for key in sorted(attributes))),
            text(7, domain),
        )
        self._nodes.append(b"".join(node))

    def to_bytes(self, metadata: dict[str, str]) -> bytes:
        """The serialized model with the metadata in the order of its keys."""
        graph = (
            messages(1, self._nodes),
            text(2, self._name),
            messages(5, self._constants),
            messages(11, self._inputs),
            messages(12, self._outputs),
        )
        imports = [text(1, "") + integer(2, OPSET), text(1, "ai.onnx.ml") + integer(2, ML_OPSET)]
        pairs = [text(1, key) + text(2, metadata[key]) for key in sorted(metadata)]
        model = (
            integer(1, IR_VERSION),
            text(2, "labeldp"),
            text(3, "1"),
            integer(5, 1),
            message(7, *graph),
            messages(8, imports),
            messages(14, pairs),
        )
        return b"".join(model)

    def _constant(
        self, name: str, element_type: int, values: Sequence[Scalar], dims: Sequence[int]
    ) -> str:
        name = self._prefix + name
        tensor = [integers(1, dims), integer(2, element_type)]
        if element_type == STRING:
            tensor += [texts(6, map(str, values)), text(8, name)]
        else:
            if element_type == DOUBLE and len(values) == 1:
                self._doubles[name] = float(values[0])
            raw = struct.pack(f"<{len(values)}{_PACK[element_type]}", *values)
            tensor += [text(8, name), message(9, raw)]
        self._constants.append(b"".join(tensor))
        return name


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, int):
        return text(1, name) + integer(3, value) + integer(20, _ONE_INT)
    if isinstance(value, str):
        return text(1, name) + text(4, value) + integer(20, _ONE_STRING)
    if isinstance(value[0], str):
        return text(1, name) + texts(9, map(str, value)) + integer(20, _STRINGS)
    return text(1, name) + integers(8, map(int, value)) + integer(20, _INTS)


def _value_info(name: str, element_type: int, shape: Sequence[int | str]) -> bytes:
    sizes = [text(2, size) if isinstance(size, str) else integer(1, size) for size in shape]
    dimensions = message(2, messages(1, sizes)) if sizes else b""
    return text(1, name) + message(2, message(1, integer(1, element_type), dimensions))
