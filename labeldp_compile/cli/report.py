"""``labeldp report``: what an artifact or a training run does, in the terminal or as a page."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click
from labeldp_verify.budget import Budget

from labeldp_compile.cli.command import DoesNotHoldError, command, does_not_verify, say, tell
from labeldp_compile.cli.options import (
    PATH,
    SignatureFiles,
    budget_option,
    group_option,
    json_option,
    overwrite_option,
    require_form,
    signature_options,
    signing_key,
    verbose_option,
)
from labeldp_compile.errors import InputError, require_pages
from labeldp_compile.whole_file import replaced_when_whole, require_output, write_text

_TEXTS = ("purpose", "owner", "recipients", "retention", "by")
_TERMINAL, _APPROVAL = "a report in the terminal", "an approval (--approve)"
_PAGE, _RUN = "a page (-o or --registry)", "a page of a run"
_OF_RUN = ("policy", "approval", "approver")
_SHOWN = ("asked", "whole", "verbose", "as_json", "table", "weights")
# Names of the options of each form of a report.
_FORMS = {
    _TERMINAL: ("group", *_SHOWN),
    _PAGE: (*_OF_RUN, "group", "spec", "registry", "public_key", "signature"),
    _RUN: _OF_RUN,
    _APPROVAL: ("policy", "approval", *_TEXTS),
}


@command(
    "report",
    "labeldp report build/doctor-visits.onnx --label 0 --label 5",
    "labeldp report build/doctor-visits.onnx --spec specs/doctor-visits.yaml -o report.html",
    "labeldp report runs/visits --policy policy.yaml --approver public.pem -o report.html",
    "labeldp report build/doctor-visits.onnx --policy policy.yaml --approve key.pem \\",
    '  --purpose "Plan the number of doctors" --owner "Health statistics" \\',
    '  --recipients "Two analysts" --retention "Until 2027-12-31" --by "A. Officer"',
)
@click.argument("file", type=PATH)
@click.option(
    "-o",
    "--output",
    type=PATH,
    help="Write one self-contained page (.html) instead of printing to the terminal.",
)
@click.option(
    "--label", "asked", multiple=True, metavar="Y", help="Show this label; may be repeated."
)
@click.option("--matrix", "whole", is_flag=True, help="Print the whole matrix as numbers.")
@verbose_option
@json_option
@click.option(
    "--sets",
    "table",
    type=PATH,
    metavar="TABLE",
    help="For private labels that are sets: also write a table of the labels in each set "
    "(.parquet, .csv).",
)
@click.option(
    "--weights",
    type=PATH,
    metavar="TABLE",
    help="Also write the weights with which labeldp estimate undoes the noise, to be joined with "
    "private labels in SQL (.parquet, .csv).",
)
@click.option(
    "--registry",
    type=PATH,
    metavar="OUT.yaml",
    help="Write an entry for the public registry of DP deployments, with or without a page. Parts "
    "that a person must add say TODO.",
)
@click.option(
    "--published",
    metavar="DATE",
    help="For --registry: the day when the data product was first published, such as 2026-01-31.",
)
@click.option("--spec", type=PATH, help="Also check FILE against this spec, and show the spec.")
@click.option("--policy", type=PATH, help="Also apply this policy, and show its verdict.")
@click.option(
    "--approval",
    type=PATH,
    metavar="FILE",
    help="The approval to show, or that --approve writes (default: FILE.approval.json; "
    "approval.json in a run folder).",
)
@click.option(
    "--approver",
    type=PATH,
    metavar="public.pem",
    help="Check the signature of the approval with this key.",
)
@click.option(
    "--approve",
    type=PATH,
    metavar="key.pem",
    help="Approve FILE instead: state who is responsible, and sign the statement with this key "
    "(Ed25519, or on P-256).",
)
@click.option("--purpose", help="For --approve: the use of the private labels.")
@click.option("--owner", help="For --approve: who is responsible for the labels.")
@click.option("--recipients", help="For --approve: who gets the private labels.")
@click.option("--retention", help="For --approve: how long they are kept.")
@click.option("--by", help="For --approve: who approves.")
@group_option
@signature_options
@overwrite_option
@budget_option
def report_command(
    file: Path,
    output: Path | None,
    registry: Path | None,
    published: str | None,
    spec: Path | None,
    policy: Path | None,
    approval: Path | None,
    approver: Path | None,
    approve: Path | None,
    group: str | None,
    signing: SignatureFiles,
    overwrite: bool,
    budget: Budget,
    **others: Any,
) -> None:
    """Show how the artifact FILE changes labels, or write a page for people who decide.

    Without -o, the terminal shows the matrix Pr[output | label] and the use of the labels. If FILE
    has a table for each group, it lists all groups, and --group shows one of them.

    With -o, FILE can also be a training run. The first screen of the page answers in plain words:
    whose data, protected from whom, how much, the limits, who says so, and whether the policy is
    met. It is green only if a signature was checked and a policy is met. Printed, the
    page has at most two sheets. It lists all groups and shows one in detail: the group with most
    rows, or that of --group.

    With --approve, FILE must verify and meet the policy, if there is one. The statement holds the
    SHA-256 of FILE, so it approves no other file. A page shows it.

    FILE is verified first. If a check fails, the page says so and shows nothing else of FILE,
    nothing else is written, and the exit code is 1. Exit code 2: FILE cannot be read.
    """
    is_page = output is not None or registry is not None
    if approve is not None and is_page:
        raise click.UsageError("--approve writes an approval: leave out -o and --registry")
    of_folder = _RUN if file.is_dir() else _PAGE
    form = of_folder if is_page else _TERMINAL if approve is None else _APPROVAL
    require_form(form, _FORMS)
    day = _day(registry, published)
    if approve is not None:
        write_approval(
            file,
            approve,
            _texts(others),
            policy=policy,
            output=approval,
            overwrite=overwrite,
            budget=budget,
        )
        return
    if not is_page:
        from labeldp_compile.cli.report_terminal import print_report  # noqa: PLC0415  # numpy

        if file.is_dir():
            raise InputError(f"{file}: is a folder: give -o, the page to write")
        options = {name: others[name] for name in _SHOWN}
        print_report(file, group=group, overwrite=overwrite, budget=budget, **options)
        return
    endings = {output: (".html", ".htm"), registry: (".yaml", ".yml")}
    outputs = [path for path in endings if path is not None]
    if output is not None and output == registry:
        raise click.UsageError("-o and --registry must name different files")
    for path in outputs:
        inputs = [file, spec, signing.public_key, signing.signature, policy, approval, approver]
        require_output(path, *inputs, endings=endings[path], overwrite=overwrite)
    require_pages()
    # Imported here because matplotlib takes half a second; usage errors should not wait for it.
    from labeldp_verify.signature import read_public_key  # noqa: PLC0415

    from labeldp_compile.check import load_policy  # noqa: PLC0415
    from labeldp_compile.report.page import (  # noqa: PLC0415
        examine,
        examine_run,
        report_page,
        run_page,
    )
    from labeldp_compile.report.registry import registry_entry  # noqa: PLC0415

    loaded = None if policy is None else load_policy(policy)
    key = None if approver is None else read_public_key(approver)
    if file.is_dir():
        assert output is not None  # or there would be a registry
        write_text(output, run_page(examine_run(file, loaded, approval, key)))
        say(str(output))
        return
    findings = examine(
        file,
        spec,
        signing.signed(file),
        budget,
        group,
        policy=loaded,
        approval=approval,
        approver=key,
    )
    if output is not None:
        write_text(output, report_page(findings))
    if not findings.report.ok:
        raise does_not_verify(file, findings.report)
    if registry is not None and day is not None:
        write_text(registry, registry_entry(findings.report, day))
    say(*map(str, outputs))


def _texts(options: dict[str, Any]) -> dict[str, str]:
    """The texts of an approval by their names. Raises UsageError if one is missing."""
    for name in _TEXTS:
        if options[name] is None:
            raise click.UsageError(f"--approve needs --{name}")
    return {"approved_by" if name == "by" else name: options[name] for name in _TEXTS}


def _day(registry: Path | None, published: str | None) -> date | None:
    """The day of publication, for the registry. Raises UsageError or InputError."""
    if registry is None:
        if published is not None:
            raise click.UsageError("--published needs --registry")
        return None
    if published is None:
        raise click.UsageError("--registry needs --published DATE")
    from labeldp_compile.report.registry import read_date  # noqa: PLC0415

    return read_date(published)


def write_approval(
    file: Path,
    key_file: Path,
    texts: dict[str, str],
    *,
    policy: Path | None,
    output: Path | None,
    overwrite: bool,
    budget: Budget,
) -> None:
    """Verify FILE, apply the policy, and write a signed statement of who is responsible for it.

    Of a training run, its statement must agree with its config. The statement holds the SHA-256 of
    FILE, so it approves no other file. Raises DoesNotHoldError if FILE does not verify or does not
    meet the policy; then nothing is written.
    """
    from labeldp_compile.check import judge, judge_artifact, load_policy  # noqa: PLC0415
    from labeldp_compile.check.verdicts import read_promise, read_run  # noqa: PLC0415
    from labeldp_compile.report.approval import (  # noqa: PLC0415
        approval,
        approval_path,
        read_subjects,
        responsible,
    )

    out = output or approval_path(file)
    # Its own name is the only one inside of a run folder.
    beside = file.is_dir() and out == approval_path(file)
    require_output(out, None if beside else file, key_file, policy, overwrite=overwrite)
    loaded = None if policy is None else load_policy(policy)
    under = None if loaded is None else f"{loaded.path.name} (SHA-256 {loaded.sha256})"
    stated = responsible(texts, under, datetime.now(UTC).date())
    key = signing_key(key_file)
    assert key is not None
    data = read_subjects(file)
    if file.is_dir():
        read, _ = read_promise(file, read_run(file))
        judged = None if loaded is None else judge(file, loaded)
        if data[0] != read or data != read_subjects(file):
            raise DoesNotHoldError(f"{file}: changed while it was checked; not approved")
    else:
        from labeldp_verify import check_bytes  # noqa: PLC0415

        report = check_bytes(data[0], budget=budget)
        for check in report.checks:
            if not check.ok:
                raise DoesNotHoldError(f"{file}: does not verify: {check.detail}; not approved")
        # Of the bytes that are signed, not of what the file holds by now.
        judged = None if loaded is None else judge_artifact(file, data[0], report, loaded)
    if judged is not None and judged.failed:
        raise DoesNotHoldError(f"{file}: {judged.failed[0].text}; not approved")
    with replaced_when_whole(out) as part:
        require_output(out, overwrite=overwrite)  # another approval may have been faster
        part.write(approval(stated, file, data, key))
    tell(f"{out}: {stated.approved_by} approves {file} ({stated.approved_on})")
    say(str(out))
