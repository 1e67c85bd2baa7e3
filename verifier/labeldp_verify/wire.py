"""How much a protobuf file of ONNX holds, found without building it.

A message of no bytes takes two in the file and hundreds in memory, so that 60 MiB of them take
gigabytes as soon as a parser sees them. This walks over tags and lengths only.
"""

from __future__ import annotations

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
    """The bytes are no protobuf."""


def count_fields(data: bytes, most: int) -> int:
    """The number of fields, nested ones included; stops as soon as there are more than ``most``.

    A field that no artifact has counts as all the fields that its bytes could hold. Raises
    WireError if tags and lengths do not fit together.
    """
    count, at = 0, 0
    inside: list[tuple[int, Message]] = [(len(data), _MODEL)]
    try:
        while inside:
            end, known = inside[-1]
            if at >= end:
                if at > end:
                    raise WireError("a field reaches beyond its message")
                inside.pop()
                continue
            tag, at = varint(data, at)
            count += 1
            if tag & 7 != _LENGTH:
                at = _after_number(data, at, tag & 7)
            else:
                length, at = varint(data, at)
                held = known.get(tag >> 3, _UNKNOWN)
                if isinstance(held, dict):
                    inside.append((at + length, held))
                    continue
                count += length // held if held else 0
                at += length
            if count > most:
                return count
    except IndexError:
        raise WireError("the file ends inside a field") from None
    return count


def _after_number(data: bytes, at: int, kind: int) -> int:
    if kind == _VARINT:
        return varint(data, at)[1]
    if kind in _FIXED:
        return at + _FIXED[kind]
    raise WireError("a group, which ONNX does not have")


def varint(data: bytes, at: int) -> tuple[int, int]:
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
