"""``labeldp report``: one page of what an artifact does."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import click
from labeldp_verify.budget import Budget

from labeldp_compile.cli.file_options import (
    budget_option,
    require_public_key,
    signature_options,
    signed_of,
)
from labeldp_compile.cli.gone_options import gone_option
from labeldp_compile.cli.group_options import group_option
from labeldp_compile.cli.output import complain, say
from labeldp_compile.whole_file import require_another_file, require_output, write_text

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
    help="The page to write (.html): one file that needs nothing else.",
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
    "--spec",
    type=click.Path(path_type=Path),
    help="Also check FILE against this spec, and show it.",
)
@gone_option("--compare", "is gone: labeldp sweep compares mechanisms")
@gone_option("--format", "is gone: a report is a page, -o report.html")
@group_option
@signature_options
@click.option("--overwrite", is_flag=True, help="Replace an output that exists.")
@budget_option
def report_command(
    file: Path,
    output: Path | None,
    registry: Path | None,
    published: str | None,
    spec: Path | None,
    group: str | None,
    public_key: Path | None,
    signature: Path | None,
    overwrite: bool,
    budget: Budget,
) -> None:
    """Show what the artifact FILE does and promises, on one page for people.

    What is shown is FILE; nothing is compiled. Of tables by group all are listed, and one is drawn:
    that with most rows, or that of --group.

    FILE is verified first. If a check fails, the page says so and shows nothing else of FILE, no
    entry is written, and the exit code is 1; it is 2 if FILE cannot be read.
    """
    require_public_key(public_key, signature)
    day = _day(output, registry, published)
    endings = {output: (".html", ".htm"), registry: (".yaml", ".yml")}
    outputs = [path for path in endings if path is not None]
    if output is not None and output == registry:
        raise click.UsageError("-o and --registry must name different files")
    for path in outputs:
        inputs = [file, spec, public_key, signature]
        require_another_file(path, [path for path in inputs if path is not None])
        require_output(path, endings=endings[path], overwrite=overwrite)
    signed = signed_of(file, public_key, signature)
    # Loaded here, for pictures take half a second to import: usage errors come at once.
    from labeldp_compile.tools.report.findings import examine  # noqa: PLC0415
    from labeldp_compile.tools.report.page import report_page  # noqa: PLC0415
    from labeldp_compile.tools.report.registry import registry_entry  # noqa: PLC0415

    findings = examine(file, spec, signed, budget, group)
    if output is not None:
        write_text(output, report_page(findings))
    if not findings.report.ok:
        failed = next(check for check in findings.report.checks if not check.ok)
        message = f"{file}: DOES NOT VERIFY. Do not use this file. {failed.name}: {failed.detail}"
        complain(message)
        sys.exit(1)
    if registry is not None and day is not None:
        write_text(registry, registry_entry(findings.report, day))
    say(*map(str, outputs))


def _day(output: Path | None, registry: Path | None, published: str | None) -> date | None:
    """Of publication, for the registry. Raises UsageError or InputError."""
    if registry is None:
        if published is not None:
            raise click.UsageError("--published needs --registry")
        if output is None:
            raise click.UsageError("Missing option '-o', or '--registry': say what to write")
        return None
    if published is None:
        raise click.UsageError("--registry needs --published, the day of publication")
    from labeldp_compile.tools.report.registry import read_date  # noqa: PLC0415

    return read_date(published)
