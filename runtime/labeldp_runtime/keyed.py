"""Random words that a key, a context, an id, a version and a label determine.

    K_j     = HMAC-SHA-256(key, "labeldp-words-1" ‖ len(context) ‖ context ‖ tables digest
                                ‖ version ‖ kind of id ‖ j)
    block_j = CBC-MAC of AES-256 under K_j over the message of (id, canonical label)
    words   = the two halves of block_0, then those of block_1

    message of an integer:       id ‖ label                            one block of 16 bytes
    message of text and binary:  len(id) ‖ id ‖ zeros to a whole block ‖ label ‖ 8 zeros

With tables by group, whose digest no other artifact has, the index of the group's table ends each
message: the last 8 zeros give way to it, and the message of an integer has a second block, of the
index and 8 zeros.

All numbers are little-endian and of 8 bytes, the kind and j of one byte. The messages of one kind
are prefix-free, for which CBC-MAC is a pseudorandom function if AES is a pseudorandom permutation
(Petrank and Rackoff, *CBC MAC for Real-Time Data Sources*, 2000); docs/keyed-words.md has the proof
and the bound.

A second construction needs HMAC-SHA-256 alone, for engines without AES and ``labeldp export --to
sql``:

    message = "labeldp-hmac-words-1:LENGTH:CONTEXT:DIGEST:VERSION:COUNTER:LABEL:GROUP:KIND:" ‖ id
    words   = the quarters of HMAC-SHA-256(key, message) for the counters 0, 1, …, big-endian

LENGTH is the number of bytes of the context, DIGEST the tables digest in hex. All numbers are
decimal; LABEL is the canonical label as int64, and GROUP is empty without tables by group. KIND is
``i`` for integers, whose id is decimal, too, ``t`` for text in UTF-8, and ``b`` for bytes.
docs/keyed-words.md has the promise.
"""

import hashlib
import hmac
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.errors import IdError, MissingExtraError
from labeldp_runtime.ids import ByteIds, Ids, IntegerIds, Pieces
from labeldp_runtime.keys import Key

_TAG = b"labeldp-words-1"
_KINDS = {"int64": b"\0", "uint64": b"\1", "text": b"\2", "binary": b"\3"}
_BLOCK = 16
_DIGEST_BYTES = 32
_TOP_BIT = np.uint64(1 << 63)


class KeyedWords:
    """The words of one key, context and artifact."""

    def __init__(self, key: Key, context: str, tables_digest: str, words: int) -> None:
        """``words`` is the number of words a label, at least 1; ``tables_digest`` is in hex.

        Raises MissingExtraError if the package ``cryptography`` is not installed, and ValueError
        for a digest that is none.
        """
        try:
            from cryptography.hazmat.primitives.ciphers import (  # noqa: PLC0415
                Cipher,
                algorithms,
                modes,
            )
        except ImportError as error:
            raise MissingExtraError(
                "keyed randomization needs the package cryptography: pip install cryptography"
            ) from error
        # ECB is AES itself, one block at a time; the chaining of CBC-MAC is done here.
        mode = modes.ECB()  # noqa: S305
        self._cipher: Any = lambda secret: Cipher(algorithms.AES(secret), mode).encryptor()
        self._secret, self._words = key.secret, words
        name, digest = context.encode(), bytes.fromhex(tables_digest)
        if len(digest) != _DIGEST_BYTES:
            raise ValueError("a tables digest is a SHA-256")
        self._prefix = _TAG + _number(len(name)) + name + digest

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
        blocks = [
            self._blocks(ids, labels, groups, version, index)
            for index in range((self._words + 1) // 2)
        ]
        if self._words == 1:
            return np.ascontiguousarray(blocks[0][:, 0])
        if self._words == 2:
            return blocks[0]
        return np.ascontiguousarray(np.concatenate(blocks, axis=1)[:, : self._words])

    def _blocks(
        self,
        ids: Ids,
        labels: NDArray[np.uint64],
        groups: NDArray[np.uint64] | None,
        version: int,
        index: int,
    ) -> NDArray[np.uint64]:
        if isinstance(ids, ByteIds):
            return _cbc_mac(self._encryptor(version, ids.kind, index), ids, labels, groups)
        result = self._of_integers(ids, labels, groups, self._encryptor(version, "int64", index))
        if ids.values.dtype == np.uint64:
            # These bits stand for negative numbers in int64.
            large = ids.values.view(np.uint64) >= _TOP_BIT
            if large.any():
                cipher = self._encryptor(version, "uint64", index)
                others = self._of_integers(ids, labels, groups, cipher)
                np.copyto(result, others, where=large[:, None])
        return result

    def _of_integers(
        self,
        ids: IntegerIds,
        labels: NDArray[np.uint64],
        groups: NDArray[np.uint64] | None,
        cipher: Any,
    ) -> NDArray[np.uint64]:
        state = np.empty((len(ids), 2), dtype=np.uint64)
        state[:, 0], state[:, 1] = ids.values.view(np.uint64), labels
        state = _encrypted(cipher, state)
        if groups is None:
            return state
        state[:, 0] ^= groups
        return _encrypted(cipher, state)

    def _encryptor(self, version: int, kind: str, index: int) -> Any:
        message = self._prefix + _number(version) + _KINDS[kind] + bytes([index])
        return self._cipher(hmac.digest(self._secret, message, "sha256"))


def check_version(version: int) -> int:
    """The version, if it is a whole number of 64 bits; raises IdError."""
    whole = isinstance(version, int | np.integer) and not isinstance(version, bool)
    if not whole or not 0 <= version < 2**64:
        raise IdError(f"a version is a whole number from 0 to 2^64 - 1, not {version!r}")
    return int(version)


def _cbc_mac(
    cipher: Any, ids: ByteIds, labels: NDArray[np.uint64], groups: NDArray[np.uint64] | None
) -> NDArray[np.uint64]:
    pieces = Pieces(ids)
    state = np.empty((len(ids), 2), dtype=np.uint64)
    state[:, 0], state[:, 1] = pieces.lengths.view(np.uint64), pieces.take(0, len(ids))
    state = _encrypted(cipher, state)
    for position in range(8, pieces.longest, _BLOCK):
        count = pieces.count_beyond(position)
        state[:count, 0] ^= pieces.take(position // 8, count)
        state[:count, 1] ^= pieces.take(position // 8 + 1, count)
        if count == len(ids):
            state = _encrypted(cipher, state)
        else:
            state[:count] = _encrypted(cipher, state[:count])
    state[:, 0] ^= pieces.sort(labels)
    if groups is not None:
        state[:, 1] ^= pieces.sort(groups)
    return pieces.restore(_encrypted(cipher, state))


def _encrypted(cipher: Any, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each row of [n, 2], encrypted on its own."""
    plain = np.ascontiguousarray(blocks).view(np.uint8).reshape(-1)
    room = np.empty(len(plain) + _BLOCK - 1, dtype=np.uint8)  # as update_into demands
    cipher.update_into(plain, room)
    return room[: len(plain)].view(np.uint64).reshape(-1, 2)


def _number(value: int) -> bytes:
    return value.to_bytes(8, "little")


_HMAC_TAG = b"labeldp-hmac-words-1"
_HMAC_KINDS = {"text": b"t", "binary": b"b"}
_WORDS_OF_A_DIGEST = 4
_SHA256_BLOCK = 64  # bytes of SHA-256


def message_start(context: str, tables_digest: str, version: int, counter: int) -> bytes:
    """The beginning of the messages of all labels; ``tables_digest`` is in lower-case hex."""
    name = context.encode()
    parts = (_HMAC_TAG, b"%d" % len(name), name, tables_digest.encode(), b"%d" % version)
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
    return hashlib.sha256(bytes(own ^ byte for own in secret.ljust(_SHA256_BLOCK, b"\0")))


def _message_ends(
    ids: Ids, labels: NDArray[np.uint64], groups: NDArray[np.uint64] | None
) -> Iterable[bytes]:
    signed = labels.view(np.int64).tolist()
    tables = [b""] * len(ids) if groups is None else [b"%d" % group for group in groups.tolist()]
    if isinstance(ids, ByteIds):
        kind, names = _HMAC_KINDS[ids.kind], [ids.value(row) for row in range(len(ids))]
    else:
        kind, names = b"i", [b"%d" % value for value in ids.values.tolist()]
    for label, table, name in zip(signed, tables, names, strict=True):
        yield b"%d:%b:%b:%b" % (label, table, kind, name)
