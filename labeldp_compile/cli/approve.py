"""``labeldp approve``: a signed statement of who is responsible for a file, and approved it."""

from datetime import UTC, datetime
from pathlib import Path

import click

from labeldp_compile.cli.command import DoesNotHoldError, command
from labeldp_compile.cli.options import PATH, overwrite_option, signing_key
from labeldp_compile.cli.output import say, tell
from labeldp_compile.whole_file import replaced_when_whole, require_output


@command(
    "approve",
    "labeldp approve build/doctor-visits.onnx --policy policy.yaml --sign key.pem \\",
    '  --purpose "Plan the number of doctors" --owner "Health statistics" \\',
    '  --recipients "Two analysts" --retention "Until 2027-12-31" --by "A. Officer"',
)
@click.argument("file", type=PATH)
@click.option("--purpose", required=True, help="What the private labels are for.")
@click.option("--owner", required=True, help="Who is responsible for the labels.")
@click.option("--recipients", required=True, help="Who gets the private labels.")
@click.option("--retention", required=True, help="How long they are kept.")
@click.option("--by", "approved_by", required=True, help="Who approves.")
@click.option(
    "--sign",
    "key_file",
    type=PATH,
    required=True,
    metavar="key.pem",
    help="Sign the statement with this key: Ed25519, or on P-256.",
)
@click.option("--policy", type=PATH, help="The policy that FILE must meet.")
@click.option(
    "-o",
    "--output",
    type=PATH,
    help="The file to write (default: FILE.approval.json; approval.json in a run folder).",
)
@overwrite_option
def approve_command(
    file: Path,
    key_file: Path,
    policy: Path | None,
    output: Path | None,
    overwrite: bool,
    **texts: str,
) -> None:
    """State who is responsible for the artifact or training run FILE, and approve it.

    FILE is verified first (of a training run, its statement must agree with its config). If it
    does not verify, or does not meet the policy, nothing is written and the exit code is 1. The
    statement holds the SHA-256 of FILE, so it approves no other file. labeldp report shows it.
    """
    from labeldp_compile.tools.policy import judge, judge_artifact, load_policy  # noqa: PLC0415
    from labeldp_compile.tools.policy.judging import read_promise, read_run  # noqa: PLC0415
    from labeldp_compile.tools.report.approval import (  # noqa: PLC0415
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

        report = check_bytes(data[0])
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
