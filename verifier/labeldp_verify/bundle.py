"""Signatures as OpenSSF model signing 1.0 has them: a sigstore bundle beside the artifact.

Three envelopes, of which the innermost speaks of the file: a bundle (JSON, version 0.3) holds a
DSSE envelope, whose payload is an in-toto Statement v1 (JSON, too) with one resource, ``.``, and
its SHA-256. The key is on P-256; the signature, ECDSA with SHA-256 in DER, is over the DSSE
encoding of the payload. What is written here, the package ``model-signing`` verifies, and the
other way round.

A bundle is somebody's letter. It is read strictly: the JSON must be the one that its payload,
signature and key define, the statement the one that the digest of the file defines, without a
field, a resource or a key beside.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from labeldp_verify.reading.strict_json import parse_json

MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://model_signing/signature/v1.0"
_NO_BUNDLE = "the signature is not a sigstore bundle with one DSSE envelope for this key"
_NOT_OF_FILE = "the bundle does not sign exactly this file"


class BundleError(ValueError):
    """The bundle does not say that the key signed the file; the message says why."""


def statement(
    name: str, data: bytes, *, ignore_paths: Sequence[str] | None = None, symlinks: bool = False
) -> dict[str, Any]:
    """The in-toto Statement about a file; its name is only informative.

    ``ignore_paths`` and ``symlinks`` only matter for folders.
    """
    digest = hashlib.sha256(data)
    serialization: dict[str, Any] = {
        "method": "files",
        "hash_type": "sha256",
        "allow_symlinks": symlinks,
    }
    if ignore_paths is not None:
        serialization["ignore_paths"] = list(ignore_paths)
    # The digest of the subject is that of the digests of all resources: here of one.
    whole = hashlib.sha256(digest.digest()).hexdigest()
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": whole}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "serialization": serialization,
            "resources": [{"name": ".", "algorithm": "sha256", "digest": digest.hexdigest()}],
        },
    }


def signed_bytes(payload: bytes) -> bytes:
    """What is signed of a payload: its DSSE v1 encoding, which binds the payload's type."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def envelope(payload: bytes, signature: bytes, key_id: str = "") -> dict[str, Any]:
    """A DSSE envelope with one signature."""
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"sig": base64.b64encode(signature).decode(), "keyid": key_id}],
    }


def bundle(payload: bytes, signature: bytes, key: EllipticCurvePublicKey) -> dict[str, Any]:
    """The sigstore bundle of a signed payload."""
    return {
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {"publicKey": {"hint": key_hint(key)}, "tlogEntries": []},
        "dsseEnvelope": envelope(payload, signature),
    }


def key_hint(key: EllipticCurvePublicKey) -> str:
    """How a bundle names a key: the SHA-256 (hex) of its PEM."""
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(pem).hexdigest()


def require_signed(text: bytes, key: EllipticCurvePublicKey, data: bytes) -> None:
    """Raise BundleError unless the bundle says that the key signed exactly these bytes."""
    payload, signature = _opened(text, key)
    try:
        key.verify(signature, signed_bytes(payload), ECDSA(SHA256()))
    except InvalidSignature:
        raise BundleError("the key did not sign the content of the bundle") from None
    _require_about(payload, data)


def _opened(text: bytes, key: EllipticCurvePublicKey) -> tuple[bytes, bytes]:
    """The payload and its signature."""
    stated = _read(text, _NO_BUNDLE)
    try:
        inner = stated["dsseEnvelope"]
        payload = base64.b64decode(inner["payload"], validate=True)
        signature = base64.b64decode(inner["signatures"][0]["sig"], validate=True)
    except (LookupError, TypeError, ValueError):
        raise BundleError(_NO_BUNDLE) from None
    if not _same(stated, bundle(payload, signature, key)):
        raise BundleError(_NO_BUNDLE)
    return payload, signature


def _require_about(payload: bytes, data: bytes) -> None:
    stated = _read(payload, _NOT_OF_FILE)
    try:
        name, how = stated["subject"][0]["name"], stated["predicate"]["serialization"]
        ignored, symlinks = how.get("ignore_paths"), how["allow_symlinks"]
    except (LookupError, TypeError, AttributeError):
        raise BundleError(_NOT_OF_FILE) from None
    listed = ignored is None or (
        isinstance(ignored, list) and all(isinstance(path, str) for path in ignored)
    )
    expected = statement(name, data, ignore_paths=ignored if listed else None, symlinks=symlinks)
    if not (isinstance(name, str) and isinstance(symlinks, bool) and _same(stated, expected)):
        raise BundleError(_NOT_OF_FILE)


def _read(text: bytes, otherwise: str) -> Any:
    try:
        return parse_json(text.decode())
    except ValueError:
        raise BundleError(otherwise) from None


def _same(one: Any, other: Any) -> bool:
    """Whether both are the same JSON, in which 1, 1.0 and true differ."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
