"""Secret random bytes, fresh from the kernel in every call.

No generator lives longer than a call: a process that is copied (a fork, a container checkpoint, a
snapshot) never draws what its copy draws. OpenSSL's generator, ``ssl.RAND_bytes``, is kept between
calls and reseeds when the process id changes. A process id namespace or a reused id hides that.

Few bytes come from the kernel itself. Many are the AES-256 counter mode (NIST SP 800-38A) of
OpenSSL under a key of 256 bits that the kernel gave for this call: as secure as AES-256 as a
pseudorandom permutation, up to b²/2^129 for b blocks. numpy's generators are not secure and never
used.
"""

import ctypes
import math
import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_FEW = 1 << 11  # bytes; fewer come sooner from the kernel than from AES
MOST = 1 << 24  # bytes a key: 2^20 blocks
_KEY = 32  # bytes

_Stream = Callable[[bytes, int, int], bool]


def random_bytes(count: int) -> bytes:
    """Fresh secret uniform bytes, as many as asked for; raises OSError if there are none."""
    if count <= _FEW:
        return _of_kernel(count)
    return random_words(-(-count // 8)).tobytes()[:count]


def random_words(*shape: int) -> NDArray[np.uint64]:
    """Fresh secret uniform uint64 words of the given shape; raises OSError if there are none."""
    size = 8 * math.prod(shape)
    if _stream is None or size <= _FEW:
        return np.frombuffer(_of_kernel(size), dtype=np.uint64).reshape(shape)
    words = np.zeros(shape, dtype=np.uint64)
    for start in range(0, size, MOST):
        if not _stream(_of_kernel(_KEY), words.ctypes.data + start, min(MOST, size - start)):
            raise OSError("OpenSSL's AES failed: there are no random bytes")
    return words


def _of_kernel(count: int) -> bytes:
    """Bytes of the system call itself: the C library may keep some of its own in the process."""
    if not hasattr(os, "getrandom"):  # not Linux
        return os.urandom(count)
    found = os.getrandom(count)
    if len(found) == count:  # always, up to 256 bytes
        return found
    parts = [found]
    while missing := count - sum(map(len, parts)):
        parts.append(os.getrandom(missing))
    return b"".join(parts)


def _of_openssl() -> _Stream | None:
    """Add a key's stream to the bytes at an address; None where Python's build hides OpenSSL.

    By way of ctypes, which lets go of the interpreter's lock, and needs no other package.
    """
    try:
        import _ssl  # noqa: PLC0415 - not every Python has it under this name

        library = ctypes.CDLL(_ssl.__file__)  # and what it is linked with
        new, free = library.EVP_CIPHER_CTX_new, library.EVP_CIPHER_CTX_free
        cipher, begin = library.EVP_aes_256_ctr, library.EVP_EncryptInit_ex
        update = library.EVP_EncryptUpdate
    except (ImportError, AttributeError, OSError):
        return None
    address, number = ctypes.c_void_p, ctypes.c_int
    new.argtypes, new.restype = (), address
    free.argtypes, free.restype = (address,), None
    cipher.argtypes, cipher.restype = (), address
    begin.argtypes = (address, address, address, ctypes.c_char_p, ctypes.c_char_p)
    update.argtypes = (address, address, ctypes.POINTER(number), address, number)

    aes, first_block = cipher(), bytes(16)

    def stream(key: bytes, place: int, size: int) -> bool:
        written, context = number(), new()
        if context is None:
            return False
        try:
            return (
                begin(context, aes, None, key, first_block) == 1
                and update(context, place, written, place, size) == 1
                and written.value == size
            )
        finally:
            free(context)

    return stream if _is_aes(stream) else None


def _is_aes(stream: _Stream) -> bool:
    """Whether a stream begins as the published vector for a key of zeros."""
    block = ctypes.create_string_buffer(16)
    done = stream(bytes(_KEY), ctypes.addressof(block), len(block))
    return done and block.raw == bytes.fromhex("dc95c078a2408989ad48a21492842087")


_stream = _of_openssl()
