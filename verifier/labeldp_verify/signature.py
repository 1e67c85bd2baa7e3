"""Signatures over a whole artifact: of Ed25519, or as OpenSSF model signing has them."""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from labeldp_verify.artifact import bundle_path, signature_path
from labeldp_verify.errors import InputError, read_at_most
from labeldp_verify.strict import parse_json

# ---- Signatures as OpenSSF model signing 1.0 has them: a sigstore bundle beside the artifact.
#
# Three envelopes, of which the innermost speaks of the file: a bundle (JSON, version 0.3) holds a
# DSSE envelope, whose payload is an in-toto Statement v1 (JSON, too) with one resource, ``.``, and
# its SHA-256. The key is on P-256; the signature, ECDSA with SHA-256 in DER, is over the DSSE
# encoding of the payload. What is written here, the package ``model-signing`` verifies, and the
# other way round.
#
# A bundle is somebody's letter. It is read strictly: the JSON must be the one that its payload,
# signature and key define, the statement the one that the digest of the file defines, without a
# field, a resource or a key beside.


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
    """The bytes that are signed: the payload's DSSE v1 encoding, which binds its type."""
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


# ---- Detached signatures over a whole artifact, by an Ed25519 key or a P-256 key.
#
# Of Ed25519 a signature is the 64 bytes of RFC 8032 over the bytes of the file, and keys are PEM
# (PKCS #8 and SubjectPublicKeyInfo), so that OpenSSL and other tools make and check the same files.
# Of P-256 it is a sigstore bundle, which tools for models verify.


MAX_KEY_BYTES = 1 << 16
PublicKey = Ed25519PublicKey | EllipticCurvePublicKey


@dataclass(frozen=True)
class Signed:
    """A signature, or a bundle with one, and the public key that it must be checked with."""

    signature: bytes
    public_key: PublicKey

    def fingerprint(self) -> str:
        """SHA-256 (hex) of the public key: of the 32 bytes of Ed25519, of the PEM of P-256."""
        if isinstance(self.public_key, EllipticCurvePublicKey):
            return key_hint(self.public_key)
        raw = self.public_key.public_bytes(Encoding.Raw, PublicFormat.Raw)
        return hashlib.sha256(raw).hexdigest()

    def holds(self, data: bytes) -> bool:
        """Whether the holder of the private key signed exactly these bytes."""
        return self.refusal(data) is None

    def holds_in_envelope(self, payload: bytes) -> bool:
        """Whether it is the signature of a DSSE envelope with exactly this payload."""
        how = (ECDSA(SHA256()),) if isinstance(self.public_key, EllipticCurvePublicKey) else ()
        try:
            self.public_key.verify(self.signature, signed_bytes(payload), *how)
        except InvalidSignature:
            return False
        return True

    def refusal(self, data: bytes) -> str | None:
        """Why it does not hold, in plain words; None if it does."""
        try:
            if isinstance(self.public_key, EllipticCurvePublicKey):
                require_signed(self.signature, self.public_key, data)
            else:
                self.public_key.verify(self.signature, data)
        except BundleError as error:
            return str(error)
        except InvalidSignature:
            return "the key did not sign this file"
        return None


def path_for(artifact: Path, key: PublicKey) -> Path:
    """Where a signature lies that is checked with this key."""
    beside = bundle_path if isinstance(key, EllipticCurvePublicKey) else signature_path
    return beside(artifact)


def read_signed_beside(artifact: Path, public_key: Path, signature: Path | None = None) -> Signed:
    """The key and the signature, by default the one beside the artifact that fits the key.

    Raises InputError if one is missing or not of its kind.

    Example:
        >>> from pathlib import Path
        >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        >>> from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
        >>> from labeldp_compile import compile_spec
        >>> from labeldp_verify import check_file, read_signed_beside
        >>> key = Ed25519PrivateKey.generate()
        >>> pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        >>> _ = Path("public.pem").write_bytes(pem)
        >>> path = compile_spec("specs/visits.yaml").write(Path("build"), key=key)
        >>> check_file(path, signed=read_signed_beside(path, Path("public.pem"))).ok
        True
    """
    key = read_public_key(public_key)
    beside = path_for(artifact, key)
    if signature is None and not beside.exists():
        raise InputError(
            f"{beside}: does not exist: {artifact.name} is not signed, or its signature is "
            "elsewhere"
        )
    return Signed(read_at_most(signature or beside, MAX_KEY_BYTES), key)


def read_public_key(path: Path) -> PublicKey:
    """A public key in a PEM file; InputError if it is missing or not of its kind."""
    return load_public_key(read_at_most(path, MAX_KEY_BYTES), str(path))


def load_public_key(pem: bytes, source: str) -> PublicKey:
    """A public key of Ed25519 or on P-256 from PEM; ``source`` names it in the InputError."""
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError(f"{source}: is not a public key in PEM") from error
    if isinstance(key, Ed25519PublicKey) or is_on_p256(key):
        return key
    raise InputError(f"{source}: {NO_SUCH_KEY}")


def is_on_p256(key: object) -> TypeGuard[EllipticCurvePublicKey]:
    """Whether this is a public key on the curve P-256."""
    return isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)


MAKE_KEYS = (
    "openssl genpkey -algorithm ed25519 -out key.pem && openssl pkey -in key.pem -pubout -out "
    "public.pem"
)
NO_SUCH_KEY = f"is neither an Ed25519 key nor one on P-256; make one with: {MAKE_KEYS}"
