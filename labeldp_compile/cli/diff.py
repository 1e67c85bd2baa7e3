"""``labeldp diff``: what differs between two artifacts or two specs, and what that breaks."""

import sys
from pathlib import Path

import click
from labeldp_verify.budget import Budget, enforced
from labeldp_verify.printable import Marked

from labeldp_compile.cli.command import command, verified
from labeldp_compile.cli.options import PATH, budget_option, json_option
from labeldp_compile.cli.output import show
from labeldp_compile.errors import InputError

_SPECS = (".yaml", ".yml")


@command(
    "diff",
    "labeldp diff deployed/visits.onnx build/visits.onnx --detailed-exitcode",
    "labeldp diff old/visits.yaml visits.yaml",
)
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@click.option(
    "--detailed-exitcode",
    is_flag=True,
    help="Exit with 0 if nothing differs, 3 if something does, 4 if a change is breaking.",
)
@json_option
@budget_option
def diff_command(
    old: Path, new: Path, detailed_exitcode: bool, as_json: bool, budget: Budget
) -> None:
    """Show what differs between two artifacts or two specs, and what that breaks.

    Artifacts are verified first; exit code 1 if one does not verify. A change is breaking if the
    promise gets weaker, if labels or groups are read in another way, if outputs are new, or if a
    label that was drawn with a key would be drawn again. Nothing is spent.
    """
    kinds = {path.suffix.lower() in _SPECS for path in (old, new)}
    if len(kinds) > 1:
        raise InputError(f"{new}: compare two artifacts, or two specs (.yaml)")
    if kinds == {True}:
        from labeldp_compile.diff import diff_specs  # noqa: PLC0415
        from labeldp_compile.spec import load_spec  # noqa: PLC0415

        found = diff_specs(load_spec(old)[0], load_spec(new)[0])
    else:
        from labeldp_verify.opening import open_artifact  # noqa: PLC0415

        from labeldp_compile.diff import diff_artifacts  # noqa: PLC0415

        opened = []
        for path in (old, new):
            with enforced(budget), verified(path):
                opened.append(open_artifact(path, budget))
        found = diff_artifacts(*opened)
    *lines, verdict = found.in_words()
    last = Marked(verdict, "failed" if found.breaking else "ok")
    show(as_json, found.to_json, lambda: [*lines, last])
    sys.exit(found.code if detailed_exitcode else 0)
