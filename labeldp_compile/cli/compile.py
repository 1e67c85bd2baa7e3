"""``labeldp compile``: spend, solve, certify, write."""

import math
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from labeldp_verify.analysis import LOSSES
from labeldp_verify.artifact import Artifact
from labeldp_verify.claims import (
    DECLARED_BY,
    OVER,
    Certificate,
    gap_in_words,
    how_near,
    person_epsilon,
    rational,
)
from labeldp_verify.opening import readable
from labeldp_verify.printable import Marked, at_least, at_most
from labeldp_verify.usefulness.shortcomings import ODD_GROUPS, relevant

from labeldp_compile.build import PLAN_SUFFIX
from labeldp_compile.build.assembly import Compiled, require_writable
from labeldp_compile.build.pipeline import compile_to
from labeldp_compile.cli.charts import group_table, prior_bars, prior_hints
from labeldp_compile.cli.command import (
    clipped,
    command,
    complain,
    fact,
    observing,
    require_met,
    say,
    tell,
    using_project,
)
from labeldp_compile.cli.options import (
    PATH,
    overwrite_option,
    quiet_option,
    require_form,
    sign_option,
    signing_key,
    test_seed_option,
    verbose_option,
)
from labeldp_compile.ledger_url import is_url
from labeldp_compile.mechanisms import mechanism_class
from labeldp_compile.observer import QUIET
from labeldp_compile.project import PROJECT_FILE
from labeldp_compile.spec.agreement import StaleError, require_current, specs_in
from labeldp_compile.spec.model import PrivatePrior
from labeldp_compile.weak_promise import weak_promise

if TYPE_CHECKING:
    from labeldp_compile.ledger.entries import Entry

_FORMS = {"compiling": ("overwrite", "key", "verbose", "test_seed")}  # --check has none of its own
_WRITTEN = "Directory for NAME.onnx and NAME.certificate.json (default: the folder of the spec)."
WIDE_GAP = 1e-4
_SHOWN_GROUPS = 12
_SHARED_COLUMNS = 120
_SPENT = {
    "private": "spent by each compile that reads the labels",
    "public": "nothing: the prior is public",
    "uniform": "nothing: the prior is uniform",
}


@command(
    "compile",
    "labeldp compile specs/doctor-visits.yaml -o build/",
    "labeldp compile visits.plan -o build/",
    "labeldp compile --check specs/doctor-visits.yaml -o build/",
    "labeldp compile specs/",
)
@click.argument("spec", type=PATH)
@click.option("-o", "--output", "directory", type=PATH, help=_WRITTEN)
@overwrite_option
@sign_option
@verbose_option
@quiet_option
@click.option(
    "--check",
    is_flag=True,
    help="Spend and write nothing: exit with 1 unless the artifact in the directory is current.",
)
@test_seed_option
def compile_command(
    spec: Path,
    directory: Path | None,
    overwrite: bool,
    key: Path | None,
    verbose: bool,
    quiet: bool,
    check: bool,
    test_seed: int | None,
) -> None:
    """Compile SPEC into a randomizer with a certificate.

    SPEC is a spec, or a plan that labeldp plan --out saved. A plan is done exactly as it was
    approved. If the spec, a table's columns or its number of rows changed, nothing is spent, and
    the exit code is 1.

    SPEC can also be a folder: then every spec in it is compiled. All are checked before anything is
    spent or written. Without --overwrite, an artifact that is current with its spec stays.

    Each run spends the ε of a private prior on the data, unless the spec names a ledger that
    recalls the prior. If the ledger's budget is exceeded, the exit code is 1. A labeldp.yaml beside
    SPEC can name the ledger, and a policy that must be met. Prints the path of the artifact on
    stdout, and a summary on stderr.
    """
    require_form("--check" if check else "compiling", _FORMS)
    specs = [path for path, _ in specs_in(spec).values()] if spec.is_dir() else [spec]
    if check:
        if spec.suffix == PLAN_SUFFIX:
            raise click.UsageError("--check is for a spec, not for a saved plan")
        for path in specs:
            current = require_current(path, directory or path.parent)
            say(f"{current}: is current with {path}; nothing was spent")
        return
    private_key = signing_key(key)
    approved = None
    if specs == [spec] and spec.suffix == PLAN_SUFFIX:
        from labeldp_compile.build.plan import read_plan  # noqa: PLC0415

        approved = read_plan(spec)
        approved.require_same()
        specs = [approved.spec]
    place = directory or specs[0].parent
    project = using_project(specs[0].parent, quiet=quiet)
    policy = None if project is None else project.policy
    stay: dict[Path, Path] = {}
    if spec.is_dir() and not overwrite and key is None:
        for path in specs:
            with suppress(StaleError):
                stay[path] = require_current(path, place)
    changed = [path for path in specs if path not in stay]
    if spec.is_dir() or policy is not None:
        _require_all(specs, changed, place, policy, overwrite=overwrite)
    for path, current in stay.items():
        tell(*(() if quiet else [f"{current}: is current with {path} and stays"]))
        say(str(current))
    for path in changed:
        with observing(
            "counting labels", quiet=quiet, say=QUIET.say if quiet else complain
        ) as observer:
            artifact, written = compile_to(
                path,
                place,
                overwrite=overwrite,
                key=private_key,
                test_seed=test_seed,
                observer=observer,
                approved=approved,
            )
        if not quiet:
            tell(*_lines(artifact, verbose=verbose))
            tell(Marked(f"compiled: check it with labeldp verify {written}", "ok"))
        say(str(written))
    if project and project.ledger and not quiet and not os.path.lexists(place / PROJECT_FILE):
        tell(f"{place}: without a {PROJECT_FILE} there, labeldp randomize needs --ledger to book")


def _require_all(
    specs: Sequence[Path],
    changed: Sequence[Path],
    into: Path,
    policy: Path | None,
    *,
    overwrite: bool,
) -> None:
    """Raise InputError for all that compile refuses before it spends, in any of the specs.

    What those that are compiled spend together must fit the budgets of their ledgers. All must meet
    the policy, also those whose artifacts stay.
    """
    from labeldp_compile.build.plan import plan_spec  # noqa: PLC0415
    from labeldp_compile.check import judge_plan, load_policy  # noqa: PLC0415
    from labeldp_compile.ledger.book import read_entries, require_budget  # noqa: PLC0415
    from labeldp_compile.ledger.entries import next_entry  # noqa: PLC0415

    rules = None if policy is None else load_policy(policy)
    ledgers: dict[str, list[Entry]] = {}
    asked_before: set[tuple[object, ...]] = set()
    for path in specs if rules is not None else changed:
        plan = plan_spec(path)
        if path in changed:
            require_writable(into, plan.spec.name, overwrite=overwrite)
        where, prior, asked = plan.spec.privacy.ledger, plan.spec.prior, plan.budget.question
        entries: list[Entry] = []
        if where is not None and asked is not None:
            place = where if is_url(where) else str(path.parent / where)
            entries = ledgers.get(place) or read_entries(place, by_spec=True)
            ledgers[place] = entries
            assert isinstance(prior, PrivatePrior)
            data = str(prior.data_set), str(prior.data_version)
            # The ledger recalls for a later spec what an earlier one asked.
            plan = replace(
                plan, recalls=plan.recalls or (place, data, asked.digest()) in asked_before
            )
        if rules is not None:
            require_met(judge_plan(plan, path, rules, entries), rules)
        if path in changed and entries and asked is not None and not plan.recalls:
            require_budget(place, entries, data[0], asked.epsilon)
            asked_before.add((place, data, asked.digest()))
            facts = {"data_set": data[0], "data_version": "", "epsilon": str(asked.epsilon)}
            facts["time"] = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
            entries.append(next_entry(entries, "spend", facts))


def _lines(compiled: Compiled, *, verbose: bool) -> list[str]:
    """The promise and the uses of the labels: at most 14 lines without details.

    Warnings come on top of them.
    """
    artifact, certificate = compiled.artifact, compiled.certificate
    privacy, utility = certificate.privacy, certificate.utility
    table = None if artifact.groups.own_tables else readable(artifact.table(0))
    lines = [_head(compiled)]
    if verbose:
        whole = artifact, _SHOWN_GROUPS
        lines += group_table(*whole) if table is None else prior_bars(table, sys.stderr)
    lines += [
        fact("ε per label", f"{at_most(privacy.epsilon_label_bound, 12)} (proved by the integers)"),
        fact(
            "ε of the prior",
            f"{at_most(privacy.epsilon_prior)} (declared), {_SPENT[certificate.prior.kind]}",
        ),
        fact(
            "total ε",
            f"{at_most(privacy.epsilon_total)} (declared) for one row, randomized once",
        ),
    ]
    person = person_epsilon(certificate)
    total = rational(certificate.exact.epsilon_total)
    if person is not None:
        stated = f"{person.in_words()}, the prior included (declared)"
        lines, total = [*lines, fact("ε per person", stated)], person.total
    lines += [_warning(text) for text in weak_promise(total)]
    if table is None:
        lines.append(fact("groups", f"declared by {DECLARED_BY} to be public, not proved"))
    else:
        lines += [fact(*figure) for figure in table.figures(verbose=verbose)]
        lines += prior_hints(table)
    loss = f"{utility.noisy_label_loss:.6g} ({utility.loss})"
    if utility.loss_lower_bound is not None:
        loss += f", {how_near(utility)} (proved)"
    lines.append(fact("noisy label loss", loss))
    if verbose:
        lines += _bounds(certificate, (artifact if table is None else table).bias_in_range)
    lines += [
        Marked(f"warning: {one.text}", "warning")
        for one in relevant((artifact if table is None else table).shortcomings, compiled.goal)
        if one.kind != ODD_GROUPS  # said before anything was spent
    ]
    if artifact.groups.columns and table is not None:
        lines.append(_one_table(artifact))
    if certificate.insecure:
        lines.append(_warning(certificate.insecure))
    if not verbose:
        more = "--verbose shows all figures and the prior, labeldp report the probabilities"
        lines.append(f"more: {more}")
    return lines


def _warning(text: str) -> str:
    return Marked(fact("warning", text), "warning")


def _head(compiled: Compiled) -> str:
    artifact, certificate = compiled.artifact, compiled.certificate
    parts = f"{certificate.outputs:,} outputs"
    if artifact.groups.own_tables:
        names = ", ".join(column.name for column in artifact.groups.columns)
        parts = f"{artifact.groups.tables:,} tables by {names}"
    return (
        f"{certificate.name}: {certificate.mechanism} on {certificate.labels:,} labels, {parts}, "
        f"for goal: {compiled.goal}"
    )


def _one_table(artifact: Artifact) -> str:
    """Which groups were asked for and have one table, why, and what would change that."""
    shared = clipped(artifact.groups.name(0), _SHARED_COLUMNS)
    return (
        f"note: all groups ({shared}) share one table: their histograms differ too little from "
        "noise, or unbiased labels gain little from a prior. More rows, a larger ε, a larger part "
        "of it for the prior (privacy.split), or goal: labels help"
    )


def _bounds(certificate: Certificate, bias: float | None) -> list[str]:
    """How near the file is to the best possible; ``bias`` is the largest of labels in the range."""
    utility, noise, lines = certificate.utility, certificate.sets, []
    if bias is not None:
        what = "|E[output | label] − label|, for labels in the range"
        lines.append(fact("largest bias", f"{at_most(bias, 3):<12} {what}"))
    if utility.loss_lower_bound is not None and certificate.optimality is not None:
        over = OVER[certificate.optimality.over]
        lines.append(fact("least possible", f"{at_least(utility.loss_lower_bound):<12} {over}"))
    if noise is not None:
        lines.append(
            fact("noise of shares", f"{noise.noise:<12.6g} variance of one label, all shares")
        )
        lines.append(fact("least noise", f"{at_least(noise.least_noise):<12} {OVER['any']}"))
        lines.append(fact("", f"the noise is {gap_in_words(noise.gap)}"))
    if (utility.certified_gap or 0) > WIDE_GAP:
        lines.append("  note: the solver proved no closer bound at this ε and prior; privacy holds")
    if (
        mechanism_class(certificate.mechanism).certified_labels == math.inf
        and LOSSES[utility.loss].dual is not None
        and certificate.groups is None  # whose tables may have bounds of their own
        and utility.loss_lower_bound is None
    ):
        lines.append("  note: no bound could be proved for this loss, ε and domain; privacy holds")
    return lines
