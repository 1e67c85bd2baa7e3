"""The socket of a service, and uvicorn on it."""

import logging
import signal
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette

from labeldp_compile.errors import InputError

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

    def run(self, application: Starlette) -> None:
        """Answer until SIGTERM or SIGINT; requests that have begun are finished."""
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
