"""What a certificate states of many labels of one user, held against the integers."""

from dataclasses import dataclass
from fractions import Fraction

from labeldp_verify.analysis.composition.compose import MAX_LABELS_PER_USER, Part, compose_parts
from labeldp_verify.checks import agree, demand, short
from labeldp_verify.claims.claim import Claim, Evidence
from labeldp_verify.claims.declaration import Declaration
from labeldp_verify.claims.record import decimal, rational
from labeldp_verify.rounded import at_most

_ROUNDED_UP = 1 + Fraction(1, 10**20)
DELTAS = ("1e-6", "1e-7", "1e-8", "1e-9", "1e-10")


@dataclass(frozen=True)
class EpsilonAtDelta:
    """(ε, δ) as decimals."""

    delta: str
    epsilon: str


@dataclass(frozen=True)
class CompositionClaims:
    """What one user with ``labels_per_user`` labels spends; ``pair`` names the dominating pair."""

    labels_per_user: int
    epsilon_pure: str
    epsilon_prior: str
    pair: str
    epsilon_at_delta: list[EpsilonAtDelta]


class CompositionClaim(Claim[CompositionClaims]):
    """That several labels of one user spend no more than this."""

    part = "composition"
    record = CompositionClaims
    proved = ("composition.epsilon_pure", "composition.pair", "composition.epsilon_at_delta")
    declared = ("composition.labels_per_user", "composition.epsilon_prior")

    def state(self, found: Evidence, declared: Declaration) -> CompositionClaims | None:
        """What an accountant found; the check proves it."""
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


CLAIM = CompositionClaim()
