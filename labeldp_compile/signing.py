"""Sign an artifact with a key of Ed25519 or on P-256; ``labeldp_verify.signature`` checks it."""

import json
from pathlib import Path
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from labeldp_verify.printable import json_text
from labeldp_verify.signature import (
    MAX_KEY_BYTES,
    NO_SUCH_KEY,
    Signed,
    bundle,
    envelope,
    is_on_p256,
    signed_bytes,
    statement,
)

from labeldp_compile.errors import InputError
from labeldp_compile.whole_file import read_secret

PrivateKey = Ed25519PrivateKey | EllipticCurvePrivateKey


def read_private_key(path: Path) -> PrivateKey:
    """The key in an unencrypted PEM file that only its owner may read. Raises InputError."""
    pem, refusal = read_secret(path, MAX_KEY_BYTES)
    try:
        key = load_pem_private_key(pem, password=None)
    except TypeError as error:
        raise InputError(
            f"{path}: is encrypted; sign with OpenSSL instead: openssl pkeyutl -sign -rawin "
            f"-inkey {path} -in ARTIFACT.onnx -out ARTIFACT.onnx.sig; or, of P-256, with the "
            "package model-signing: model_signing sign key ARTIFACT.onnx "
            f"--private_key {path} --password PASSWORD --signature ARTIFACT.onnx.sigstore.json"
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError(f"{path}: is not a private key in PEM") from error
    on_p256 = isinstance(key, EllipticCurvePrivateKey) and is_on_p256(key.public_key())
    if not (isinstance(key, PrivateKey) and (isinstance(key, Ed25519PrivateKey) or on_p256)):
        raise InputError(f"{path}: {NO_SUCH_KEY}")
    if refusal is not None:
        raise InputError(refusal)
    return key


def sign(data: bytes, name: str, key: PrivateKey) -> bytes:
    """The bytes of a signature file: 64 for Ed25519; for P-256 a bundle that names the file."""
    if isinstance(key, Ed25519PrivateKey):
        return key.sign(data)
    payload = json_text(statement(name, data)).encode()
    return (json.dumps(bundle(payload, _of(payload, key), key.public_key())) + "\n").encode()


def signed_envelope(stated: dict[str, Any], key: PrivateKey) -> dict[str, Any]:
    """An in-toto Statement in a DSSE envelope, signed by the key and with its fingerprint."""
    payload = json_text(stated).encode()
    return envelope(payload, _of(payload, key), Signed(b"", key.public_key()).fingerprint())


def _of(payload: bytes, key: PrivateKey) -> bytes:
    """The signature of a payload of an envelope."""
    algorithm = () if isinstance(key, Ed25519PrivateKey) else (ECDSA(SHA256()),)
    return key.sign(signed_bytes(payload), *algorithm)
