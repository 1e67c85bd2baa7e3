"""What the verifier reads of an ONNX file, with the names that ONNX gives it.

Only what the decoding looks at; the rest is skipped here and compared as bytes when the whole file
is rebuilt. It is read without importing onnx, which takes as long as a small verification.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from labeldp_verify.wire import WireError, varint

_VARINT, _LENGTH = 0, 2
_FIXED = {1: 8, 5: 4}


@dataclass(eq=False)
class Node:
    """An operation."""

    op_type: str = ""
    input: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Tensor:
    """A constant; text is in ``string_data``, everything else in ``raw_data``."""

    name: str = ""
    data_type: int = 0
    raw_data: bytes = b""
    dims: list[int] = field(default_factory=list)
    string_data: list[bytes] = field(default_factory=list)


@dataclass(eq=False)
class Graph:
    """Operations and constants."""

    node: list[Node] = field(default_factory=list)
    initializer: list[Tensor] = field(default_factory=list)


@dataclass(eq=False)
class Property:
    """A key and a value of the metadata."""

    key: str = ""
    value: str = ""


@dataclass(eq=False)
class Model:
    """A file."""

    graph: Graph = field(default_factory=Graph)
    metadata_props: list[Property] = field(default_factory=list)


def parse(data: bytes) -> Model:
    """The model of a file; WireError or UnicodeDecodeError if it is none.

    To be called after ``cost.charge_fields``, which bounds what is built here.
    """
    model, graphs = Model(), 0
    for number, value in _fields(data, 0, len(data)):
        if isinstance(value, int):
            continue
        if number == 7:
            model.graph, graphs = _graph(data, value), graphs + 1
        elif number == 14:
            model.metadata_props.append(_property(data, value))
    if graphs > 1:
        raise WireError("two graphs")
    return model


def _graph(data: bytes, at: slice) -> Graph:
    graph = Graph()
    for number, value in _fields(data, at.start, at.stop):
        if isinstance(value, int):
            continue
        if number == 1:
            graph.node.append(_node(data, value))
        elif number == 5:
            graph.initializer.append(_tensor(data, value))
    return graph


def _node(data: bytes, at: slice) -> Node:
    node = Node()
    for number, value in _fields(data, at.start, at.stop):
        if isinstance(value, int):
            continue
        if number == 1:
            node.input.append(data[value].decode())
        elif number == 4:
            node.op_type = data[value].decode()
    return node


def _tensor(data: bytes, at: slice) -> Tensor:
    tensor = Tensor()
    for number, value in _fields(data, at.start, at.stop):
        if isinstance(value, int):
            if number == 1:
                tensor.dims.append(value - (value >> 63 << 64))  # two's complement
            elif number == 2:
                tensor.data_type = value
        elif number == 6:
            tensor.string_data.append(data[value])
        elif number == 8:
            tensor.name = data[value].decode()
        elif number == 9:
            tensor.raw_data = data[value]
    return tensor


def _property(data: bytes, at: slice) -> Property:
    found = Property()
    for number, value in _fields(data, at.start, at.stop):
        if isinstance(value, int):
            continue
        if number == 1:
            found.key = data[value].decode()
        elif number == 2:
            found.value = data[value].decode()
    return found


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int | slice]]:
    """Number and value of each field of a message: an integer, or where its bytes lie."""
    while at < end:
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = varint(data, at)
            yield tag >> 3, value
        elif kind == _LENGTH:
            length, at = varint(data, at)
            yield tag >> 3, slice(at, at + length)
            at += length
        elif kind in _FIXED:
            at += _FIXED[kind]
        else:
            raise WireError("a group, which ONNX does not have")
    if at > end:
        raise WireError("a field reaches beyond its message")
