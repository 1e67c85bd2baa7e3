"""``labeldp-verify FILE``: the verifier as a command, for anyone who installs nothing else."""

import argparse
import difflib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from labeldp_verify.budget import DEFAULT_BUDGET, Budget, enforced, naming
from labeldp_verify.console.interrupts import EXIT_CODE
from labeldp_verify.console.report import REPORT_FORMAT_VERSION, Report
from labeldp_verify.errors import InputError
from labeldp_verify.limits import LIMITS, Limits, option_of
from labeldp_verify.opening import check_file
from labeldp_verify.printable import json_text, one_line, rendered


class _Parser(argparse.ArgumentParser):
    """Quotes arguments in its errors, and they may be names of files."""

    def error(self, message: str) -> NoReturn:
        """The usage and the message, made printable, and exit code 2."""
        unknown = message.removeprefix("unrecognized arguments: ").split(" ")[0].split("=")[0]
        near = difflib.get_close_matches(unknown, self._option_string_actions, n=1)
        hint = f"; did you mean {near[0]}?" if near and unknown != message else ""
        super().error(one_line(message) + hint)


class _Once(argparse.Action):
    """Keeps a value; an option that is given twice is an error, and not the last one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Called by argparse for each occurrence."""
        if option_string and getattr(namespace, self.dest) is not None:
            parser.error(f"{option_string} is given more than once, and takes one")
        setattr(namespace, self.dest, values)


VERBOSE = "also print every check, and all proved and declared fields"
_OPTIONS: dict[str, dict[str, Any]] = {
    "--public-key": {
        "metavar": "PATH",
        "type": Path,
        "help": "also check the signature of FILE with this key (PEM; Ed25519 or P-256)",
    },
    "--signature": {
        "metavar": "PATH",
        "type": Path,
        "help": "the signature, if it is not FILE.sig, or FILE.sigstore.json of P-256; needs "
        "--public-key",
    },
    "--json": {"action": "store_true", "help": "print the report as JSON"},
    "--budget": {
        "metavar": "SECONDS,BYTES",
        "help": f"time and memory for verifying FILE, as in 60,8GB (default: {DEFAULT_BUDGET})",
    },
    **{
        option_of(name): {"metavar": limit.metavar, "help": limit.help}
        for name, limit in LIMITS.items()
    },
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Verify files, and exit: 0 all checks hold, 1 one fails, 2 one could not be checked."""
    parser = _Parser(
        "labeldp-verify", description="Check every provable claim of an artifact from FILE alone."
    )
    parser.register("action", None, _Once)
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+")
    parser.add_argument("-v", "--verbose", action="store_true", help=VERBOSE)
    for option, how in _OPTIONS.items():
        parser.add_argument(option, **how)
    options = parser.parse_args(arguments)
    if options.signature and not options.public_key:
        parser.error("--signature needs --public-key")
    if options.signature and len(options.files) > 1:
        parser.error("--signature is for one FILE; with several, each has its own")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal without ε
    try:
        sys.exit(_verify_all(options))
    except InputError as error:
        print(f"labeldp-verify: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    except KeyboardInterrupt:  # run by another program
        sys.exit(EXIT_CODE)


def _verify_all(options: argparse.Namespace) -> int:
    budget = DEFAULT_BUDGET if options.budget is None else Budget.parse(options.budget)
    limits = Limits.read({name: getattr(options, name) for name in LIMITS})

    def verify(file: Path) -> Report:
        signed = None
        if options.public_key:
            from labeldp_verify.signature import read_signed_beside  # noqa: PLC0415  # cryptography

            signed = read_signed_beside(file, options.public_key, options.signature)
        with naming(file), enforced(budget):
            return check_file(file, None, signed, budget, limits)

    return verify_files(
        options.files,
        verify,
        as_json=options.json,
        verbose=options.verbose,
        say=lambda lines: print("\n".join(rendered(line, sys.stdout) for line in lines)),  # noqa: T201
        say_json=lambda document: print(json_text(document)),  # noqa: T201
        complain=lambda error: print(f"labeldp-verify: {error}", file=sys.stderr),  # noqa: T201
    )


def verify_files(
    files: Sequence[Path],
    verify: Callable[[Path], Report],
    *,
    as_json: bool,
    verbose: bool,
    say: Callable[[Sequence[str]], None],
    say_json: Callable[[Any], None],
    complain: Callable[[str], None],
) -> int:
    """Verify each file, print what was found, and return the exit code.

    It is 2 if a file could not be checked, else 1 if a check fails, else 0. ``say`` takes lines;
    ``say_json`` a document; for several files it is ``{format_version, ok, files: [{file, …}]}``.
    """
    code, documents = 0, []
    for file in files:
        try:
            report = verify(file)
        except InputError as error:
            code = 2
            complain(str(error))
            documents.append({"file": str(file), "ok": False, "not_checked": str(error)})
            continue
        code = max(code, 0 if report.ok else 1)
        if as_json:
            documents.append({"file": str(file), **report.to_json()})
        else:
            say(report.in_words(one_line(str(file)), verbose=verbose, brief=len(files) > 1))
    if as_json and len(files) > 1:
        ok = all(document["ok"] for document in documents)
        say_json({"format_version": REPORT_FORMAT_VERSION, "ok": ok, "files": documents})
    elif as_json and "not_checked" not in documents[0]:
        say_json(documents[0])
    return code
