"""``labeldp serve``: an HTTP service that gives private labels, on a socket of uvicorn."""

import hmac
import ipaddress
import logging
import signal
import socket
import ssl
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from labeldp_verify.printable import Marked

from labeldp_compile.cli.command import DoesNotHoldError, command, tell
from labeldp_compile.cli.options import PATH, Whole, prepared_option
from labeldp_compile.errors import InputError, require_installed
from labeldp_compile.whole_file import read_secret

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


_NEEDED = ("prometheus_client", "starlette", "uvicorn")
_MEBIBYTE = 1 << 20


@command(
    "serve",
    "labeldp serve build/visits.onnx --key labels.key",
    "labeldp serve build/*.onnx --key labels.key --host 0.0.0.0 --token-file token \\",
    "  --tls-cert cert.pem --tls-key key.pem",
)
@click.argument("artifacts", type=PATH, nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=Whole(0, 65_535), default=8080, show_default=True)
@click.option(
    "--key",
    "key",
    type=PATH,
    help="Key file from labeldp keygen: callers send ids, and a repeated request spends nothing.",
)
@click.option(
    "--context", help="With --key: a name for this use of the label (default: its column)."
)
@click.option(
    "--unkeyed",
    is_flag=True,
    help="Without a key: every request draws anew, also one that a client or a proxy repeats.",
)
@click.option(
    "--token-file",
    type=PATH,
    help="Only callers with the token in this file (Authorization: Bearer) are answered.",
)
@click.option("--tls-cert", type=PATH, help="Certificate chain (PEM) of the service.")
@click.option("--tls-key", type=PATH, help="Its private key (PEM).")
@click.option(
    "--client-ca",
    type=PATH,
    help="Only clients with a certificate of this authority (PEM) are answered.",
)
@prepared_option
@click.option("--public-key", type=PATH, help="Also demand a signature of each artifact.")
@click.option(
    "--max-bytes",
    type=Whole(1, 1 << 30),
    default=16 * _MEBIBYTE,
    show_default=True,
    help="The most bytes of a request.",
)
@click.option(
    "--max-rows",
    type=Whole(1, 10_000_000),
    default=1_000_000,
    show_default=True,
    help="The most rows of a request.",
)
@click.option("--rate", type=Whole(1, 1_000_000), help="Most requests a second, of all callers.")
def serve_command(
    artifacts: tuple[Path, ...],
    host: str,
    port: int,
    key: Path | None,
    context: str | None,
    unkeyed: bool,
    token_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    client_ca: Path | None,
    prepared: bool,
    public_key: Path | None,
    max_bytes: int,
    max_rows: int,
    rate: int | None,
) -> None:
    """Serve ARTIFACTS over HTTP: a caller sends true labels and gets private ones.

    Every file is verified before the service listens, and again on SIGHUP, which reads all files
    anew. Anyone who may call the service is trusted with true labels, and can ask about every
    label of an id. Logs and metrics count rows and never hold labels. Needs starlette, uvicorn and
    prometheus-client (the extra serve).

    Exit code 1: an artifact does not verify. Exit code 2: the input is wrong.
    """
    require_installed("labeldp serve", *_NEEDED, install="install the extra serve of labeldp")
    if (key is None) != unkeyed:
        raise InputError("give either --key FILE, or --unkeyed if repeated requests may draw anew")
    if context is not None and key is None:
        raise InputError("--context: needs --key")
    if (tls_cert is None) != (tls_key is None):
        raise InputError("--tls-cert and --tls-key: give both or neither")
    if client_ca is not None and tls_cert is None:
        raise InputError("--client-ca: needs --tls-cert and --tls-key")
    if not is_loopback(host) and token_file is None and client_ca is None:
        raise InputError(
            f"--host {host}: others can reach this address: give --token-file or --client-ca, so "
            "that only those who may see true labels are answered"
        )
    # Starlette and uvicorn, for those who serve.
    from labeldp_runtime import KeyFileError, MissingExtraError, RuntimeArtifactError  # noqa: PLC0415
    from labeldp_verify import VerificationError  # noqa: PLC0415

    from labeldp_compile.serve.app import Service  # noqa: PLC0415
    from labeldp_compile.serve.served import load  # noqa: PLC0415

    token = None if token_file is None else read_token(token_file)
    # Others than browsers need no name; who has a token or a certificate is no page on the web.
    own_host = token is None and client_ca is None
    settings = Settings(token, max_bytes, max_rows, rate, own_host)
    tls = None
    if tls_cert is not None and tls_key is not None:
        tls = Tls(tls_cert, tls_key, client_ca)
    try:
        service = Service(
            lambda: load(artifacts, key, context, public_key, prepared=prepared), settings
        )
    except (VerificationError, RuntimeArtifactError) as error:
        raise DoesNotHoldError(f"an artifact cannot be served: {error}") from error
    except (KeyFileError, MissingExtraError) as error:
        raise InputError(str(error)) from None
    with closing(Listener(host, port, tls)) as listener:
        names = ", ".join(service.artifacts)
        tell(Marked(f"verified, and served at {listener.address}: {names}", "ok"))
        if tls is None and not is_loopback(host):
            reason = "true labels and the token travel unencrypted; give --tls-cert and --tls-key"
            tell(Marked(f"{listener.address}: {reason}", "warning"))
        listener.run(service.application())
