"""``labeldp-verify FILE``: the verifier as a command, for whoever installs nothing else."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from labeldp_verify.budget import DEFAULT_BUDGET, Budget, enforced, naming
from labeldp_verify.errors import InputError
from labeldp_verify.printable import json_text, one_line, printable
from labeldp_verify.signature import read_signed, signature_path
from labeldp_verify.steps import check_file


class _Parser(argparse.ArgumentParser):
    """Quotes arguments in its errors, and they may be names of files."""

    def error(self, message: str) -> NoReturn:
        """The usage and the message, made printable, and exit code 2."""
        super().error(one_line(message))


def main(arguments: Sequence[str] | None = None) -> None:
    """Verify one file, and exit: 0 all checks hold, 1 one fails, 2 it could not be checked."""
    parser = _Parser(
        "labeldp-verify",
        description="Re-derive every provable claim of an artifact from FILE alone.",
    )
    parser.add_argument("file", metavar="FILE", type=Path)
    parser.add_argument(
        "--public-key",
        metavar="PATH",
        type=Path,
        help="also check the Ed25519 signature of FILE with this key (PEM)",
    )
    parser.add_argument(
        "--signature",
        metavar="PATH",
        type=Path,
        help="the signature, if it is not FILE.sig; needs --public-key",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--budget",
        metavar="SECONDS,BYTES",
        help=f"what verifying FILE may take, as in 60,8GB (default: {DEFAULT_BUDGET})",
    )
    options = parser.parse_args(arguments)
    if options.signature and not options.public_key:
        parser.error("--signature needs --public-key")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal without ε
    try:
        sys.exit(_verify(options))
    except InputError as error:
        print(f"labeldp-verify: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def _verify(options: argparse.Namespace) -> int:
    file: Path = options.file
    budget = DEFAULT_BUDGET if options.budget is None else Budget.parse(options.budget)
    signed = None
    if options.public_key:
        signed = read_signed(options.signature or signature_path(file), options.public_key)
    with enforced(budget), naming(file):
        report = check_file(file, None, signed, budget)
    if options.json:
        print(json_text(report.to_json()))  # noqa: T201
    else:
        lines = report.in_words(one_line(str(file)))
        print("\n".join(map(printable, lines)))  # noqa: T201
    return 0 if report.ok else 1
