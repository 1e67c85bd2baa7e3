"""A minimal ONNX graph under construction: constants, nodes, bytes."""

import ctypes
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx

# ---- The protobuf messages of ONNX, by themselves.
#
# The package imports its checker, helpers and converters as well, which nothing here uses and which
# take longer to load than numpy. These are the same classes as ``onnx.ModelProto`` and the others.


def _generated() -> Any:
    """The module that protoc wrote, or the package where that is kept in another place."""
    package = find_spec("onnx")  # which imports nothing
    folder = None if package is None else package.submodule_search_locations
    spec = None if folder is None else PathFinder.find_spec("onnx.onnx_ml_pb2", folder)
    if spec is None or spec.loader is None:
        import onnx  # noqa: PLC0415

        return onnx
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if not TYPE_CHECKING:
    onnx = _generated()

ModelProto = onnx.ModelProto


# ---- A minimal ONNX graph under construction: constants, nodes, bytes.
#
# The protobuf messages are filled field by field, because the helpers of the onnx package fill
# optional fields differently from version to version.


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


INT32: int = onnx.TensorProto.INT32
INT64: int = onnx.TensorProto.INT64
UINT64: int = onnx.TensorProto.UINT64
DOUBLE: int = onnx.TensorProto.DOUBLE
STRING: int = onnx.TensorProto.STRING

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
        self._proto = onnx.GraphProto(name=name)
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
        self._proto.input.append(_value_info(name, element_type, shape))
        return name

    def output(self, name: str, element_type: int, shape: Sequence[int | str]) -> None:
        """Declare an output."""
        self._proto.output.append(_value_info(name, element_type, shape))

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
        proto = onnx.NodeProto(op_type=op_type, name=outputs[0], domain=domain)
        proto.input.extend(inputs)
        proto.output.extend(outputs)
        for key in sorted(attributes):
            proto.attribute.append(_attribute(key, attributes[key]))
        self._proto.node.append(proto)

    def to_bytes(self, metadata: dict[str, str]) -> bytes:
        """The serialized model with the metadata in the order of its keys."""
        model = onnx.ModelProto(
            ir_version=IR_VERSION, producer_name="labeldp", producer_version="1", model_version=1
        )
        model.opset_import.append(onnx.OperatorSetIdProto(domain="", version=OPSET))
        model.opset_import.append(onnx.OperatorSetIdProto(domain="ai.onnx.ml", version=ML_OPSET))
        model.graph.CopyFrom(self._proto)
        for key in sorted(metadata):
            model.metadata_props.append(onnx.StringStringEntryProto(key=key, value=metadata[key]))
        return bytes(model.SerializeToString(deterministic=True))

    def _constant(
        self, name: str, element_type: int, values: Sequence[Scalar], dims: Sequence[int]
    ) -> str:
        name = self._prefix + name
        tensor = onnx.TensorProto(name=name, data_type=element_type)
        tensor.dims.extend(dims)
        if element_type == STRING:
            tensor.string_data.extend(str(value).encode() for value in values)
        else:
            if element_type == DOUBLE and len(values) == 1:
                self._doubles[name] = float(values[0])
            tensor.raw_data = struct.pack(f"<{len(values)}{_PACK[element_type]}", *values)
        self._proto.initializer.append(tensor)
        return name


def _attribute(name: str, value: Attribute) -> onnx.AttributeProto:
    proto = onnx.AttributeProto(name=name)
    if isinstance(value, int):
        proto.type, proto.i = onnx.AttributeProto.INT, value
    elif isinstance(value, str):
        proto.type, proto.s = onnx.AttributeProto.STRING, value.encode()
    elif isinstance(value[0], str):
        proto.type = onnx.AttributeProto.STRINGS
        proto.strings.extend(str(item).encode() for item in value)
    else:
        proto.type = onnx.AttributeProto.INTS
        proto.ints.extend(int(item) for item in value)
    return proto


def _value_info(name: str, element_type: int, shape: Sequence[int | str]) -> onnx.ValueInfoProto:
    proto = onnx.ValueInfoProto(name=name)
    proto.type.tensor_type.elem_type = element_type
    for size in shape:
        dimension = proto.type.tensor_type.shape.dim.add()
        if isinstance(size, str):
            dimension.dim_param = size
        else:
            dimension.dim_value = size
    return proto
