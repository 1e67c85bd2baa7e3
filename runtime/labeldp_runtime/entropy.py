"""Uniform random words from a cryptographically secure generator.

``ssl.RAND_bytes`` is OpenSSL's generator: seeded by the operating system, reseeded after a fork, an
order of magnitude faster than ``os.urandom``. numpy's generators are not secure and never used.
"""

from __future__ import annotations

import ssl

import numpy as np
from numpy.typing import NDArray


def random_words(*shape: int) -> NDArray[np.uint64]:
    """Fresh uniform uint64 words of the given shape."""
    count = int(np.prod(shape))
    return np.frombuffer(ssl.RAND_bytes(8 * count), dtype=np.uint64).reshape(shape)
