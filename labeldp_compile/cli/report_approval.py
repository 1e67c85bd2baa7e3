"""An approval: a signed statement of who is responsible for a file, and approved it."""

from datetime import UTC, datetime
from pathlib import Path

from labeldp_verify.budget import Budget

from labeldp_compile.cli.command import DoesNotHoldError
from labeldp_compile.cli.options import signing_key
from labeldp_compile.cli.output import say, tell
from labeldp_compile.whole_file import replaced_when_whole, require_output


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
    from labeldp_compile.check.judging import read_promise, read_run  # noqa: PLC0415
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
