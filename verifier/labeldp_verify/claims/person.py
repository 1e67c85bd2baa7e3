"""The ε of one user or person who has several labels, the prior included."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis.composition import MAX_LABELS_PER_USER, Part, compose_parts
from labeldp_verify.claims.claim import Claim, Evidence
from labeldp_verify.claims.records import (
    Certificate,
    CompositionClaims,
    Declaration,
    PersonClaims,
    PrivatePriorClaims,
)
from labeldp_verify.errors import agree, demand, short
from labeldp_verify.forms import Domain
from labeldp_verify.printable import at_most
from labeldp_verify.strict import decimal, rational

# ---- What a certificate states of many labels of one user, held against the integers.


_ROUNDED_UP = 1 + Fraction(1, 10**20)
DELTAS = ("1e-6", "1e-7", "1e-8", "1e-9", "1e-10")


class CompositionClaim(Claim[CompositionClaims]):
    """That several labels of one user spend no more than this."""

    part = "composition"
    record = CompositionClaims
    proved = ("composition.epsilon_pure", "composition.pair", "composition.epsilon_at_delta")
    declared = ("composition.labels_per_user", "composition.epsilon_prior")

    def state(self, found: Evidence, declared: Declaration) -> CompositionClaims | None:
        """The ε of an accountant; the check proves it."""
        return declared.composition

    def check(self, found: Evidence) -> str:
        """Prove every stated ε(δ)."""
        part = tuple(found.integers.tables), max(found.ratios)
        stated = found.certificate.composition
        assert stated is not None
        labels, at = stated.labels_per_user, stated.epsilon_at_delta
        demand(1 <= labels <= MAX_LABELS_PER_USER, f"{labels} labels per user are out of range")
        exact = found.certificate.exact
        pure = labels * rational(exact.epsilon_label)
        agree(found.certificate, "composition.epsilon_pure", str(pure))
        prior = labels * rational(exact.epsilon_prior)
        agree(found.certificate, "composition.epsilon_prior", str(prior))
        demand(
            [row.delta for row in at] == list(DELTAS),
            "the composition states other values of δ than the format has",
        )
        composed = compose_parts([Part(*part, labels)])
        pair = "table" if composed.own_tables else "randomized response"
        agree(found.certificate, "composition.pair", pair)
        for row in at:
            delta, epsilon = Fraction(decimal(row.delta)), Fraction(decimal(row.epsilon))
            demand(epsilon >= 0, "the composition states a negative ε")
            # L·ε₂ has no end as a decimal: it may be rounded up.
            demand(
                epsilon <= pure * _ROUNDED_UP, "the composition states a larger ε than without δ"
            )
            # L·ε₂-DP is (L·ε₂, 0)-DP; everything smaller needs its proof.
            holds = epsilon >= pure or composed.delta(epsilon) <= delta
            bound = f"({short(row.epsilon)}, {short(row.delta)})"
            demand(holds, f"{labels} labels of one user are not shown to be {bound}-DP")
        last = at[0]
        return (
            f"{labels} labels of one user spend {at_most(pure)} without δ, and the integers prove "
            f"ε ≤ {last.epsilon} at δ = {last.delta} (and {len(at) - 1} more)"
        )


# ---- What one person spends who has up to L labels, the prior included.


class PersonClaim(Claim[PersonClaims]):
    """That L labels of one person, and the prior, spend no more than this."""

    part = "person"
    record = PersonClaims
    proved = ("person.epsilon_label_bound",)
    declared = (
        "person.column",
        "person.labels_per_person",
        "person.l1_sensitivity",
        "person.epsilon_label",
        "person.epsilon_prior",
        "person.epsilon_total",
    )

    def state(self, found: Evidence, declared: Declaration) -> PersonClaims | None:
        """The ε of a person from that of a label, by the spec's unit."""
        if declared.person_column is None or declared.labels_per_user is None:
            return None
        return _derived(found.certificate, declared.person_column, declared.labels_per_user)

    def require(self, certificate: Certificate, domain: Domain) -> None:
        """Check that a person is no label, and that both claims on many labels are about L."""
        stated = certificate.person
        if stated is None:
            return
        labels = stated.labels_per_person
        demand(1 <= labels <= MAX_LABELS_PER_USER, f"{labels} labels per person are out of range")
        demand(stated.column != "", "the column of persons has no name")
        demand(stated.column not in certificate.label_columns, "the person is the label itself")
        composition = certificate.composition
        demand(
            composition is None or composition.labels_per_user == labels,
            "the composition is of another number of labels than a person has",
        )

    def check(self, found: Evidence) -> str:
        """Every number is L times that of a label, which other steps hold to the integers."""
        stated = found.certificate.person
        assert stated is not None
        derived = _derived(found.certificate, stated.column, stated.labels_per_person)
        for name, value in vars(derived).items():
            agree(found.certificate, f"person.{name}", value)
        return (
            f"{stated.labels_per_person:,} labels of one person spend ε ≤ "
            f"{at_most(rational(stated.epsilon_label_bound))} by the integers, and "
            f"{at_most(rational(stated.epsilon_total))} with the prior (declared)"
        )


def _derived(certificate: Certificate, column: str, labels: int) -> PersonClaims:
    """The claims that the numbers of one label make, exactly."""
    exact, priors = certificate.exact, [table.prior for table in certificate.tables]
    counted = [one.l1_sensitivity for one in priors if isinstance(one, PrivatePriorClaims)]
    label, bound, prior = (
        labels * rational(text)
        for text in (exact.epsilon_label, exact.epsilon_label_bound, exact.epsilon_prior)
    )
    bound = min(bound, label)  # the step privacy proves both
    return PersonClaims(
        column=column,
        labels_per_person=labels,
        l1_sensitivity=labels * max(counted, default=0),
        epsilon_label=str(label),
        epsilon_label_bound=str(bound),
        epsilon_prior=str(prior),
        epsilon_total=str(label + prior),
    )


@dataclass(frozen=True)
class PersonEpsilon:
    """The exact ε of a person with ``labels`` labels, from a certificate.

    Attributes:
        column: of persons; None where the certificate only counts labels (``labels_per_user``).
        labels: L.
        label: L·ε₂, of the declared ε₂.
        bound: what the integers prove of L labels.
        prior: L·ε₁, declared.
        at_delta: (δ, ε) of all labels and the prior together, where that ε is below ``total``; δ as
            the text in the certificate.
    """

    column: str | None
    labels: int
    label: Fraction
    bound: Fraction
    prior: Fraction
    at_delta: tuple[tuple[str, Fraction], ...]

    @property
    def total(self) -> Fraction:
        """ε of a person: all labels and the prior, without δ."""
        return self.label + self.prior

    @property
    def smallest(self) -> tuple[str, Fraction] | None:
        """(δ, ε) of the least ε that is proved for the labels; None if none is below ``total``."""
        return min(self.at_delta, key=lambda pair: pair[1], default=None)

    def to_json(self) -> dict[str, Any]:
        """For reading, in float64: ``{column, labels_per_person, epsilon_label, …}``."""
        at = [
            {"delta": float(delta), "epsilon": float(epsilon)} for delta, epsilon in self.at_delta
        ]
        return {
            "column": self.column,
            "labels_per_person": self.labels,
            "epsilon_label": float(self.label),
            "epsilon_label_bound": float(self.bound),
            "epsilon_prior": float(self.prior),
            "epsilon_total": float(self.total),
            "epsilon_at_delta": at,
        }

    def in_words(self) -> str:
        """The total, and what is proved with δ."""
        text = f"ε = {at_most(self.total)} for {self.labels:,} labels"
        if self.smallest is None:
            return text
        delta, epsilon = self.smallest
        return f"{text}, or ε = {at_most(epsilon)} at δ = {delta}"


def person_epsilon(certificate: Certificate) -> PersonEpsilon | None:
    """The ε of a person, from the certificate of a verified file; None if it does not say."""
    person, composition = certificate.person, certificate.composition
    if person is not None:
        column, labels = person.column, person.labels_per_person
    elif composition is not None:
        column, labels = None, composition.labels_per_user
    else:
        return None
    found = _derived(certificate, column or "", labels)
    total, prior = rational(found.epsilon_total), rational(found.epsilon_prior)
    stated = [] if composition is None else composition.epsilon_at_delta
    at = [(row.delta, Fraction(row.epsilon) + prior) for row in stated]
    return PersonEpsilon(
        column=column,
        labels=labels,
        label=rational(found.epsilon_label),
        bound=rational(found.epsilon_label_bound),
        prior=prior,
        at_delta=tuple((delta, epsilon) for delta, epsilon in at if epsilon < total),
    )
