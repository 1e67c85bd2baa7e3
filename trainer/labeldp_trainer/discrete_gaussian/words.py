"""Uniform random words from a cryptographic generator under a secret key.

The same key, purpose and number give the same words, so a step that is repeated after a crash
repeats its noise. The generator is AES-256 in counter mode; each (purpose, number) has separate
counters.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from jaxtyping import UInt32, UInt64

from labeldp_compile.toolkit import random_bytes

KEY_BYTES = 32
_MOST_PURPOSE, _MOST_NUMBER = 1 << 8, 1 << 56


def secret_key() -> UInt32[np.ndarray, 8]:
    """Return a fresh key of 256 bits from the operating system. Keep it as secret as the labels."""
    return np.frombuffer(random_bytes(KEY_BYTES), "<u4").astype(np.uint32)


class Words:
    """A stream of independent uniform words.

    Raises ValueError if the key, the purpose (below 2^8) or the number (below 2^56) does not fit.
    """

    def __init__(self, key: UInt32[np.ndarray, 8], purpose: int, number: int) -> None:
        """Start the stream of ``purpose`` and ``number``."""
        if key.shape != (KEY_BYTES // 4,) or key.dtype != np.uint32:
            raise ValueError("a key has eight words of 32 bits, as uint32")
        if not (0 <= purpose < _MOST_PURPOSE and 0 <= number < _MOST_NUMBER):
            raise ValueError("a stream needs a purpose below 2^8 and a number below 2^56")
        # The last 8 bytes count the blocks of this stream.
        start = bytes([purpose]) + number.to_bytes(7, "big") + bytes(8)
        raw = key.astype("<u4").tobytes()
        self._stream = Cipher(algorithms.AES(raw), modes.CTR(start)).encryptor()

    def draw(self, count: int) -> UInt64[np.ndarray, " n"]:
        """Return ``count`` words of 64 bits."""
        return np.frombuffer(self._stream.update(bytes(8 * count)), "<u8")

    def draw32(self, count: int) -> UInt32[np.ndarray, " n"]:
        """Return ``count`` words of 32 bits."""
        return np.frombuffer(self._stream.update(bytes(4 * count)), "<u4")
