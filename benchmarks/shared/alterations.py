"""Files changed at one place: a node, an attribute, a constant, a name, a type, or the protobuf."""

import random
import struct

import onnx
from onnx import TensorProto, helper

OPERATORS = [
    *("Add", "Sub", "Mul", "Div", "Min", "Max", "Mod", "And", "Or", "Floor", "Ceil", "Round"),
    *("GreaterOrEqual", "LessOrEqual", "Less", "Greater", "Equal", "Identity", "Abs", "Neg"),
    *("GatherElements", "Gather", "CumSum", "ReduceMax", "Where", "Clip", "Reshape", "Shape"),
    *("Cast", "BitShift", "BitwiseAnd", "Not", "Size", "Flatten", "RandomNormalLike"),
]
TYPES = [1, 6, 7, 8, 9, 10, 11, 12, 13]
NUMBERS = [0, 1, -1, 2, 31, 32, 63, 64, 65, 2**31, 2**53, 2**62, -(2**63), 2**63 - 1]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1 + 1e-12, 1e-50, 1e300, float("nan"), float("inf")]


def names_of(graph):
    return [
        *(tensor.name for tensor in graph.initializer),
        *(value.name for value in graph.input),
        *(name for node in graph.node for name in node.output),
    ]


def operator(model, rng):
    rng.choice(model.graph.node).op_type = rng.choice(OPERATORS)


def wire(model, rng):
    """An input of a node becomes another value, anywhere."""
    node = rng.choice(model.graph.node)
    node.input[rng.randrange(len(node.input))] = rng.choice(names_of(model.graph))


def swap(model, rng):
    node = rng.choice([node for node in model.graph.node if len(node.input) > 1])
    i, j = rng.sample(range(len(node.input)), 2)
    node.input[i], node.input[j] = node.input[j], node.input[i]


def arguments(model, rng):
    """One more or one fewer."""
    node = rng.choice(model.graph.node)
    if rng.random() < 0.5:
        node.input.append(rng.choice(["", *names_of(model.graph)]))
    else:
        node.input.pop()


def attribute(model, rng):
    node = rng.choice([node for node in model.graph.node if node.attribute])
    one = rng.choice(node.attribute)
    if one.ints:
        one.ints[rng.randrange(len(one.ints))] = rng.choice(NUMBERS[:9])
    elif one.strings:
        one.strings[rng.randrange(len(one.strings))] = rng.choice([b"", b"a", b"\xff", b"b"])
    elif one.type == onnx.AttributeProto.INT:
        one.i = rng.choice([*TYPES, 0, 1, -1])
    else:
        one.s = rng.choice([b"LEFT", b"RIGHT", b""])


def attributes(model, rng):
    """One more, or none."""
    node = rng.choice(model.graph.node)
    if node.attribute and rng.random() < 0.5:
        del node.attribute[rng.randrange(len(node.attribute))]
    else:
        name = rng.choice(["axis", "to", "start", "keepdims", "allowzero", "saturate"])
        node.attribute.append(helper.make_attribute(name, rng.choice([0, 1, 7])))


def _numbers(tensor):
    kind = {7: "q", 13: "Q", 11: "d"}[tensor.data_type]
    return kind, list(struct.unpack(f"<{len(tensor.raw_data) // 8}{kind}", tensor.raw_data))


def constant(model, rng):
    """One number of one constant."""
    tensors = [tensor for tensor in model.graph.initializer if tensor.raw_data]
    tensor = rng.choice(tensors)
    kind, numbers = _numbers(tensor)
    at = rng.randrange(len(numbers))
    near = numbers[at] + rng.choice([-1, 1, -2, 2, 1 << rng.randrange(8)])
    value = rng.choice([near, near, rng.choice(FLOATS if kind == "d" else NUMBERS), *numbers[:1]])
    if kind != "d":
        low, high = (0, 2**64 - 1) if kind == "Q" else (-(2**63), 2**63 - 1)
        value = min(max(int(value), low), high)
    numbers[at] = value
    tensor.raw_data = struct.pack(f"<{len(numbers)}{kind}", *numbers)


def shape(model, rng):
    """A constant with a dimension more or less, or of another length."""
    tensor = rng.choice(model.graph.initializer)
    choice = rng.randrange(4)
    if choice == 0 and not tensor.dims:
        tensor.dims.append(1)
    elif choice == 1 and list(tensor.dims) == [1]:
        del tensor.dims[:]
    elif choice == 2:
        tensor.dims.append(1)
    elif tensor.raw_data:
        tensor.raw_data += tensor.raw_data[-8:]
        if tensor.dims:
            tensor.dims[0] += 1
        else:
            tensor.dims.append(2)


def kind_of_constant(model, rng):
    rng.choice(model.graph.initializer).data_type = rng.choice(TYPES)


def output_name(model, rng):
    """A node's output takes a name that is in use, or another one."""
    node = rng.choice(model.graph.node)
    node.output[rng.randrange(len(node.output))] = rng.choice([*names_of(model.graph), "other"])


def nodes(model, rng):
    """One node fewer, twice, or elsewhere."""
    graph, i = model.graph, rng.randrange(len(model.graph.node))
    choice = rng.randrange(3)
    if choice == 0:
        del graph.node[i]
    elif choice == 1:
        graph.node.append(graph.node[i])
        for j in range(len(graph.node[-1].output)):
            graph.node[-1].output[j] += "_twice"
    else:
        moved = onnx.NodeProto()
        moved.CopyFrom(graph.node[i])
        del graph.node[i]
        graph.node.append(moved)


def graph_outputs(model, rng):
    """Something else, or more, is given."""
    name = rng.choice(names_of(model.graph))
    if rng.random() < 0.5:
        model.graph.output[0].name = name
    else:
        model.graph.output.append(helper.make_tensor_value_info(name, rng.choice(TYPES), ["N"]))


def graph_inputs(model, rng):
    value = rng.choice(model.graph.input)
    choice = rng.randrange(4)
    if choice == 0:
        value.type.tensor_type.elem_type = rng.choice(TYPES)
    elif choice == 1:
        value.type.tensor_type.shape.dim.add().dim_value = rng.choice([1, 2])
    elif choice == 2:
        value.type.tensor_type.shape.dim[0].dim_value = rng.choice([1, 2])
    else:
        name = rng.choice([*names_of(model.graph), "label_9", "group"])
        model.graph.input.append(helper.make_tensor_value_info(name, rng.choice(TYPES), ["N"]))


def versions(model, rng):
    choice = rng.randrange(3)
    if choice == 0:
        model.opset_import[rng.randrange(2)].version = rng.choice([1, 2, 3, 16, 18, 21])
    elif choice == 1:
        model.ir_version = rng.choice([3, 7, 9, 10])
    else:
        model.opset_import.append(helper.make_opsetid(rng.choice(["", "com.microsoft", "x"]), 1))


def domain(model, rng):
    rng.choice(model.graph.node).domain = rng.choice(["ai.onnx", "ai.onnx.ml", "com.microsoft", ""])


def extras(model, rng):
    """Parts of ONNX that no artifact has."""
    graph, choice = model.graph, rng.randrange(6)
    if choice == 0:
        value = graph.sparse_initializer.add()
        value.values.CopyFrom(graph.initializer[0])
    elif choice == 1:
        graph.initializer[0].data_location = TensorProto.EXTERNAL
    elif choice == 2:
        model.functions.add().name = "Add"
    elif choice == 3:
        model.training_info.add()
    elif choice == 4:
        graph.node[0].attribute.append(helper.make_attribute("body", graph))
    else:
        graph.node[0].doc_string = "x"


KINDS = {
    change.__name__: change
    for change in (
        *(operator, wire, wire, swap, arguments, attribute, attributes, constant, shape),
        *(kind_of_constant, output_name, nodes, graph_outputs, graph_inputs, versions, domain),
        extras,
    )
}


def bytes_of(data, rng):
    """A byte fewer, more, or another one: most are no protobuf, or no longer the same one."""
    at = rng.randrange(len(data))
    choice = rng.randrange(3)
    put = bytes([rng.randrange(256)])
    return data[:at] + (put if choice < 2 else b"") + data[at + (choice > 0) :]


def altered(data, kind, rng):
    """The bytes of the file changed once, by a kind of ``KINDS``, or at a byte."""
    if kind == "bytes":
        return bytes_of(data, rng)
    model = onnx.load_model_from_string(data)
    KINDS[kind](model, rng)
    return model.SerializeToString(deterministic=True)


def seeded(*parts):
    return random.Random(repr(parts))
