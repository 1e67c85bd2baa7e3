"""Uniform random words from a cryptographically secure generator.

OpenSSL's: seeded by the operating system, one for each thread, reseeded after a fork, an order of
magnitude faster than ``os.urandom``. numpy's generators are not secure and never used.
"""

from __future__ import annotations

import ctypes
import math
import ssl
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_FEW = 1 << 12  # words; fewer are drawn before a call by way of ctypes begins
_MOST = 1 << 27  # words a call: a number of bytes is an int there


def random_words(*shape: int) -> NDArray[np.uint64]:
    """Fresh uniform uint64 words of the given shape."""
    count = math.prod(shape)
    if _fill is None or count < _FEW:
        return np.frombuffer(ssl.RAND_bytes(8 * count), dtype=np.uint64).reshape(shape)
    words = np.empty(count, dtype=np.uint64)
    for start in range(0, count, _MOST):
        part = words[start : start + _MOST]
        if _fill(part.ctypes.data, part.nbytes) != 1:
            raise ssl.SSLError("OpenSSL has no random bytes")
    return words.reshape(shape)


def _of_openssl() -> Callable[[int, int], int] | None:
    """The function behind ``ssl.RAND_bytes``, or None where Python's build does not show it.

    ``ssl`` calls it while it holds the interpreter's lock, so that threads would draw one after the
    other; ctypes lets go of the lock, and the words are written where they are read.
    """
    try:
        import _ssl  # noqa: PLC0415 - not every Python has it under this name

        function = ctypes.CDLL(_ssl.__file__).RAND_bytes  # of the library that it is linked with
    except (ImportError, AttributeError, OSError):
        return None
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_int), ctypes.c_int
    found: Callable[[int, int], int] = function
    return found


_fill = _of_openssl()
