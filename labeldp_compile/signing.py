"""Sign an artifact with an Ed25519 key (RFC 8032); ``labeldp_verify.signature`` checks it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from labeldp_runtime.keys import why_no_secret
from labeldp_verify.signature import MAKE_KEYS, MAX_KEY_BYTES

from labeldp_compile.errors import InputError


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """An Ed25519 key from an unencrypted PEM file that nobody else may read, or InputError."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            pem = file.read(MAX_KEY_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        key = load_pem_private_key(pem, password=None)
    except TypeError as error:
        raise InputError(
            f"{path}: is encrypted; sign with OpenSSL instead: openssl pkeyutl -sign -rawin "
            f"-inkey {path} -in ARTIFACT.onnx -out ARTIFACT.onnx.sig"
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError(f"{path}: is no private key in PEM") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path}: is no Ed25519 key; make one with: {MAKE_KEYS}")
    if refusal := why_no_secret(path, mode):
        raise InputError(refusal)
    return key
