"""The checksum that travels in the file: SHA-256 of the same file without the checksum's own entry.

It guards against accidents, not against forgers: who rewrites the file can write its checksum too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from labeldp_runtime.wire import varint

_METADATA, _KEY, _VALUE = 14, 1, 2  # fields of an ONNX model, and of an entry of its metadata
_MAX_FIELDS = 1 << 16  # an artifact has a dozen
_CHECKSUM = b"labeldp.content_sha256"
Entry = tuple[bytes, bytes, int, int]  # key, value, where the entry starts and where it ends


def metadata_entries(data: bytes) -> Iterator[Entry]:
    """The entries of a model's metadata, however often a key stands there.

    They are found as a protobuf reader finds them, so that a text elsewhere in the file that looks
    like an entry is none. Raises ValueError where the bytes stop being a protobuf message.
    """
    for number, start, payload, end in _fields(data, 0, len(data)):
        if number == _METADATA:
            parts = {n: data[at:stop] for n, _, at, stop in _fields(data, payload, end)}
            yield parts.get(_KEY, b""), parts.get(_VALUE, b""), start, end


def checksum_holds(data: bytes, entries: list[Entry]) -> bool:
    """True if the file has exactly one checksum among its metadata, and it is right."""
    checksums = [entry for entry in entries if entry[0] == _CHECKSUM]
    if len(checksums) != 1:
        return False
    _, stated, start, end = checksums[0]
    digest = hashlib.sha256(memoryview(data)[:start])
    digest.update(memoryview(data)[end:])
    return digest.hexdigest().encode() == stated


def _fields(data: bytes, at: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
    """(number, start, start of the payload, end) of a message's fields; integers are skipped."""
    for _ in range(_MAX_FIELDS):
        if at == stop:
            return
        start = at
        try:
            tag, at = varint(data, at)
            length, at = varint(data, at)  # or, in a field that is an integer, its value
        except IndexError:
            raise ValueError("an integer does not end") from None
        if tag % 8 == 2:
            if at + length > stop:
                raise ValueError("a field ends behind its message")
            yield tag // 8, start, at, at + length
            at += length
        elif tag % 8 != 0 or at > stop:
            raise ValueError("not a field of an artifact")
    raise ValueError("more fields than an artifact has")
