"""The first screen of a report, in plain words: whose data, how much, who says so, which policy.

It is for a person who must decide, and has no symbol but ε and at most 120 words (a test counts
them). Numbers follow below it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from labeldp_verify.artifact import Artifact
from labeldp_verify.claims import Certificate, PersonEpsilon, person_epsilon, rational
from labeldp_verify.forms import CategoricalDomain, Domain
from labeldp_verify.printable import at_most, clipped, percent_at_most

from labeldp_compile.check import Judged
from labeldp_compile.report.approval import Approval
from labeldp_compile.weak_promise import LARGE, weak_promise

_NAME_COLUMNS = 24
_SURE = 50  # percent: a guess before anything is seen
_KEY_DIGITS = 8  # of a fingerprint
_MOST_EXPONENT = 60  # beyond it, e^ε has too many digits to be read
_ADD_UP = "Rows of one person add up."
_ANYONE = "Anyone who sees the {}, even someone who knows every other column and every other row."
Verdict = Literal["good", "mind", "bad"]


@dataclass(frozen=True)
class BeliefBar:
    """How sure an observer can become at most, in percent, who was ``before`` percent sure."""

    before: int
    after: str

    @classmethod
    def at(cls, epsilon: Fraction | float) -> BeliefBar:
        """By Bayes' rule, if the odds change by a factor of at most e^ε; rounded up."""
        odds = math.exp(-min(float(epsilon), 700.0))  # of the other values, relative to this one
        share = 1 / (1 + odds * (100 - _SURE) / _SURE)
        return cls(_SURE, percent_at_most(math.nextafter(share, 1), 3).removesuffix("%"))

    @property
    def width(self) -> float:
        """``after`` as a number, for a picture."""
        return float(self.after)


@dataclass(frozen=True)
class Decision:
    """Answers of one or two sentences each."""

    verdict: Verdict
    says: str
    whose: str
    seen_by: str
    how_much: str
    belief: BeliefBar | None
    not_protected: str
    who_says: str
    policy: str

    @property
    def answers(self) -> list[tuple[str, str]]:
        """The questions in the order in which they are read, and their answers."""
        return [
            ("Whose data", self.whose),
            ("Protected from", self.seen_by),
            ("How much", self.how_much),
            ("Not protected", self.not_protected),
            ("Who says so", self.who_says),
            ("Policy", self.policy),
        ]


def of_artifact(
    artifact: Artifact,
    signer: str | None,
    judged: Judged | None,
    policy: str,
    *,
    of_little_use: bool,
) -> Decision:
    """About a verified file. ``signer`` is the key that its signature was checked with.

    ``policy`` is its name, ``judged`` what it says; it may have checked the signature itself.
    """
    findings = () if judged is None else judged.findings
    of_policy = (one.found for one in findings if one.rule == "signed_by" and one.ok)
    signer = signer or next(of_policy, None)
    certificate = artifact.certificate
    person = person_epsilon(certificate)
    epsilon = _total(certificate) if person is None else person.bound + person.prior
    weak = _weak(epsilon)
    verdict, says = _verdict(signer, judged, "file", weak, of_little_use=of_little_use)
    key = None if signer is None else signer[:_KEY_DIGITS]
    worth = "The file proves ε of a value"
    only = [] if person is None else ["how many values a person has"]
    if rational(certificate.exact.epsilon_prior):
        only.append("the ε of the prior")
    if only:
        worth += f"; {' and '.join(only)} {'are' if only[1:] else 'is'} only declared"
    return Decision(
        verdict,
        says,
        _whose(certificate, artifact.label, person),
        "Hardly anyone." if weak else _ANYONE.format("private values"),
        _how_much(epsilon, "row" if person is None else "person"),
        BeliefBar.at(epsilon),
        _not_protected(certificate, person),
        f"{worth}. " + ("Its author is unknown." if key is None else f"Signed with key {key}."),
        _policy(judged, policy),
    )


def of_run(
    promise: dict[str, Any],
    label: str,
    approval: Approval | None,
    judged: Judged | None,
    policy: str,
    *,
    units: int | None = None,
    doubts: Sequence[str] = (),
) -> Decision:
    """About a training run; ``promise`` is its ``privacy.json``, with exact numbers.

    ``units`` is the number of labels or persons that it protects, if that is known; ``doubts`` say
    why its private labels may be true ones.
    """
    signer = approval.signer if approval is not None else None
    epsilon, delta = promise["epsilon"], promise["delta"]
    unit = "person" if promise["details"].get("unit") == "user" else "row"
    whose = f"The value of {_name(label)} in each row."
    if unit == "person":
        whose = f"All values of {_name(label)} of each person."
    weak = "No privacy: this run protects nobody."
    if epsilon is not None:
        weak = _weak(Fraction(epsilon), Fraction(delta or 0), units)
    if doubts:
        weak = f"Not shown to be private. Labels: {'; '.join(doubts)}."
    verdict, says = _verdict(signer, judged, "statement", weak, of_little_use=False)
    return Decision(
        verdict,
        says,
        whose,
        "Nobody." if epsilon is None else "Hardly anyone." if weak else _ANYONE.format("release"),
        "No limit was set."
        if epsilon is None
        else _how_much(Fraction(epsilon), unit) + _rare(Fraction(delta or 0), excess_of(promise)),
        None if epsilon is None else BeliefBar.at(Fraction(epsilon)),
        "Other columns, who is in the table, and tests on true values."
        + (f" {_ADD_UP}" if unit == "row" else ""),
        "The training program; this folder proves nothing. "
        + ("Nobody signed." if signer is None else f"Signed with key {signer[:_KEY_DIGITS]}."),
        _policy(judged, policy),
    )


def delta_in_words(delta: Fraction) -> str:
    """A small probability as people say it: one in N, never smaller than it is."""
    return f"1 in {math.floor(1 / delta):,}"


def excess_of(promise: dict[str, Any]) -> Fraction | None:
    """The stated bound of Pr[privacy loss > ε]; None if there is none, or it is impossible."""
    stated = promise["details"].get("loss_above_epsilon")
    bound = stated.get("at_most") if isinstance(stated, dict) else None
    if isinstance(bound, bool) or not isinstance(bound, int | Decimal):
        return None
    return Fraction(bound) if Fraction(promise["delta"] or 0) <= bound <= 1 else None


def _weak(epsilon: Fraction, delta: Fraction = Fraction(0), units: int | None = None) -> str:
    """Why a promise protects hardly anybody, as ``weak_promise`` finds it; empty if it protects."""
    if not weak_promise(epsilon, delta, units):
        return ""
    why = "this promise allows publishing some values as they are"
    if epsilon > LARGE:
        why = "a guess that was 1 percent likely can rise to over 99 percent"
    return f"Hardly any protection: {why}."


def _verdict(
    signer: str | None, judged: Judged | None, what: str, weak: str, *, of_little_use: bool
) -> tuple[Verdict, str]:
    """Green only with a policy that is met and a signature that was checked."""
    if judged is not None and not judged.ok:
        return "bad", "It does not meet the policy."
    if weak:
        return "bad", weak
    if signer is not None and judged is not None:
        says = f"Verified: the {what} is signed, and meets the policy."
    elif signer is not None:
        says = f"Verified: the {what} is signed."
    elif judged is not None:
        says = "Consistent, and meets the policy. No signature was checked."
    else:
        says = "Consistent. No signature was checked."
    if of_little_use:
        return "mind", f"{says} Of limited use."
    return "good" if signer is not None and judged is not None else "mind", says


def _total(certificate: Certificate) -> Fraction:
    """The most that a value spends: the proved bound, and the declared ε of the prior."""
    exact = certificate.exact
    return rational(exact.epsilon_label_bound) + rational(exact.epsilon_prior)


def _whose(certificate: Certificate, domain: Domain, person: PersonEpsilon | None) -> str:
    columns = " and ".join(map(_name, certificate.label_columns))
    if not isinstance(domain, CategoricalDomain):
        columns += f" ({domain.min:g} to {domain.max:g})"
    if person is None:
        return f"The value of {columns} in each row."
    whose = "person" if person.column is None else _name(person.column)
    return f"Up to {person.labels:,} values of {columns} of each {whose}."


def _how_much(epsilon: Fraction, unit: str) -> str:
    belief = BeliefBar.at(epsilon)
    odds = f"; odds grow at most {_times(epsilon)} times" if epsilon <= _MOST_EXPONENT else ""
    return (
        f"ε is at most {at_most(epsilon, 4)} per {unit}: a {belief.before} percent guess can rise "
        f"to {belief.after} percent at most{odds}."
    )


def _rare(delta: Fraction, excess: Fraction | None) -> str:
    """How likely outcomes are that say more than ε allows (Theorem 20)."""
    if not delta:
        return ""
    if excess is not None:
        return f" Outcomes that say more have a probability of at most {delta_in_words(excess)}."
    return f" Outcomes that say twice as much are rarer than {delta_in_words(2 * delta)}."


def _not_protected(certificate: Certificate, person: PersonEpsilon | None) -> str:
    nulls = certificate.parts.get("nulls")
    parts = ["Other columns", "who is in the table"]
    if nulls is not None and nulls.pattern == "public":
        parts.append("which rows have no value")
    parts.append("kept originals")
    text = f"{', '.join(parts[:-1])}, and {parts[-1]}."
    return text if person is not None else f"{text} {_ADD_UP}"


def _policy(judged: Judged | None, policy: str) -> str:
    if judged is None:
        return "No policy was applied."
    count, failed = len(judged.findings), len(judged.failed)
    if failed:
        return f"Not met: {failed} of {count} rules of {_name(policy)}."
    return f"Met: all {count} rules of {_name(policy)}."


def _times(epsilon: Fraction) -> str:
    """e^ε, rounded up, without an exponent."""
    factor = math.exp(epsilon)
    return at_most(factor, 3) if factor < 1_000 else f"{math.ceil(factor):,}"


def _name(text: str) -> str:
    """A name from a file: short, of letters, digits and marks that names of columns have."""
    return re.sub(r"[^\w .,()%/&€$£-]", "\N{REPLACEMENT CHARACTER}", clipped(text, _NAME_COLUMNS))
