"""A graph's twin that takes codes for texts and answers with codes: integers are far faster.

A code is the place of a text among the keys of the graph's own ``LabelEncoder``, and their number
for every other text. The twin has a gather in place of each such node, and answers with numbers
instead of texts. Everything else is copied from the file, node for node, so that it draws as the
file does. The vectors of the self-test run on both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.wire import fields

_STRING, _INT64 = 8, 7  # element types
# Fields of ONNX's messages.
_GRAPH = 7
_NODE, _INITIALIZER, _INPUT, _OUTPUT = 1, 5, 11, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _OP, _ATTRIBUTE = 1, 2, 3, 4, 5
_DIMS, _TYPE, _TEXTS, _TENSOR_NAME, _RAW = 1, 2, 6, 8, 9


@dataclass(frozen=True)
class CodedGraph:
    """The twin, and the texts that its codes stand for.

    Attributes:
        inputs: by the names of the inputs that take codes, their texts in the order of the codes.
        outputs: by the names of the outputs that are codes, the texts [m] (objects) they stand for.
    """

    model: bytes
    inputs: dict[str, tuple[str, ...]]
    outputs: dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Texts:
    """Private labels [n] that are texts: ``entries[codes]``."""

    codes: NDArray[np.int64]
    entries: NDArray[Any]

    def array(self) -> NDArray[Any]:
        """[n] objects, each a str."""
        return self.entries[self.codes]


def coded(data: bytes) -> CodedGraph | None:
    """The twin of an artifact; None if it neither takes nor answers with text.

    Raises ValueError for text in a graph of another form than an artifact's.
    """
    try:
        return _Coder(data).result()  # where bytes and integers stand for one another, it raises
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise ValueError("not the graph of an artifact") from error


class _Coder:
    def __init__(self, data: bytes) -> None:
        self._model = list(_fields(data))
        (graph,) = (value for number, value in self._model if number == _GRAPH)
        self._graph = list(_fields(graph))
        self._inputs: dict[str, tuple[str, ...]] = {}
        self._entries: dict[str, NDArray[Any]] = {}  # by the names of constants
        self._outputs: dict[str, NDArray[Any]] = {}

    def result(self) -> CodedGraph | None:
        texts = {_value_name(v) for n, v in self._graph if n == _INPUT and _is_text(v)}
        answers = {_value_name(v) for n, v in self._graph if n == _OUTPUT and _is_text(v)}
        if not texts | answers:
            return None
        graph = [(n, self._declared(n, value)) for n, value in self._graph if n != _NODE]
        for number, node in self._graph:
            if number == _NODE:
                graph += self._node(node, texts)
        if set(self._inputs) != texts or set(self._outputs) != answers:
            raise ValueError("texts that do not come from a table")
        body = b"".join(_field(*field) for field in graph)
        model = b"".join(_field(n, body if n == _GRAPH else value) for n, value in self._model)
        return CodedGraph(model, self._inputs, self._outputs)

    def _declared(self, number: int, value: Any) -> Any:
        """A field of the graph that is no node."""
        if number == _INITIALIZER:
            return self._constant(value)
        if number in (_INPUT, _OUTPUT) and _is_text(value):
            return _as_int64(value)
        return value

    def _constant(self, tensor: bytes) -> bytes:
        """A vector of texts becomes the numbers of its distinct texts."""
        parts = list(_fields(tensor))
        facts = dict(parts)
        if facts[_TYPE] != _STRING:
            return tensor
        name, texts = facts[_TENSOR_NAME].decode(), [v.decode() for n, v in parts if n == _TEXTS]
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        entries = np.empty(len(numbers), dtype=object)
        entries[:] = list(numbers)
        self._entries[name] = entries
        return _vector(name, [numbers[text] for text in texts])

    def _node(self, node: bytes, texts: set[str]) -> list[tuple[int, bytes]]:
        """The node, or what is in its place: fields of a graph."""
        parts = list(_fields(node))
        given = [value.decode() for n, value in parts if n == _NODE_INPUT]
        facts = {n: value for n, value in parts if n not in (_NODE_INPUT, _ATTRIBUTE)}
        op = facts[_OP].decode()
        used = [name for name in given if name in texts or name in self._entries]
        if not used or op == "Shape":
            return [(_NODE, node)]
        output = facts[_NODE_OUTPUT].decode()
        if op == "GatherElements" and used == given[:1] and used[0] in self._entries:
            self._outputs[output] = self._entries[used[0]]
            return [(_NODE, node)]
        if op != "LabelEncoder" or len(given) != 1 or used[0] in self._inputs:
            raise ValueError("texts that are not read by a table")
        keys, values = _table([value for n, value in parts if n == _ATTRIBUTE])
        self._inputs[used[0]] = keys
        table = f"{output}_of_code"
        gather = [(_NODE_INPUT, table.encode()), (_NODE_INPUT, used[0].encode())]
        gather += [(_NODE_OUTPUT, facts[_NODE_OUTPUT]), (_NODE_NAME, facts[_NODE_NAME])]
        gather.append((_OP, b"GatherElements"))  # along axis 0, the default
        return [
            (_INITIALIZER, _vector(table, values)),
            (_NODE, b"".join(_field(*part) for part in gather)),
        ]


def _table(attributes: list[bytes]) -> tuple[tuple[str, ...], list[int]]:
    """The keys of a LabelEncoder, and its values with the default behind them."""
    named = {}
    for attribute in attributes:
        parts = list(_fields(attribute))
        named[dict(parts)[1].decode()] = parts
    keys = tuple(v.decode() for n, v in named["keys_strings"] if n == 9)
    values = [_signed(v) for n, v in named["values_int64s"] if n == 8]
    (default,) = (_signed(v) for n, v in named["default_int64"] if n == 3)
    if len(keys) != len(values) or len(set(keys)) < len(keys):
        raise ValueError("not a valid table of texts")
    return keys, [*values, default]


def _value_name(value: bytes) -> str:
    return str(dict(_fields(value))[1].decode())


def _is_text(value: bytes) -> bool:
    return bool(dict(_fields(dict(_fields(dict(_fields(value))[2]))[1]))[1] == _STRING)


def _as_int64(value: bytes) -> bytes:
    """The declaration of an input or output, with another element type."""

    def tensor(parts: bytes) -> bytes:
        fields = ((n, _INT64 if n == 1 else v) for n, v in _fields(parts))
        return b"".join(_field(*field) for field in fields)

    def kind(parts: bytes) -> bytes:
        return b"".join(_field(n, tensor(v) if n == 1 else v) for n, v in _fields(parts))

    return b"".join(_field(n, kind(v) if n == 2 else v) for n, v in _fields(value))


def _vector(name: str, numbers: list[int]) -> bytes:
    raw = np.array(numbers, dtype="<i8").tobytes()
    kind = _field(_DIMS, len(numbers)) + _field(_TYPE, _INT64)
    return kind + _field(_TENSOR_NAME, name.encode()) + _field(_RAW, raw)


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    return ((number, value) for number, value, _, _ in fields(data))


def _field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
