"""Count the fields of an ONNX file (protobuf) without parsing it into objects.

An empty message takes two bytes in the file and hundreds in memory, so 60 MiB of them would take
gigabytes in a parser. This code reads tags and lengths only.
"""

from collections.abc import Iterator
from typing import Any

_VARINT, _LENGTH = 0, 2
_FIXED = {1: 8, 5: 4}
_TEXT, _NUMBERS, _UNKNOWN = 0, 1, 2  # the fewest bytes of a thing inside; 0 where nothing is

# The fields that artifacts have, by message: either a message of its own, or what it may hold.
Message = dict[int, Any]
_SHAPE: Message = {1: {1: _TEXT, 2: _TEXT, 3: _TEXT}}
_VALUE: Message = {1: _TEXT, 2: {1: {1: _TEXT, 2: _SHAPE}}}
_TENSOR: Message = {1: _NUMBERS, 2: _TEXT, 6: _TEXT, 8: _TEXT, 9: _TEXT}
_ATTRIBUTE: Message = {1: _TEXT, 2: _TEXT, 3: _TEXT, 4: _TEXT, 8: _NUMBERS, 9: _TEXT, 20: _TEXT}
_NODE: Message = {1: _TEXT, 2: _TEXT, 3: _TEXT, 4: _TEXT, 5: _ATTRIBUTE, 7: _TEXT}
_GRAPH: Message = {1: _NODE, 2: _TEXT, 5: _TENSOR, 10: _TEXT, 11: _VALUE, 12: _VALUE}
_PAIR: Message = {1: _TEXT, 2: _TEXT}
_MODEL: Message = {**dict.fromkeys(range(1, 7), _TEXT), 7: _GRAPH, 8: _PAIR, 14: _PAIR}


class WireError(ValueError):
    """The bytes are not protobuf."""


def count_fields(data: bytes, most: int, message: Message = _MODEL) -> int:
    """The number of fields, nested ones included; stops as soon as there are more than ``most``.

    A field that no artifact has counts as the most fields that its bytes could hold. Raises
    WireError if tags and lengths do not fit together.
    """
    count = 0
    for number, value, _, _ in fields(data):
        count += 1
        if isinstance(value, bytes):
            held = message.get(number, _UNKNOWN)
            if isinstance(held, dict):
                count += count_fields(value, most - count, held)
            elif held:
                count += len(value) // held
        if count > most:
            break
    return count


def fields(data: bytes) -> Iterator[tuple[int, Any, int, int]]:
    """(number, value, start, end) of each field of a message.

    The value is bytes, an integer from 0 on, or None for a number of fixed width. Raises WireError
    where the bytes stop being a message.
    """
    at = 0
    try:
        while at < len(data):
            start = at
            tag, at = _varint(data, at)
            kind = tag & 7
            value: Any = None
            if kind == _VARINT:
                value, at = _varint(data, at)
            elif kind == _LENGTH:
                length, at = _varint(data, at)
                value = data[at : at + length]
                at += length
            elif kind in _FIXED:
                at += _FIXED[kind]
            else:
                raise WireError("a group, which ONNX does not have")
            if at > len(data):
                raise WireError("a field reaches beyond its message")
            yield tag >> 3, value, start, at
    except IndexError:
        raise WireError("a number does not end") from None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of at most 64 bits, and where the next byte is; IndexError if the bytes end."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise WireError("a number of more than 64 bits")
