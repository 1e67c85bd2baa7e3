"""``labeldp serve``: an HTTP service that gives private labels."""

from contextlib import closing
from pathlib import Path

import click
from labeldp_verify.printable import Marked

from labeldp_compile.cli.command import DoesNotHoldError, command
from labeldp_compile.cli.options import PATH, Whole, prepared_option
from labeldp_compile.cli.output import tell
from labeldp_compile.errors import InputError, require_installed
from labeldp_compile.serve.listening import Settings, is_loopback, read_token

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
    help="Of a request.",
)
@click.option(
    "--max-rows",
    type=Whole(1, 10_000_000),
    default=1_000_000,
    show_default=True,
    help="Of a request.",
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
    from labeldp_compile.serve.listening import Listener, Tls  # noqa: PLC0415
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
        listener.run(service.application())
