"""The result of a verification: the report, its lines for people, and its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis.grid_labels import bias_in_range
from labeldp_verify.artifact import Artifact
from labeldp_verify.claims import (
    DECLARED_BY,
    Certificate,
    PrivatePriorClaims,
    person_epsilon,
    rational,
)
from labeldp_verify.claims.records import FieldLists
from labeldp_verify.claims.utility import OVER, how_near
from labeldp_verify.claims.whole_file import field_lists
from labeldp_verify.errors import Check
from labeldp_verify.forms import CategoricalDomain, Domain, JointDomain, RealDomain
from labeldp_verify.printable import Marked, at_most, clipped, one_line, up_to
from labeldp_verify.steps import LIMITS_CHECK
from labeldp_verify.usefulness.figures import BELIEF

# ---- The answer of ``verify`` in a few lines: what a file is, what it spends, and what it is good
# for.
#
# Each number says whether it is proved, declared, or computed under an assumption. The lists of
# checks and fields are in the long answer (``Report.in_words``).


_NAME_COLUMNS = 40
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


def summary(
    artifact: Artifact, checks: Sequence[Check], sha256: str, *, verbose: bool
) -> list[Line]:
    """The lines on a file whose checks all hold; at most 12 if they are not ``verbose``."""
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
        ("total ε", total),
    ]
    if verbose:
        lines.append(("prior", _prior(certificate)))
    if (person := _person(certificate)) is not None:
        lines.insert(4, ("ε per person", person))
    if certificate.groups is not None:
        columns = (one_line(column.name) for column in certificate.groups.columns)
        names = ", ".join(clipped(column, _NAME_COLUMNS) for column in columns)
        text = f"by {names}: declared public by {DECLARED_BY}, not proved"
        lines.append(("groups", text))
    if artifact.only is not None:
        figures = artifact.only.figures(verbose=False)
        lines += [(name, f"{text}, computed") for name, text in figures if name != BELIEF]
    largest = certificate.exact.largest_bias
    if largest is not None:
        rounding = Fraction(certificate.utility.output_rounding)
        bias = bias_in_range(artifact.label, rational(largest), rounding)
        lines.append(("bias", f"at most {at_most(bias, 2)} (proved)"))
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
        return label, f"{total} (declared); the prior spends nothing"
    total = f"{total} including the prior (declared; {prior} for the prior)"
    return label, f"{total}; more if compile ran more than once"


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
        return f"{prior.kind} (declared)"
    priors = [table.prior for table in certificate.tables]
    rows = sum(one.rows for one in priors if isinstance(one, PrivatePriorClaims))
    mechanism = clipped(one_line(prior.mechanism), _NAME_COLUMNS)
    return f"private: counts {rows:,} rows with {mechanism} noise (declared)"


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
    if use.loss_lower_bound is not None and witnesses:
        text += f", {how_near(use, OVER[witnesses[0].over])}"
    return f"{text} (proved)"


# ---- What a verification found, check by check.


REPORT_FORMAT_VERSION = "1.0"


class VerificationError(Exception):
    """The artifact does not hold what it claims; ``report`` says which check failed."""

    def __init__(self, report: Report) -> None:
        """Keep the report and take the first failed check as the message."""
        failed = next(check for check in report.checks if not check.ok)
        super().__init__(f"{failed.name}: {failed.detail}")
        self.report = report


@dataclass(frozen=True)
class Report:
    """All checks performed on one file.

    ``certificate`` is the file's own, and may only be believed as far as the checks hold;
    ``artifact`` is what the file holds, None unless all of them do. ``sha256`` is of the whole
    file.
    """

    checks: tuple[Check, ...]
    certificate: Certificate | None = field(repr=False)
    artifact: Artifact | None = field(default=None, repr=False)
    sha256: str = ""

    @property
    def ok(self) -> bool:
        """True if every check was performed and holds."""
        return bool(self.checks) and all(check.ok for check in self.checks)

    def require(self) -> Report:
        """Return the report, or raise VerificationError if a check failed."""
        if not self.ok:
            raise VerificationError(self)
        return self

    def verified(self) -> Artifact:
        """The verified artifact; raises VerificationError if a check failed."""
        artifact = self.require().artifact
        assert artifact is not None
        return artifact

    def in_words(self, name: str, *, verbose: bool = False, brief: bool = False) -> list[str]:
        """Lines for people; the verdict is the last.

        Args:
            name: of the file, printable.
            verbose: also every check, the lists of fields, and all figures on use.
            brief: one line and the verdict, for a file among several; failures and warnings are
                shown all the same.
        """
        lines: list[str] = []
        checks = [check for check in self.checks if verbose or not check.ok]
        if self.artifact is not None:
            if brief and not verbose:
                facts = short_summary(self.artifact, self.checks)
            else:
                facts = summary(self.artifact, self.checks, self.sha256, verbose=verbose)
                facts.append(("checks", passed(self.checks)))
            lines += [f"  {what:<17} {text}" for what, text in facts]
        else:
            lines.append(f"  {'checks':<17} {passed(self.checks)}, 1 failed")
        lines += [_line(check) for check in checks]
        if self.artifact is not None:
            if verbose:
                lines += self._details()
            for found in self.artifact.shortcomings:
                lines.append(Marked(f"warning: {found.text}", "warning"))
        return [*lines, self.verdict(name)]

    def verdict(self, name: str) -> str:
        """The last line."""
        if self.ok and self.certificate is not None:
            bound = epsilon_in_words(rational(self.certificate.exact.epsilon_label_bound))
            return Marked(f"{name}: verified. The file proves ε ≤ {bound} per label.", "ok")
        if self.checks and self.checks[-1].name == LIMITS_CHECK:
            return Marked(f"{name}: verified, but NOT WITHIN THE LIMITS that you set.", "failed")
        return Marked(f"{name}: DOES NOT VERIFY. Do not use this file.", "failed")

    def _details(self) -> list[str]:
        """The proved fields, the declared fields, and all figures on use."""
        lists, only = self.fields, None if self.artifact is None else self.artifact.only
        use = [] if only is None else ["use of the private labels:", *only.use_in_words()]
        return [
            f"proved by the file:  {', '.join(lists.proved)}",
            f"only declared in it: {', '.join(lists.declared)}",
            *use,
        ]

    def _epsilon(self) -> dict[str, float] | None:
        if not self.ok or self.certificate is None:
            return None
        privacy = self.certificate.privacy
        return {
            "label_bound": privacy.epsilon_label_bound,
            "label": privacy.epsilon_label,
            "prior": privacy.epsilon_prior,
            "total": privacy.epsilon_total,
        }

    def _person(self) -> dict[str, Any] | None:
        found = person_epsilon(self.certificate) if self.ok and self.certificate else None
        return None if found is None else found.to_json()

    @property
    def fields(self) -> FieldLists:
        """Which fields a file of this kind proves, if all checks hold, and which it declares."""
        return field_lists(self.certificate)

    def to_json(self) -> dict[str, Any]:
        """``{format_version, ok, sha256, name, epsilon, person, checks: [{name, ok, detail}],
        proved, declared, usefulness, warnings}``; name, ε and the last two are null unless all
        checks hold; usefulness is null for tables by group, too, and person if a file does not say
        how many labels one has.
        """
        fields, found = self.fields, self.artifact
        only = None if found is None else found.only
        return {
            "format_version": REPORT_FORMAT_VERSION,
            "ok": self.ok,
            "sha256": self.sha256,
            "name": self.certificate.name if self.ok and self.certificate is not None else None,
            "epsilon": self._epsilon(),
            "person": self._person(),
            "checks": [
                {"name": check.name, "ok": check.ok, "detail": check.detail}
                for check in self.checks
            ],
            "proved": fields.proved if self.ok else [],
            "declared": fields.declared,
            "usefulness": None if only is None else only.use_to_json(),
            "warnings": None if found is None else [asdict(part) for part in found.shortcomings],
        }


def _line(check: Check) -> str:
    line = f"{'ok    ' if check.ok else 'FAILED'} {check.name:<12} {check.detail}"
    return line if check.ok else Marked(line, "failed")
