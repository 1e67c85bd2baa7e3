"""The socket of a service, and uvicorn on it."""

import hmac
import ipaddress
import logging
import signal
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeldp_compile.errors import InputError
from labeldp_compile.private_file import read_secret

if TYPE_CHECKING:
    from starlette.applications import Starlette

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


_WAITING, _AT_ONCE, _IDLE = 2048, 1024, 15  # connections, requests, and seconds without any


@dataclass(frozen=True)
class Tls:
    """Files in PEM: the service's chain and key, and the authority of its clients, if they must
    have certificates."""

    chain: Path
    key: Path
    clients: Path | None

    def options(self) -> dict[str, Any]:
        """For uvicorn. Raises InputError if a file cannot be used."""
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.chain, self.key, password=_no_password)
            if self.clients is not None:
                context.load_verify_locations(self.clients)
        except (OSError, ValueError) as error:  # an ssl.SSLError is an OSError
            raise InputError(f"the certificates cannot be used: {error}") from None
        found: dict[str, Any] = {"ssl_certfile": self.chain, "ssl_keyfile": self.key}
        if self.clients is not None:
            found |= {"ssl_ca_certs": str(self.clients), "ssl_cert_reqs": ssl.CERT_REQUIRED}
        return found


def _no_password() -> str:
    raise ValueError("the private key is encrypted")


class Listener:
    """A socket that listens, until it is closed."""

    def __init__(self, host: str, port: int, tls: Tls | None) -> None:
        """Raises InputError if the address is taken, or a certificate cannot be used."""
        self._options = {} if tls is None else tls.options()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family, backlog=_WAITING)
        except OSError as error:
            raise InputError(f"{host}:{port}: cannot listen: {error.strerror or error}") from None
        shown = f"[{host}]" if ":" in host else host
        scheme = "http" if tls is None else "https"
        self.address = f"{scheme}://{shown}:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def run(self, application: "Starlette") -> None:
        """Answer until SIGTERM or SIGINT; requests that have begun are finished."""
        import uvicorn  # noqa: PLC0415  # --help needs no server

        # uvicorn's logs could quote what a caller sent.
        for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [logging.NullHandler()], False
        config = uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_AT_ONCE,
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=_IDLE,
            ws="none",
            **self._options,
        )
        # uvicorn hands the signal that stopped it to the handler from before, which would make it
        # an error.
        before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            uvicorn.Server(config).run(sockets=[self._socket])
        finally:
            signal.signal(signal.SIGTERM, before)
