"""Detached Ed25519 signatures over a whole artifact.

A signature is the 64 bytes of RFC 8032 over the bytes of the file, and keys are PEM (PKCS #8 and
SubjectPublicKeyInfo), so that OpenSSL and other tools make and check the same files.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)

from labeldp_verify.errors import InputError

SIGNATURE_BYTES = 64
MAX_KEY_BYTES = 1 << 16


@dataclass(frozen=True)
class Signed:
    """A signature, and the public key that it must be checked with."""

    signature: bytes
    public_key: Ed25519PublicKey

    def fingerprint(self) -> str:
        """SHA-256 (hex) of the 32 bytes of the public key."""
        raw = self.public_key.public_bytes(Encoding.Raw, PublicFormat.Raw)
        return hashlib.sha256(raw).hexdigest()

    def holds(self, data: bytes) -> bool:
        """Whether the holder of the private key signed exactly these bytes."""
        try:
            self.public_key.verify(self.signature, data)
        except InvalidSignature:
            return False
        return True


def signature_path(artifact: Path) -> Path:
    """Where a signature lies by default: NAME.onnx.sig beside NAME.onnx."""
    return artifact.with_name(artifact.name + ".sig")


def read_signed(signature: Path, public_key: Path) -> Signed:
    """The signature and the key; InputError if one is missing or not of its kind."""
    key = load_public_key(_read(public_key), str(public_key))
    return Signed(_read(signature), key)


def load_public_key(pem: bytes, source: str) -> Ed25519PublicKey:
    """An Ed25519 public key from PEM; ``source`` names it in the InputError."""
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError(f"{source}: is no public key in PEM") from error
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{source}: is no Ed25519 key; make one with: {MAKE_KEYS}")
    return key


MAKE_KEYS = (
    "openssl genpkey -algorithm ed25519 -out key.pem && openssl pkey -in key.pem -pubout -out "
    "public.pem"
)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_KEY_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
