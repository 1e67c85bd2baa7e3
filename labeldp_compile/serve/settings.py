"""The settings of a service."""

import hmac
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from labeldp_compile.errors import InputError
from labeldp_compile.secret_file import read_secret

_LEAST_TOKEN, _MOST_TOKEN = 16, 4096  # characters


@dataclass(frozen=True)
class Settings:
    """The limits of a service, and who may call it.

    Attributes:
        token: that callers send, or None.
        most_bytes: of a request's body.
        most_rows: of a request.
        rate: requests a second of all callers together, or None.
        own_host: whether requests must be sent to this machine by its own name or address. A page
            on the web can have its own name lead here, and browsers then let it read the answers.
    """

    token: bytes | None
    most_bytes: int
    most_rows: int
    rate: int | None
    own_host: bool = False

    def permits(self, header: str | None) -> bool:
        """Whether the value of the header ``Authorization`` has the token."""
        if self.token is None:
            return True
        kind, _, given = (header or "").partition(" ")
        given_bytes = given.strip().encode("utf-8", "surrogateescape")
        return kind.lower() == "bearer" and hmac.compare_digest(given_bytes, self.token)

    def serves(self, host: str | None) -> bool:
        """Whether the value of the header ``Host`` is a name that requests may be sent to."""
        if not self.own_host:
            return True
        name, mark, port = (host or "").rpartition(":")
        is_port = bool(mark) and port.isascii() and port.isdecimal()
        return is_loopback((name if is_port else host or "").removeprefix("[").removesuffix("]"))


def is_loopback(host: str) -> bool:
    """Whether a name or address is the machine's own."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(path: Path) -> bytes:
    """The token in a file that only its owner may read. Raises InputError."""
    text, refusal = read_secret(path, _MOST_TOKEN + 1)
    if refusal is not None:
        raise InputError(refusal)
    token = text.strip()
    if not _LEAST_TOKEN <= len(token) <= _MOST_TOKEN or not token.isascii() or b" " in token:
        raise InputError(
            f"{path}: a token has {_LEAST_TOKEN} to {_MOST_TOKEN:,} ASCII characters and no blank"
        )
    return token
