"""The report as one self-contained HTML page: the facts for its template."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeldp_verify import DEFAULT_BUDGET, Budget, Report, check_bytes, read_artifact
from labeldp_verify.analysis import LOSSES as EXACT
from labeldp_verify.analysis import rounds_to_nearest
from labeldp_verify.artifact import Table
from labeldp_verify.budget import naming
from labeldp_verify.claims import (
    Certificate,
    gap_in_words,
    how_near,
    person_epsilon,
)
from labeldp_verify.forms import CategoricalDomain, Domain, are_numbers, sets_of
from labeldp_verify.opening import readable
from labeldp_verify.printable import at_most, clipped
from labeldp_verify.usefulness.estimates import is_unbiased, sample
from labeldp_verify.usefulness.figures import PRIORS
from labeldp_verify.usefulness.shortcomings import relevant
from markupsafe import Markup

from labeldp_compile.check import Judged, LoadedPolicy, judge, judge_artifact
from labeldp_compile.check.verdicts import read_promise, read_run
from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms import KINDS, mechanism_class
from labeldp_compile.page.document import data, name, page, plain, share_data
from labeldp_compile.page.pictures import inline_svg, picture_settings
from labeldp_compile.report.approval import Approval, approval_beside, read_subjects
from labeldp_compile.report.decision import Decision, delta_in_words, excess_of, of_artifact, of_run
from labeldp_compile.report.facts import (
    SHOWN_NOISE,
    heat_map,
    key_figures,
    label_facts,
    overview,
    shown_table,
)
from labeldp_compile.report.plots import (
    Seen,
    matrix_figure,
    moments_figure,
    most_telling,
    posterior_figure,
    posteriors,
    prior_figure,
)
from labeldp_compile.solve.losses import LOSSES
from labeldp_compile.spec.agreement import spec_check

if TYPE_CHECKING:
    from labeldp_verify.signature import PublicKey, Signed


@dataclass(frozen=True)
class Findings:
    """A file and what was found in it.

    Attributes:
        file: its name, without folders.
        report: every check that was performed.
        decoded: domain, integers and certificate, for groups those of the group that is shown; None
            unless all checks hold.
        spec: the text of the spec that the file was checked against, or None.
        signer: SHA-256 (hex) of the public key that the signature was checked with, or None.
        table: the number of the table that is shown.
        approval: who is responsible for the file, if it was stated.
        judged: what ``policy`` says of the file, if there is one.
    """

    file: str
    report: Report
    decoded: Table | None
    spec: str | None
    signer: str | None = None
    table: int = 0
    approval: Approval | None = None
    judged: Judged | None = None
    policy: LoadedPolicy | None = None


def examine(
    path: Path,
    spec: Path | None = None,
    signed: Signed | None = None,
    budget: Budget = DEFAULT_BUDGET,
    group: str | None = None,
    *,
    policy: LoadedPolicy | None = None,
    approval: Path | None = None,
    approver: PublicKey | None = None,
) -> Findings:
    """Verify a file, against a spec and a signature if they are given, and decode it.

    ``group`` is the group to show, as ``find_table`` reads it; by default the one with most rows.
    ``approval`` is the file of the approval, by default the one beside the artifact, if there is
    one; its signature is checked with the key ``approver``.
    A failed check is a finding. Raises InputError if the file or the spec cannot be read, if there
    is no such group, or if verifying the file would exceed the budget.
    """
    data = read_artifact(path)
    source = None if spec is None else read_artifact(spec)
    agreement = None if source is None or spec is None else spec_check(source, spec.parent)
    with naming(path):
        report = check_bytes(data, agreement, signed, budget)
    artifact, decoded, table = report.artifact, None, 0
    if artifact is not None:
        table = shown_table(artifact, path, group)
        decoded = readable(artifact.table(table))
    return Findings(
        file=path.name,
        report=report,
        decoded=decoded,
        spec=None if source is None else source.decode("utf-8", errors="replace"),
        signer=None if signed is None else signed.fingerprint(),
        table=table,
        approval=approval_beside(path, [data], approval, approver),
        judged=None if policy is None else judge_artifact(path, data, report, policy),
        policy=policy,
    )


_TABLE_LABELS, _TABLE_OUTPUTS = 101, 9
_TABLE_GROUPS = 200
_TABLE_SETS, _SET_LABELS = 12, 6
_MOST_TEXT, _COLUMNS = 200_000, 400


def report_page(findings: Findings) -> str:
    """The page; for a file that does not verify, it has the checks and nothing else."""
    decoded = findings.decoded
    facts: dict[str, Any] = {
        "findings": findings,
        "decoded": decoded,
        "delta_words": lambda delta: delta_in_words(Fraction(repr(delta))),
    }
    if decoded is None:
        return page("report/report.html", f"{findings.file}: does not verify", **facts)
    title = f"Privacy report: {decoded.certificate.name}"
    facts["decision"] = _decision(findings)
    with picture_settings():
        facts |= _about(decoded) | _matrix(decoded) | _moments(decoded) | _beliefs(decoded)
        facts |= _groups(findings)
        facts |= _composition(decoded.certificate) | _spec(findings, decoded.certificate)
    return page("report/report.html", title, **facts)


def _decision(findings: Findings) -> Decision:
    """The first screen, of all tables together."""
    artifact, policy = findings.report.artifact, findings.policy
    assert artifact is not None
    return of_artifact(
        artifact,
        findings.signer,
        findings.judged,
        "" if policy is None else policy.rules.name or policy.path.name,
        of_little_use=bool(relevant(artifact.shortcomings, artifact.certificate.goal)),
    )


def _groups(findings: Findings) -> dict[str, Any]:
    """The tables of all groups, and the group that is shown."""
    grouped = findings.report.artifact
    if grouped is None or not grouped.groups.columns:
        return {"grouped": None}
    facts = overview(grouped)
    shown = sorted(facts[:-1], key=lambda one: (-one.rows, one.table))[:_TABLE_GROUPS]
    return {
        "grouped": grouped,
        "drawn": facts[findings.table],
        "group_lines": [*sorted(shown, key=lambda one: one.table), facts[-1]],
        "groups_left_out": len(facts) - 1 - len(shown),
        "whole_bound": Fraction(grouped.certificate.exact.epsilon_label_bound),
        "whole_shortcomings": relevant(grouped.shortcomings, grouped.certificate.goal),
    }


def _about(decoded: Table) -> dict[str, Any]:
    """Facts that all sections share, and the figures of the summary."""
    certificate, domain = decoded.certificate, decoded.domain
    loss, apart = certificate.utility.noisy_label_loss, decoded.usefulness.distance
    return {
        "certificate": certificate,
        "numeric": are_numbers(domain, decoded.randomizer),
        "sets": _sets(decoded),
        "share_gap": None if certificate.sets is None else gap_in_words(certificate.sets.gap),
        "near": how_near(certificate.utility),
        "unbiased": _unbiased(decoded),
        "rounded": rounds_to_nearest(domain),
        "epsilon_bound": Fraction(certificate.exact.epsilon_label_bound),
        "ratio": Fraction(certificate.exact.realised_ratio),
        # If labels are not numbers, from the squared loss, which is half the square.
        "loss_record": LOSSES[certificate.utility.loss],
        "loss_has_bounds": EXACT[certificate.utility.loss].dual is not None,
        "typical_error": math.sqrt(2 * max(loss, 0)) if apart is None else apart.mean,
        "assumed": PRIORS[certificate.prior.kind],
        "key_figures": key_figures(decoded),
        # The mechanism has a lower bound on the loss up to this number of labels.
        "bounded_labels": mechanism_class(certificate.mechanism).certified_labels
        if certificate.mechanism in KINDS
        else 0,
        "shortcomings": relevant(decoded.shortcomings, certificate.goal),
    }


def _matrix(decoded: Table) -> dict[str, Any]:
    heat = heat_map(decoded)
    label = "Heat map: how probable each output is, for each true label"
    return {
        "heat": heat,
        "shown_noise": f"{SHOWN_NOISE:.1%}",
        "matrix": inline_svg(matrix_figure(decoded, heat), "matrix", label),
    }


def _moments(decoded: Table) -> dict[str, Any]:
    """The moments of all labels, or of a sample; categories have none, and no picture."""
    domain, biased = decoded.domain, not _unbiased(decoded)
    facts = label_facts(domain, decoded.randomizer, sample(domain.size, _TABLE_LABELS))
    if facts[0].mean is None:
        return {"labels": facts}
    drawn = moments_figure(decoded, facts, with_bias=biased)
    label = "Mean output and standard deviation for each true label; the numbers are in the table"
    return {"labels": facts, "moments": inline_svg(drawn, "moments", label)}


def _beliefs(decoded: Table) -> dict[str, Any]:
    """The prior, and what an observer learns from an output: the most revealing one, and some."""
    beliefs, weights = posteriors(decoded), decoded.certificate.prior.weights
    shown = most_telling(beliefs)
    drawn = posterior_figure(decoded, beliefs, shown)
    label = "Probabilities of the labels before and after an output"
    svg = inline_svg(drawn, "posterior", label)
    listed = [beliefs.seen[i] for i in sample(len(beliefs.seen), _TABLE_OUTPUTS)]
    drawn = prior_figure(decoded, beliefs.starts, beliefs.prior)
    label = "The share of each label under the prior of the certificate"
    return {
        "prior": inline_svg(drawn, "prior", label),
        "bin_size": beliefs.starts[1] if len(beliefs.prior) < len(weights) else 1,
        "never": sum(1 for weight in weights if not weight),
        "posterior": svg,
        "most_telling": _belief_row(decoded, beliefs.seen[shown]),
        "listed": [_belief_row(decoded, seen) for seen in listed],
    }


def _belief_row(decoded: Table, seen: Seen) -> list[str | Markup]:
    """The beliefs of an observer of one output: a row of the table."""
    output, likeliest = name(seen.value), name(decoded.domain.listed[seen.likeliest])
    probability, before, after = map(share_data, (seen.probability, seen.before, seen.after))
    ratio = data(seen.ratio)
    return [output, probability, _risen(decoded, seen), likeliest, before, after, ratio]


def _risen(decoded: Table, seen: Seen) -> str:
    """Which labels became likelier."""
    first, last, count = seen.risen
    if not count:
        return "none"
    sets = sets_of(decoded.randomizer)
    if sets is not None:
        return _listed(decoded.domain, sets.members(int(seen.value)))
    lowest, highest = (name(decoded.domain.listed[index]) for index in (first, last))
    if count == 1:
        return lowest
    if isinstance(decoded.domain, CategoricalDomain) or count != last - first + 1:
        return f"{count:,} of {decoded.domain.size:,} labels"
    return Markup("{} … {}").format(lowest, highest)


def _listed(domain: Domain, members: list[int]) -> Markup:
    """The labels of a set, up to a maximum."""
    shown = Markup(", ").join(name(domain.listed[y]) for y in members[:_SET_LABELS])
    more = len(members) - _SET_LABELS
    return shown + (f" and {more:,} more" if more > 0 else "")


def _sets(decoded: Table) -> list[tuple[int, Markup]]:
    """Some outputs that are sets of labels, with their labels."""
    sets = sets_of(decoded.randomizer)
    if sets is None:
        return []
    shown = sample(len(sets.blocks), _TABLE_SETS)
    return [(o, _listed(decoded.domain, sets.members(o))) for o in shown]


def _composition(certificate: Certificate) -> dict[str, Any]:
    """The ε that a label spends, which adds up for one person, and ε at δ if it is stated."""
    exact, stated = certificate.exact, certificate.composition
    paid = {"label": Fraction(exact.epsilon_label), "total": Fraction(exact.epsilon_total)}
    facts: dict[str, Any] = {"paid": paid, "stated": stated, "person": person_epsilon(certificate)}
    if stated is None:
        return facts
    rows = [(float(row.delta), Fraction(row.epsilon)) for row in stated.epsilon_at_delta]
    return facts | {"pure": Fraction(stated.epsilon_pure), "at_delta": rows}


def _spec(findings: Findings, certificate: Certificate) -> dict[str, Any]:
    """The text of the spec, if it was given, and the domain as the certificate states it."""
    text, domain = findings.spec, certificate.label.domain
    return {
        "spec_lines": None if text is None else text[:_MOST_TEXT].split("\n"),
        "spec_is_cut": text is not None and len(text) > _MOST_TEXT,
        "domain": {
            key: value
            if isinstance(value, str)
            else clipped(json.dumps(value, ensure_ascii=False), _COLUMNS)
            for key, value in domain.items()
        },
    }


def _unbiased(decoded: Table) -> bool:
    return is_unbiased(decoded.domain, decoded.certificate.utility.largest_bias)


_MOST_SETTING, _MOST_ITEMS = 2_000, 30
_MOST_ON_PAPER = 5_000  # characters of the statement: with more, paper would need a third sheet
_MOST_ROOT = 10**300  # float64 holds it
_LONG_ROOT = re.compile(r"√([0-9]{1,3}(?:,[0-9]{3}){2,})")  # of a whole number from a million


@dataclass(frozen=True)
class RunFindings:
    """The content of a run folder.

    Attributes:
        path: of the folder.
        run: what the trainer read of it.
        promise: its ``privacy.json``, with exact numbers.
        sha256: of that file.
        approval: who is responsible, if it was stated.
        judged: what the policy says, if there is one.
    """

    path: Path
    run: Any
    promise: dict[str, Any]
    sha256: str
    approval: Approval | None
    judged: Judged | None
    policy: LoadedPolicy | None


def examine_run(
    path: Path,
    policy: LoadedPolicy | None = None,
    approval: Path | None = None,
    approver: PublicKey | None = None,
) -> RunFindings:
    """Read a run folder, whose statement must agree with its config. Raises InputError."""
    subjects = read_subjects(path)
    run = read_run(path)
    data, promise = read_promise(path, run)
    if subjects[0] != data or subjects != read_subjects(path):
        raise InputError(f"{path}: changed while it was read")
    return RunFindings(
        path,
        run,
        promise,
        hashlib.sha256(data).hexdigest(),
        approval_beside(path, subjects, approval, approver),
        None if policy is None else judge(path, policy),
        policy,
    )


def run_page(findings: RunFindings) -> str:
    """The page."""
    promise, run, policy = findings.promise, findings.run, findings.policy
    name = "" if policy is None else policy.rules.name or policy.path.name
    units = promise["details"].get("units")
    decision = of_run(
        promise,
        str(run.label),
        findings.approval,
        findings.judged,
        name,
        units=units if type(units) is int and units > 0 else None,
        doubts=[_plain(doubt) for doubt in run.doubts[:_MOST_ITEMS]],
    )
    titles = {
        "mechanism": "Mechanism",
        "released": "Released",
        "secret": "Must stay secret",
        "not_covered": "Not covered",
        "limits": "Limits",
    }
    lists = []
    for key, title in titles.items():
        items = promise.get(key) or []
        items = [items] if isinstance(items, str) else items
        if items:
            lists.append((title, [_plain(item) for item in items[:_MOST_ITEMS]]))
    delta, excess = Fraction(promise["delta"] or 0), excess_of(promise)
    return page(
        "report/run.html",
        f"Privacy report: {clipped(str(run.name), 80)}",
        decision=decision,
        approval=findings.approval,
        judged=findings.judged,
        policy=policy,
        run=run,
        promise=promise,
        adjacency=_plain(promise.get("adjacency") or "not stated"),
        sha256=findings.sha256,
        lists=lists,
        fits_paper=sum(len(item) for _, items in lists for item in items) <= _MOST_ON_PAPER,
        delta_words=delta_in_words(delta) if delta else "",
        excess=None if excess is None else at_most(excess, 3),
    )


def _plain(text: str) -> str:
    """A sentence of the statement; the root of a long number as a number that is not below it."""
    return _LONG_ROOT.sub(_root, clipped(text, _MOST_SETTING))


def _root(match: re.Match[str]) -> str:
    number = int(match[1].replace(",", ""))
    if number > _MOST_ROOT:
        return match[0]
    return f"about {plain(float(number) ** 0.5 * (1 + 1e-3), 3)}"
