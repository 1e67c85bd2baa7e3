"""``labeldp report``: one page, or one picture, of what an artifact does."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click
from labeldp_verify.budget import Budget

from labeldp_compile.cli.file_options import (
    budget_option,
    require_public_key,
    signature_options,
    signed_of,
)
from labeldp_compile.cli.group_options import group_option
from labeldp_compile.cli.output import complain, say
from labeldp_compile.errors import InputError
from labeldp_compile.whole_file import replaced_when_whole, require_another_file, require_output

if TYPE_CHECKING:
    from labeldp_compile.tools.inspection import Decoded
    from labeldp_compile.tools.report.comparison import Comparison

_SUFFIXES = {"html": (".html", ".htm"), "png": (".png",)}
_EPILOG = """\b
Example:
  labeldp report build/doctor-visits.onnx --spec specs/doctor-visits.yaml -o report.html
"""


@click.command("report", epilog=_EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The page (.html) or the picture (.png) to write.",
)
@click.option(
    "--registry",
    type=click.Path(path_type=Path),
    metavar="OUT.yaml",
    help="Write an entry for the public registry of DP deployments, with or without a page: what "
    "the certificate knows, and TODO where a person must say it.",
)
@click.option(
    "--published",
    metavar="DATE",
    help="For --registry: when the data product was first published, as in 2026-01-31.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_SUFFIXES)),
    help="html: one page that needs nothing else; png: the main pictures on one slide. "
    "Default: as the output's name says.",
)
@click.option(
    "--spec",
    type=click.Path(path_type=Path),
    help="Also check FILE against this spec, and show it.",
)
@click.option(
    "--compare",
    is_flag=True,
    help="Also show other mechanisms: each is compiled for that, and verified, from the prior and "
    "the ε of a label that FILE's certificate states. Nothing else of a report compiles.",
)
@group_option
@signature_options
@click.option("--overwrite", is_flag=True, help="Replace an output that exists.")
@budget_option
def report_command(
    file: Path,
    output: Path | None,
    registry: Path | None,
    published: str | None,
    form: str | None,
    spec: Path | None,
    compare: bool,
    group: str | None,
    public_key: Path | None,
    signature: Path | None,
    overwrite: bool,
    budget: Budget,
) -> None:
    """Show what the artifact FILE does and promises, on one page for people.

    What is shown is FILE; nothing is compiled, unless --compare asks for it. Of tables by group all
    are listed, and one is drawn: that with most rows, or that of --group.

    FILE is verified first. If a check fails, the page says so and shows nothing else of FILE, no
    picture and no entry is written, and the exit code is 1; it is 2 if FILE cannot be read.
    """
    require_public_key(public_key, signature)
    form = _form(output, form, compare=compare)
    day = _day(output, registry, published)
    outputs = [path for path in (output, registry) if path is not None]
    if len(set(outputs)) < len(outputs):
        raise click.UsageError("-o and --registry must name different files")
    for path in outputs:
        inputs = [file, spec, public_key, signature]
        require_another_file(path, [path for path in inputs if path is not None])
        require_output(path, overwrite=overwrite)
    signed = signed_of(file, public_key, signature)
    # Loaded here, for pictures take half a second to import: usage errors come at once.
    from labeldp_compile.tools.report.findings import examine  # noqa: PLC0415
    from labeldp_compile.tools.report.page import report_page  # noqa: PLC0415
    from labeldp_compile.tools.report.picture import save_picture  # noqa: PLC0415
    from labeldp_compile.tools.report.registry import registry_entry  # noqa: PLC0415

    findings = examine(file, spec, signed, budget, group)
    compared = _compared(findings.decoded) if compare and findings.decoded else None
    if output is None:
        pass
    elif form == "html":
        page = report_page(findings, compared)
        with replaced_when_whole(output) as part:
            part.write(page.encode())
    elif findings.report.ok:
        with replaced_when_whole(output) as part:
            save_picture(findings, part, compared)
    if not findings.report.ok:
        failed = next(check for check in findings.report.checks if not check.ok)
        message = f"{file}: DOES NOT VERIFY. Do not use this file. {failed.name}: {failed.detail}"
        complain(message)
        sys.exit(1)
    if registry is not None and day is not None:
        with replaced_when_whole(registry) as part:
            part.write(registry_entry(findings.report, day).encode())
    say(*map(str, outputs))


def _form(output: Path | None, form: str | None, *, compare: bool) -> str | None:
    """What to draw; None if there is only an entry for the registry."""
    if output is not None:
        return _format(output, form)
    if form is not None or compare:
        raise click.UsageError("--format and --compare need -o")
    return None


def _day(output: Path | None, registry: Path | None, published: str | None) -> date | None:
    """Of publication, for the registry. Raises UsageError or InputError."""
    if registry is None:
        if published is not None:
            raise click.UsageError("--published needs --registry")
        if output is None:
            raise click.UsageError("Missing option '-o', or '--registry': say what to write")
        return None
    if registry.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"{registry}: expected a name that ends in .yaml")
    if published is None:
        raise click.UsageError("--registry needs --published, the day of publication")
    from labeldp_compile.tools.report.registry import read_date  # noqa: PLC0415

    return read_date(published)


def _compared(decoded: Decoded) -> Comparison:
    """The other mechanisms; says what it does, for it is the one thing here that compiles."""
    from labeldp_compile.tools.report.comparison import compare  # noqa: PLC0415

    epsilon = decoded.certificate.privacy.epsilon_label
    complain(
        f"compiling the other mechanisms from the certificate's prior and ε = {epsilon:g} of a "
        "label; no label is read, nothing is spent"
    )
    return compare(decoded)


def _format(output: Path, form: str | None) -> str:
    suffix = output.suffix.lower()
    named = next((name for name, suffixes in _SUFFIXES.items() if suffix in suffixes), None)
    if named is None or form not in (None, named):
        expected = _SUFFIXES[form][0] if form else ".html or .png"
        raise InputError(f"{output}: expected a name that ends in {expected}")
    return named
