"""The messages of an ONNX file, written field by field in the order of their numbers.

As protobuf's own writers write them, but without importing onnx, which takes as long as a small
verification. Everything that is set is written, empty texts included.
"""

from __future__ import annotations

from collections.abc import Iterable

_VARINT, _LENGTH = 0, 2


def varint(number: int) -> bytes:
    """A number of at most 64 bits, negative ones as two's complements."""
    if 0 <= number < 0x80:
        return bytes((number,))
    number &= 0xFFFF_FFFF_FFFF_FFFF
    octets = bytearray()
    while number >= 0x80:
        octets.append(number & 0x7F | 0x80)
        number >>= 7
    octets.append(number)
    return bytes(octets)


def integer(field: int, value: int) -> bytes:
    """A field with a number."""
    return varint(field << 3 | _VARINT) + varint(value)


def integers(field: int, values: Iterable[int]) -> bytes:
    """A field for each number, not packed."""
    tag = varint(field << 3 | _VARINT)
    return b"".join([tag + varint(value) for value in values])


def message(field: int, *parts: bytes) -> bytes:
    """A field with bytes, or with the fields of a message."""
    return b"".join((varint(field << 3 | _LENGTH), varint(sum(map(len, parts))), *parts))


def messages(field: int, values: Iterable[bytes]) -> bytes:
    """A field for each of them."""
    tag = varint(field << 3 | _LENGTH)
    return b"".join([part for value in values for part in (tag, varint(len(value)), value)])


def text(field: int, value: str) -> bytes:
    """A field with text."""
    return message(field, value.encode())


def texts(field: int, values: Iterable[str]) -> bytes:
    """A field for each text."""
    return messages(field, (value.encode() for value in values))
