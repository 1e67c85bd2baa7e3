"""The answer of ``verify`` in a few lines: what a file is, what it spends, and what it is good for.

Each number says whether it is proved, declared, or computed under an assumption. The lists of
checks and fields are in the long answer (``report.py``).
"""

from collections.abc import Sequence
from fractions import Fraction

from labeldp_verify.analysis.range_bias import bias_in_words
from labeldp_verify.artifact import Artifact
from labeldp_verify.checks import Check
from labeldp_verify.claims import (
    DECLARED_BY,
    Certificate,
    PrivatePriorClaims,
    person_epsilon,
    rational,
)
from labeldp_verify.claims.lower_bound import OVER, excess, near_least
from labeldp_verify.forms import CategoricalDomain, Domain, JointDomain, RealDomain
from labeldp_verify.printable import clipped, one_line
from labeldp_verify.rounded import up_to

_NAME_COLUMNS = 40
_MEASURES = {"one private label": "private label", "a mean": "mean", "a share": "share"}
_FROM_INTEGERS = "computed from the proved integers"
Line = tuple[str, str]  # what, in words


def epsilon_in_words(number: Fraction | float) -> str:
    """An upper bound in at most six decimals, not below the number."""
    return up_to(number).rstrip("0").rstrip(".")


def short_summary(artifact: Artifact, checks: Sequence[Check]) -> list[Line]:
    """One line on a file among several."""
    certificate = artifact.certificate
    label, total = _epsilons(certificate)
    name = clipped(one_line(certificate.name), _NAME_COLUMNS)
    text = f"{name} (declared); ε per label {label}; total ε {total}"
    if (person := _person(certificate)) is not None:
        text += f"; ε per person {person}"
    if certificate.groups is not None:
        text += f"; groups declared public by {DECLARED_BY}, not proved"
    return [("file", f"{text}; {passed(checks)}")]


def summary(artifact: Artifact, checks: Sequence[Check], sha256: str) -> list[Line]:
    """The lines on a file whose checks all hold; at most 12."""
    certificate = artifact.certificate
    label, total = _epsilons(certificate)
    name, mechanism = (
        clipped(one_line(text), _NAME_COLUMNS) for text in (certificate.name, certificate.mechanism)
    )
    lines = [
        ("file", f"{name}, by {mechanism} (declared); format {certificate.format_version}"),
        ("labels", f"{_domain(artifact.label)}; {certificate.outputs:,} outputs (proved)"),
        ("sha256", sha256),
        ("ε per label", label),
        ("total ε", f"{total}; {_prior(certificate)}"),
    ]
    if (person := _person(certificate)) is not None:
        lines.insert(4, ("ε per person", person))
    if certificate.groups is not None:
        columns = (one_line(column.name) for column in certificate.groups.columns)
        names = ", ".join(clipped(column, _NAME_COLUMNS) for column in columns)
        text = f"by {names}: declared public by {DECLARED_BY}, not proved"
        lines.append(("groups", text))
    if artifact.only is not None:
        figures = artifact.only.figures()
        lines += [
            (_MEASURES[what], f"{text}; {_FROM_INTEGERS}")
            for what, text in figures
            if what in _MEASURES
        ]
    largest = certificate.exact.largest_bias
    if largest is not None:
        rounding = Fraction(certificate.utility.output_rounding)
        words = bias_in_words(artifact.label, rational(largest), rounding)
        lines.append(("bias", f"{words} (proved)"))
    lines.append(("loss", _loss(certificate)))
    signature = [check.detail for check in checks if check.name == "signature"]
    lines.append(("signature", (signature or ["not checked (no --public-key)"])[0]))
    return lines


def passed(checks: Sequence[Check]) -> str:
    """How many checks hold."""
    return f"{sum(check.ok for check in checks)} checks passed"


def _epsilons(certificate: Certificate) -> tuple[str, str]:
    """ε of a label and in total."""
    exact = certificate.exact
    bound, declared, prior, total = (
        epsilon_in_words(rational(text))
        for text in (
            exact.epsilon_label_bound,
            exact.epsilon_label,
            exact.epsilon_prior,
            exact.epsilon_total,
        )
    )
    label = f"at most {bound} (proved), {declared} (declared)"
    if not rational(exact.epsilon_prior):
        return label, f"{total} (declared)"
    total = f"at least {total} (declared) for a label that the prior was counted from"
    return label, f"{total}, {prior} of it for the prior"


def _person(certificate: Certificate) -> str | None:
    """ε of a person, beside that of a label; None if the file does not say."""
    person = person_epsilon(certificate)
    if person is None:
        return None
    column = ""
    if person.column is not None:
        column = f" in {clipped(one_line(person.column), _NAME_COLUMNS)}"
    text = (
        f"at most {epsilon_in_words(person.bound)} (proved) for the labels of a person with up to "
        f"{person.labels:,} labels{column} (declared); {epsilon_in_words(person.total)} (declared) "
        "with the prior"
    )
    if person.smallest is not None:
        delta, epsilon = person.smallest
        text += f", {epsilon_in_words(epsilon)} at δ = {delta}"
    return text


def _prior(certificate: Certificate) -> str:
    """How the prior was obtained."""
    prior = certificate.prior
    if not isinstance(prior, PrivatePriorClaims):
        return f"the prior is {prior.kind} and spends nothing"
    priors = [table.prior for table in certificate.tables]
    rows = sum(one.rows for one in priors if isinstance(one, PrivatePriorClaims))
    mechanism = clipped(one_line(prior.mechanism), _NAME_COLUMNS)
    return f"the prior counts {rows:,} rows with {mechanism} noise (declared)"


def _domain(domain: Domain) -> str:
    count = f"{domain.size:,}"
    if isinstance(domain, JointDomain):
        return f"{count} combinations of {len(domain.parts)} columns"
    if isinstance(domain, CategoricalDomain):
        return f"{count} categories"
    if isinstance(domain, RealDomain):
        return f"numbers from {domain.min:g} to {domain.max:g} on a grid of {count} points"
    return f"{count} integers from {domain.min} to {domain.max}"


def _loss(certificate: Certificate) -> str:
    """The noisy label loss, and how near it is to the least possible."""
    use = certificate.utility
    text = f"{use.noisy_label_loss:.6g} ({use.loss}) under the stated prior"
    witnesses = [t.optimality for t in certificate.tables if t.optimality is not None]
    if use.certified_gap is not None and witnesses:
        text += f", {near_least(excess(use.certified_gap), OVER[witnesses[0].over])}"
    return f"{text} (proved)"
