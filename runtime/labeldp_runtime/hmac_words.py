"""Random words by HMAC-SHA-256 alone, for engines without AES and ``labeldp export --to sql``.

    message = "labeldp-hmac-words-1:LENGTH:CONTEXT:DIGEST:VERSION:COUNTER:LABEL:GROUP:KIND:" ‖ id
    words   = the quarters of HMAC-SHA-256(key, message) for the counters 0, 1, …, big-endian

LENGTH is the number of bytes of the context, DIGEST the tables digest in hex. All numbers are
decimal; LABEL is the canonical label as int64, and GROUP is empty without tables by group. KIND is
``i`` for integers, whose id is decimal, too, ``t`` for text in UTF-8, and ``b`` for bytes.
docs/replays.md has the promise.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.ids import ByteIds, Ids
from labeldp_runtime.keys import Key

_TAG = b"labeldp-hmac-words-1"
_KINDS = {"text": b"t", "binary": b"b"}
_WORDS_OF_A_DIGEST = 4
_BLOCK = 64  # bytes of SHA-256


def message_start(context: str, tables_digest: str, version: int, counter: int) -> bytes:
    """What the messages of all labels begin with; ``tables_digest`` is in lower-case hex."""
    name = context.encode()
    parts = (_TAG, b"%d" % len(name), name, tables_digest.encode(), b"%d" % version)
    return b":".join((*parts, b"%d:" % counter))


class HmacWords:
    """The words of one key, context and artifact, as those of ``KeyedWords``."""

    def __init__(self, key: Key, context: str, tables_digest: str, words: int) -> None:
        """``words`` is the number of words a label; ``tables_digest`` is in hex.

        Raises ValueError for a digest that is none.
        """
        self._digest = bytes.fromhex(tables_digest).hex()
        self._context, self._words = context, words
        # HMAC (RFC 2104) by its two hashes: copies of them take a third of the time of hmac.digest,
        # which begins each with the key.
        self._inner, self._outer = (_begun(key.secret, byte) for byte in (0x36, 0x5C))

    def __call__(
        self,
        ids: Ids,
        labels: NDArray[np.uint64],
        version: int,
        groups: NDArray[np.uint64] | None = None,
    ) -> NDArray[np.uint64]:
        """Words [n], or [n, w] for w > 1, for ids [n] and canonical labels [n].

        ``groups`` [n] are the indices of their tables, where tables differ by group.
        """
        ends = list(_message_ends(ids, labels, groups))
        blocks = [
            self._blocks(message_start(self._context, self._digest, version, counter), ends)
            for counter in range(-(-self._words // _WORDS_OF_A_DIGEST))
        ]
        words = np.concatenate(blocks, axis=1)[:, : self._words].astype(np.uint64)
        return words[:, 0].copy() if self._words == 1 else words

    def _blocks(self, start: bytes, ends: list[bytes]) -> NDArray[np.uint64]:
        """[n, 4] the words of one counter."""
        inner, digests = self._inner.copy(), []
        inner.update(start)
        for end in ends:
            inside, outside = inner.copy(), self._outer.copy()
            inside.update(end)
            outside.update(inside.digest())
            digests.append(outside.digest())
        data = b"".join(digests)
        return np.frombuffer(data, dtype=">u8").reshape(-1, _WORDS_OF_A_DIGEST)


def _begun(secret: bytes, byte: int) -> Any:
    """SHA-256 of the block that the key makes with a byte."""
    return hashlib.sha256(bytes(own ^ byte for own in secret.ljust(_BLOCK, b"\0")))


def _message_ends(
    ids: Ids, labels: NDArray[np.uint64], groups: NDArray[np.uint64] | None
) -> Iterable[bytes]:
    signed = labels.view(np.int64).tolist()
    tables = [b""] * len(ids) if groups is None else [b"%d" % group for group in groups.tolist()]
    if isinstance(ids, ByteIds):
        kind, names = _KINDS[ids.kind], [ids.value(row) for row in range(len(ids))]
    else:
        kind, names = b"i", [b"%d" % value for value in ids.values.tolist()]
    for label, table, name in zip(signed, tables, names, strict=True):
        yield b"%d:%b:%b:%b" % (label, table, kind, name)
