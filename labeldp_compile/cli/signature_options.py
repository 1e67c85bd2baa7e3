"""The options of commands that also check a signature."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from labeldp_verify.signature import Signed, read_signed, signature_path

_OPTIONS = (
    click.option(
        "--public-key",
        type=click.Path(path_type=Path),
        help="Also check the Ed25519 signature of FILE with this key (PEM).",
    ),
    click.option(
        "--signature",
        type=click.Path(path_type=Path),
        help="The signature, if it is not FILE.sig; needs --public-key.",
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
    return (
        None if public_key is None else read_signed(signature or signature_path(file), public_key)
    )
