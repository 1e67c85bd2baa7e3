"""``labeldp compile``: spend, solve, certify, write."""

import math
import sys
from pathlib import Path

import click
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.claims import (
    DECLARED_BY,
    OVER,
    Certificate,
    gap_in_words,
    near_least,
    person_epsilon,
    rational,
)
from labeldp_verify.opening import readable
from labeldp_verify.printable import Marked
from labeldp_verify.rounded import at_least, at_most
from labeldp_verify.usefulness.estimates import is_unbiased
from labeldp_verify.usefulness.shortcomings import ODD_GROUPS, relevant

from labeldp_compile.build import PLAN_SUFFIX
from labeldp_compile.build.assembly import Compiled
from labeldp_compile.build.pipeline import compile_to
from labeldp_compile.cli.charts import group_table, prior_bars, prior_hints
from labeldp_compile.cli.command import command
from labeldp_compile.cli.options import (
    PATH,
    overwrite_option,
    quiet_option,
    sign_option,
    signing_key,
    test_seed_option,
    verbose_option,
    written_option,
)
from labeldp_compile.cli.output import (
    clipped,
    complain,
    fact,
    observing,
    once_spent,
    printable,
    say,
    tell,
)
from labeldp_compile.mechanisms import mechanism_class
from labeldp_compile.observer import QUIET
from labeldp_compile.weak_promise import weak_promise

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
)
@click.argument("spec", type=PATH)
@written_option
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
    directory: Path,
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

    Each run spends the ε of a private prior on the data, unless the spec names a ledger that
    recalls the prior. If the ledger's budget is exceeded, the exit code is 1. Prints the path of
    the artifact on stdout, and a summary on stderr.
    """
    if check:
        if overwrite or key is not None or test_seed is not None:
            raise click.UsageError("--check writes nothing: leave out the other options")
        if spec.suffix == PLAN_SUFFIX:
            raise click.UsageError("--check is for a spec, not for a saved plan")
        from labeldp_compile.spec.agreement import require_current  # noqa: PLC0415

        say(f"{require_current(spec, directory)}: is current with {spec}; nothing was spent")
        return
    private_key = signing_key(key)
    told = QUIET.say if quiet else complain
    approved = None
    if spec.suffix == PLAN_SUFFIX:
        from labeldp_compile.build.plan import read_plan  # noqa: PLC0415

        approved = read_plan(spec)
        approved.require_same()
        spec = approved.spec
    with observing("counting labels", quiet=quiet, say=told) as observer:
        artifact, path = compile_to(
            spec,
            directory,
            overwrite=overwrite,
            key=private_key,
            test_seed=test_seed,
            observer=observer,
            approved=approved,
        )
    if not quiet:
        tell(*(_details(artifact) if verbose else _summary(artifact)))
        tell(Marked(f"compiled: check it with labeldp verify {path}", "ok"))
    say(str(path))


def _summary(compiled: Compiled) -> list[str]:
    """At most 14 lines, not counting warnings: what is private, and what labels are good for."""
    artifact, certificate = compiled.artifact, compiled.certificate
    privacy, utility = certificate.privacy, certificate.utility
    own = artifact.groups.own_tables
    label = at_most(privacy.epsilon_label_bound, 12)
    loss = f"{utility.noisy_label_loss:.6g} ({utility.loss})"
    if utility.loss_lower_bound is not None:
        loss += f", {near_least(utility.certified_gap)} (proved)"
    lines = [
        _head(compiled),
        fact("ε per label", f"{label} (proved by the integers)"),
        fact(
            "ε of the prior",
            f"{at_most(privacy.epsilon_prior)} (declared), {_SPENT[certificate.prior.kind]}",
        ),
        fact(
            "total ε",
            f"{at_most(privacy.epsilon_total)} (declared) {once_spent(privacy.epsilon_prior)}",
        ),
        *_of_person(certificate),
        *_weak(certificate),
    ]
    if own:
        lines.append(fact("groups", f"declared by {DECLARED_BY} to be public, not proved"))
    else:
        table = readable(artifact.table(0))
        lines += [fact(what, text) for what, text in table.figures() if what != "more labels"]
        lines += prior_hints(table)
    lines.append(fact("noisy label loss", loss))
    lines += _warnings(compiled)
    if artifact.groups.columns and not own:
        lines.append(_one_table(readable(artifact.table(0)), artifact))
    if certificate.insecure:
        lines.append(Marked(fact("warning", certificate.insecure), "warning"))
    return [
        *lines,
        "more: --verbose shows the prior and the proofs, labeldp report the probabilities",
    ]


def _head(compiled: Compiled) -> str:
    artifact, certificate = compiled.artifact, compiled.certificate
    parts = f"{certificate.outputs:,} outputs"
    if artifact.groups.own_tables:
        names = ", ".join(printable(column.name) for column in artifact.groups.columns)
        parts = f"{artifact.groups.tables:,} tables by {names}"
    return (
        f"{certificate.name}: {certificate.mechanism} on {certificate.labels:,} labels, {parts}, "
        f"for goal: {compiled.goal}"
    )


def _warnings(compiled: Compiled) -> list[str]:
    """What limits the use of the labels for the goal, of one table or of all."""
    artifact = compiled.artifact
    whole = artifact if artifact.groups.own_tables else readable(artifact.table(0))
    return [
        Marked(f"warning: {one.text}", "warning")
        for one in relevant(whole.shortcomings, compiled.goal)
        if one.kind != ODD_GROUPS  # said before anything was spent
    ]


def _weak(certificate: Certificate) -> list[str]:
    """That ε protects hardly anybody: of a label, or of a person with all labels."""
    person = person_epsilon(certificate)
    total = rational(certificate.exact.epsilon_total) if person is None else person.total
    return [Marked(fact("warning", text), "warning") for text in weak_promise(total)]


def _of_person(certificate: Certificate) -> list[str]:
    """What a person spends, if the certificate says how many labels one has."""
    person = person_epsilon(certificate)
    if person is None:
        return []
    return [fact("ε per person", f"{person.in_words()}, the prior included (declared)")]


def _details(compiled: Compiled) -> list[str]:
    """What the labels are good for first, then what is proved of them."""
    artifact, certificate = compiled.artifact, compiled.certificate
    if artifact.groups.own_tables:
        return [
            _head(compiled),
            *group_table(artifact, _SHOWN_GROUPS),
            f"groups: declared by {DECLARED_BY} to be public, not proved",
            *_warnings(compiled),
            "privacy, and how near to the best possible, of all groups together:",
            *_proved(certificate, artifact.bias_in_range),
        ]
    decoded = readable(artifact.table(0))
    return [
        _head(compiled),
        *prior_bars(decoded, sys.stderr),
        "use of the private labels:",
        *decoded.use_in_words(),
        *prior_hints(decoded),
        *_warnings(compiled),
        *([_one_table(decoded, artifact)] if artifact.groups.columns else []),
        "privacy, and how near to the best possible:",
        *_proved(certificate, decoded.bias_in_range),
    ]


def _one_table(decoded: Table, artifact: Artifact) -> str:
    """Which groups were asked for and have one table, why, and what would change that."""
    shared = printable(clipped(artifact.groups.name(0), _SHARED_COLUMNS))
    if is_unbiased(decoded.domain, decoded.certificate.utility.largest_bias):
        return (
            f"note: all groups ({shared}) share one table, because unbiased labels gain little "
            "from a prior. Tables by group help with goal: labels, with a bias budget (mechanism: "
            "{kind: optimal_unbiased, bias: {sample_size: N}}), or with a larger ε"
        )
    return (
        f"note: all groups ({shared}) share one table: their histograms differ too little from "
        "noise. More rows, a larger ε, or a larger part of it for the prior (privacy.split) help"
    )


def _proved(certificate: Certificate, bias: float | None) -> list[str]:
    """What the certificate states, and the largest ``bias`` of all labels in the range."""
    privacy, utility = certificate.privacy, certificate.utility
    bound = at_most(privacy.epsilon_label_bound, 12)
    label, once = at_most(privacy.epsilon_label), once_spent(privacy.epsilon_prior)
    lines = [
        f"  ε of the prior   {at_most(privacy.epsilon_prior):<12} {_SPENT[certificate.prior.kind]}",
        f"  ε of a label     {label:<12} the integers give at most {bound}",
        f"  ε in total       {at_most(privacy.epsilon_total):<12} {once}",
        f"  noisy label loss {utility.noisy_label_loss:<12.6g} {utility.loss}, "
        "under the prior in the certificate",
    ]
    lines += [*_of_person(certificate), *_weak(certificate)]
    if bias is not None:
        what = "|E[output | label] − label|, for labels in the range"
        lines.append(f"  largest bias     {at_most(bias, 3):<12} {what}")
    if utility.loss_lower_bound is not None and certificate.optimality is not None:
        over = OVER[certificate.optimality.over]
        lines.append(f"  least possible   {at_least(utility.loss_lower_bound):<12} {over}")
        lines.append(f"  the loss is      {near_least(utility.certified_gap)}")
    if certificate.sets is not None:
        noise = certificate.sets
        lines.append(f"  noise of shares  {noise.noise:<12.6g} variance of one label, all shares")
        lines.append(f"  least possible   {at_least(noise.least_noise):<12} {OVER['any']}")
        lines.append(f"  the noise is     {gap_in_words(noise.gap)}")
    if (utility.certified_gap or 0) > WIDE_GAP:
        lines.append("  note: the solver proved no closer bound at this ε and prior; privacy holds")
    if (
        mechanism_class(certificate.mechanism).certified_labels == math.inf
        and utility.loss != "poisson"
        and certificate.groups is None  # whose tables may have bounds of their own
        and utility.loss_lower_bound is None
    ):
        lines.append("  note: no bound could be proved for this loss, ε and domain; privacy holds")
    if certificate.insecure:
        lines.append(f"  {certificate.insecure}")
    return lines
