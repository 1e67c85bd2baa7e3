"""The options of commands that verify a file first: its signature, and what that may take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from labeldp_verify.budget import DEFAULT_BUDGET, Budget

from labeldp_compile.errors import InputError

if TYPE_CHECKING:
    from labeldp_verify.signature import Signed

_OPTIONS = (
    click.option(
        "--public-key",
        type=click.Path(path_type=Path),
        help="Also check the signature of FILE with this key (PEM; Ed25519 or P-256).",
    ),
    click.option(
        "--signature",
        type=click.Path(path_type=Path),
        help="The signature, if it is not FILE.sig, or FILE.sigstore.json of a P-256 key; needs "
        "--public-key.",
    ),
)


def signature_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--public-key`` and ``--signature``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def require_public_key(public_key: Path | None, signature: Path | None) -> None:
    """Raise UsageError for a signature that nothing could check."""
    if signature is not None and public_key is None:
        raise click.UsageError("--signature needs --public-key")


def signed_of(file: Path, public_key: Path | None, signature: Path | None) -> Signed | None:
    """What the file is to be signed with, or None if nobody asks. Raises InputError."""
    if public_key is None:
        return None
    from labeldp_verify.signature import read_signed_beside  # noqa: PLC0415  # cryptography

    return read_signed_beside(file, public_key, signature)


def _parse(ctx: click.Context, parameter: click.Parameter, text: str | None) -> Budget:
    try:
        return DEFAULT_BUDGET if text is None else Budget.parse(text)
    except InputError as error:
        raise click.BadParameter(str(error).removeprefix("--budget: ")) from None


def budget_option(command: Any) -> Any:
    """Adds ``--budget``."""
    return click.option(
        "--budget",
        metavar="SECONDS,BYTES",
        callback=_parse,
        help=f"What verifying FILE may take, as in 60,8GB (default: {DEFAULT_BUDGET}).",
    )(command)
