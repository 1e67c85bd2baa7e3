"""The secret key of replay-safe randomization, and the file that holds it.

A key file is three lines of ASCII:

    labeldp-key: 1
    key: 64 hexadecimal digits
    fingerprint: 16 hexadecimal digits

The fingerprint is the start of HMAC-SHA-256(key, "labeldp-fingerprint-1"). It detects a damaged
key, which would otherwise draw other noise without a message, and names a key without disclosing
it.
"""

from __future__ import annotations

import hmac
import re
from pathlib import Path

from labeldp_runtime.entropy import random_bytes
from labeldp_runtime.errors import KeyFileError
from labeldp_runtime.whole_file import read_secret, replaced_when_whole

KEY_BYTES = 32
_MAX_FILE_BYTES = 4096
_FINGERPRINT_TAG = b"labeldp-fingerprint-1"
_FILE = re.compile(
    rb"labeldp-key: ([0-9]{1,9})\r?\nkey: ([0-9a-f]{64})\r?\nfingerprint: ([0-9a-f]{16})\s*"
)


class Key:
    """A secret of 32 bytes that belongs to the owner of the labels.

    Anyone who has the key, the ids and the private labels can undo the noise.

    >>> from labeldp_runtime import Key
    >>> key = Key.create("labels.key")
    >>> Key.load("labels.key") == key, len(key.fingerprint)
    (True, 16)
    """

    __slots__ = ("_path", "_secret")

    def __init__(self, secret: bytes, path: Path | None = None) -> None:
        """A key from 32 uniformly random bytes, for instance from a secret manager.

        Raises KeyFileError if there are not exactly 32. Passwords are no keys.
        """
        if len(secret) != KEY_BYTES:
            raise KeyFileError(f"a key has {KEY_BYTES} random bytes, not {len(secret)}")
        self._secret, self._path = bytes(secret), path

    @classmethod
    def load(cls, path: str | Path) -> Key:
        """The key in a file that ``labeldp keygen`` wrote.

        Raises KeyFileError if the file cannot be read, is damaged, or may be read by others.
        """
        path = Path(path)
        try:
            text, refusal = read_secret(path, _MAX_FILE_BYTES)
        except OSError as error:
            raise KeyFileError(f"{path}: cannot be read: {error.strerror}") from error
        if refusal is not None:
            raise KeyFileError(refusal)
        found = _FILE.fullmatch(text)
        if found is None:
            raise KeyFileError(
                f"{path}: is not a key file, or is damaged: labeldp keygen writes key files"
            )
        if found.group(1) != b"1":
            raise KeyFileError(f"{path}: has a newer format: upgrade labeldp-runtime")
        key = cls(bytes.fromhex(found.group(2).decode()), path.absolute())
        if key.fingerprint != found.group(3).decode():
            raise KeyFileError(f"{path}: is damaged: key and fingerprint differ")
        return key

    @classmethod
    def create(cls, path: str | Path) -> Key:
        """Make a key and write it to a new file of mode 0600.

        Raises KeyFileError if the file exists already or cannot be written.
        """
        path = Path(path)
        key = cls(random_bytes(KEY_BYTES), path.absolute())
        text = f"labeldp-key: 1\nkey: {key.secret.hex()}\nfingerprint: {key.fingerprint}\n"
        try:
            with replaced_when_whole(path, most=0o600, replace=False) as file:
                file.write(text.encode())
        except FileExistsError:
            raise KeyFileError(
                f"{path}: exists already, and keys are never overwritten: choose another name"
            ) from None
        except OSError as error:
            raise KeyFileError(f"{path}: cannot be written: {error.strerror or error}") from error
        return key

    @property
    def secret(self) -> bytes:
        """The 32 bytes."""
        return self._secret

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that name the key and disclose nothing about it."""
        return hmac.digest(self._secret, _FINGERPRINT_TAG, "sha256")[:8].hex()

    def __repr__(self) -> str:
        """The fingerprint; never the secret."""
        return f"Key(fingerprint={self.fingerprint!r})"

    def __eq__(self, other: object) -> bool:
        """Whether the secrets are equal."""
        return isinstance(other, Key) and hmac.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        """Of the fingerprint."""
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the path and the fingerprint, never the secret."""
        if self._path is None:
            raise TypeError(
                "a key that was not loaded from a file cannot be pickled: "
                "load it in each process, or store it in a key file"
            )
        return _reload, (str(self._path), self.fingerprint)


def _reload(path: str, fingerprint: str) -> Key:
    key = Key.load(path)
    if key.fingerprint != fingerprint:
        raise KeyFileError(f"{path}: holds another key than the one that was pickled")
    return key
