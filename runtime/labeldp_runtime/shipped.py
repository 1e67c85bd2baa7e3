"""A randomizer that travels to the workers of an engine: its bytes, and no secret.

A key travels as the path and fingerprint of its file, or as the function that fetches it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from labeldp_runtime.errors import DamagedArtifactError, KeyFileError
from labeldp_runtime.keys import Key
from labeldp_runtime.randomizer import Randomizer

KeySource = Key | Callable[[], Key]
_KEPT = 8  # randomizers that a worker process keeps
_loaded: dict[tuple[str, str | None, str | None], Randomizer] = {}


@dataclass(frozen=True)
class KeyedTask:
    """The key's source and the fingerprint that it must have, and the context."""

    key: KeySource
    fingerprint: str
    context: str


@dataclass(frozen=True)
class Shipped:
    """What a worker needs to open a randomizer.

    Attributes:
        data: bytes of the artifact.
        sha256: of ``data``.
        keyed: None for fresh words.
    """

    data: bytes = field(repr=False)
    sha256: str
    keyed: KeyedTask | None = field(repr=False)

    @classmethod
    def of(cls, data: bytes, keyed: KeyedTask | None) -> Shipped:
        """These bytes, with their digest."""
        return cls(data, hashlib.sha256(data).hexdigest(), keyed)

    def open(self) -> Randomizer:
        """Opened once in each worker process, which then serves many tasks.

        Raises DamagedArtifactError, or KeyFileError for a key that is not the driver's.
        """
        keyed = self.keyed
        name = (self.sha256, *((keyed.fingerprint, keyed.context) if keyed else (None, None)))
        randomizer = _loaded.get(name)
        if randomizer is None:
            if hashlib.sha256(self.data).hexdigest() != self.sha256:
                raise DamagedArtifactError(
                    "the artifact was damaged on its way to the worker: run the job again"
                )
            if keyed is None:
                randomizer = Randomizer(self.data, prepared=True)  # the driver has looked
            else:
                randomizer = Randomizer(
                    self.data, key=_fetched(keyed), context=keyed.context, prepared=True
                )
            while len(_loaded) >= _KEPT:
                _loaded.pop(next(iter(_loaded)))
            _loaded[name] = randomizer
        return randomizer


def key_on_driver(key: KeySource) -> Key:
    """The key where the job is planned. Raises KeyFileError for one that cannot travel."""
    if not isinstance(key, Key):
        secret = key()
        if not isinstance(secret, Key):
            raise KeyFileError("the function that fetches the key must return a Key")
        return secret
    try:
        key.__reduce__()
    except TypeError:
        raise KeyFileError(
            "this key came from no file, and would have to travel inside the plan: use Key.load "
            "with a file that every worker finds under the same path, or give a function that "
            "fetches the key from your secret manager: key=lambda: Key(…)"
        ) from None
    return key


def refuse_secret(code: bytes, key: Key) -> None:
    """Raise KeyFileError if the pickled task, with the function that fetches the key, has the key.

    ``code`` is not compressed.
    """
    secret = key.secret
    forms = (secret, secret.hex().encode(), secret.hex().upper().encode(), base64.b64encode(secret))
    if any(form in code for form in forms):
        raise KeyFileError(
            "the function that fetches the key contains the key itself, which would travel inside "
            "the plan: let the function read the key where it runs"
        )


def _fetched(keyed: KeyedTask) -> Key:
    key = keyed.key if isinstance(keyed.key, Key) else keyed.key()
    if key.fingerprint != keyed.fingerprint:
        raise KeyFileError(
            f"the worker has the key {key.fingerprint}, and the driver has {keyed.fingerprint}, "
            "so other noise would be drawn: give both the same key file"
        )
    return key
