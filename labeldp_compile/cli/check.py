"""``labeldp check``: artifacts, training runs and ledgers against a policy."""

import sys
from pathlib import Path

import click
from labeldp_verify.budget import Budget, enforced

from labeldp_compile.cli.command import command, say
from labeldp_compile.cli.options import PATH, any_file, budget_option, verbose_option

NAMES = ("table", "json", "sarif", "github")


@command(
    "check",
    "labeldp check build/ --policy policy.yaml",
    "labeldp check build/ runs/ budget.ledger --policy policy.yaml --format sarif > check.sarif",
)
@click.argument(
    "paths", nargs=-1, required=True, metavar="PATH...", shell_complete=any_file
)  # two slashes of a URL stay two
@click.option("--policy", type=PATH, required=True, help="The rules, a YAML file.")
@click.option(
    "--format",
    "name",
    type=click.Choice(NAMES),
    default="table",
    show_default=True,
    help="A table, JSON, SARIF, or annotations for GitHub Actions.",
)
@verbose_option
@budget_option
def check_command(
    paths: tuple[str, ...], policy: Path, name: str, verbose: bool, budget: Budget
) -> None:
    """Check artifacts, training runs and ledgers against a policy.

    PATH is an artifact, a run folder, a ledger, a folder of parts (randomize --append), or a
    folder that holds some. Nothing is spent, and
    no label is read. Exit code 1 if something does not meet the policy, or cannot be verified; 2
    if the policy is wrong, or if there is nothing to check.
    """
    from labeldp_compile.check import judge, load_policy  # noqa: PLC0415  # pydantic
    from labeldp_compile.check.subject import find_subjects  # noqa: PLC0415
    from labeldp_compile.check.verdicts import (  # noqa: PLC0415
        FORMATS,
        CheckResult,
        unverified,
    )

    loaded, below = load_policy(policy), find_subjects(list(paths))
    judged = []
    for where in below.subjects:
        with enforced(budget):
            judged.append(judge(where, loaded, budget))
    judged += [unverified("unknown", str(path), reason) for path, reason in below.refused]
    result = CheckResult(loaded, judged, below.others, verbose)
    say(*FORMATS[name](result))
    sys.exit(0 if result.ok else 1)
