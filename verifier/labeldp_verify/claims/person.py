"""What one person spends who has up to L labels, the prior included."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis.composition.compose import MAX_LABELS_PER_USER
from labeldp_verify.checks import agree, demand
from labeldp_verify.claims.certificate import Certificate, PrivatePriorClaims
from labeldp_verify.claims.claim import Claim, Evidence
from labeldp_verify.claims.declaration import Declaration
from labeldp_verify.claims.record import rational
from labeldp_verify.forms import Domain
from labeldp_verify.rounded import at_most


@dataclass(frozen=True)
class PersonClaims:
    """The column of persons, L, and L times what one label spends; ε as "p/q".

    ``epsilon_label_bound`` is L times the smaller of two numbers that the integers prove: ε₂ as it
    is declared, and the bound that is rounded up.

    ``l1_sensitivity`` is what all labels of a person together can change in a private histogram
    of the prior: 2·L, across all groups; 0 if nothing was counted privately.
    """

    column: str
    labels_per_person: int
    l1_sensitivity: int
    epsilon_label: str
    epsilon_label_bound: str
    epsilon_prior: str
    epsilon_total: str


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
        """What the spec's unit of a person makes of ε of a label."""
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


CLAIM = PersonClaim()


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
    """What a certificate says of a person with ``labels`` labels, exactly.

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
    """What a person spends, from the certificate of a verified file; None if it does not say."""
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
