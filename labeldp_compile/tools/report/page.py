"""The report as one self-contained HTML page: the facts for its template."""

import json
import math
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis import rounds_to_nearest
from labeldp_verify.artifact import Table
from labeldp_verify.claims import (
    Certificate,
    excess,
    field_lists,
    gap_in_words,
    near_least,
    person_epsilon,
)
from labeldp_verify.forms import CategoricalDomain, Domain, are_numbers, sets_of
from labeldp_verify.printable import clipped
from labeldp_verify.reading.figures import PRIORS
from labeldp_verify.reading.shortcomings import relevant
from labeldp_verify.reading.usefulness import is_unbiased, sample
from markupsafe import Markup

from labeldp_compile.mechanisms import KINDS, mechanism_class
from labeldp_compile.tools.inspection.facts import label_facts
from labeldp_compile.tools.inspection.heat_map import SHOWN_NOISE, heat_map
from labeldp_compile.tools.inspection.overview import overview
from labeldp_compile.tools.page.document import page
from labeldp_compile.tools.page.numbers import data, name, share_data
from labeldp_compile.tools.page.pictures import inline_svg, picture_settings
from labeldp_compile.tools.report.decision import Decision, delta_in_words, of_artifact
from labeldp_compile.tools.report.findings import Findings
from labeldp_compile.tools.report.plots import (
    matrix_figure,
    moments_figure,
    posterior_figure,
    prior_figure,
)
from labeldp_compile.tools.report.posterior import Seen, most_telling, posteriors

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
        "near": near_least(excess(certificate.utility.certified_gap or 0)),
        "unbiased": _unbiased(decoded),
        "rounded": rounds_to_nearest(domain),
        "epsilon_bound": Fraction(certificate.exact.epsilon_label_bound),
        "ratio": Fraction(certificate.exact.realised_ratio),
        # If labels are not numbers, from the squared loss, which is half the square.
        "typical_error": math.sqrt(2 * max(loss, 0)) if apart is None else apart.mean,
        "assumed": PRIORS[certificate.prior.kind],
        "proved": field_lists(certificate).proved,
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
    found, weights = posteriors(decoded), decoded.certificate.prior.weights
    shown = most_telling(found)
    drawn = posterior_figure(decoded, found, shown)
    label = "Probabilities of the labels before and after an output"
    svg = inline_svg(drawn, "posterior", label)
    drawn = prior_figure(decoded, found.starts, found.prior)
    label = "The share of each label under the prior of the certificate"
    return {
        "prior": inline_svg(drawn, "prior", label),
        "bin_size": found.starts[1] if len(found.prior) < len(weights) else 1,
        "never": sum(1 for weight in weights if not weight),
        "posterior": svg,
        "most_telling": _told(decoded, found.seen[shown]),
        "listed": [_told(decoded, found.seen[i]) for i in sample(len(found.seen), _TABLE_OUTPUTS)],
    }


def _told(decoded: Table, seen: Seen) -> list[str | Markup]:
    """What an observer learns from one output: a row of the table."""
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
