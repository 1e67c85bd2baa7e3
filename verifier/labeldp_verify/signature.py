"""Detached signatures over a whole artifact, by an Ed25519 key or a P-256 key.

Of Ed25519 a signature is the 64 bytes of RFC 8032 over the bytes of the file, and keys are PEM
(PKCS #8 and SubjectPublicKeyInfo), so that OpenSSL and other tools make and check the same files.
Of P-256 it is a sigstore bundle (``bundle.py``), which tools for models verify.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from labeldp_verify.bundle import BundleError, key_hint, require_signed, signed_bytes
from labeldp_verify.errors import InputError, read_at_most
from labeldp_verify.signature_files import bundle_path, signature_path

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
