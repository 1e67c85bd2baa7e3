"""The checksum that travels in the file: SHA-256 of the same file without the checksum's own entry.

The entry is one metadata property, always these 92 bytes: tags, lengths, the key, 64 hex digits.
It guards against accidents, not against forgers: who rewrites the file can write its checksum too.
"""

from __future__ import annotations

import hashlib
import re

_ENTRY = re.compile(rb"\x72\x5a\x0a\x16labeldp\.content_sha256\x12\x40([0-9a-f]{64})")


def checksum_holds(data: bytes) -> bool:
    """True if the file has exactly one checksum, and it is right."""
    entries = list(_ENTRY.finditer(data))
    if len(entries) != 1:
        return False
    start, end = entries[0].span()
    digest = hashlib.sha256(memoryview(data)[:start])
    digest.update(memoryview(data)[end:])
    return digest.hexdigest().encode() == entries[0].group(1)
