"""The certificate's ``composition``: what one user with several labels pays."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from labeldp_verify.certificate import CompositionClaims, EpsilonAtDelta
from labeldp_verify.composition import DELTAS
from labeldp_verify.forms import Randomizer

from labeldp_compile.composition.compose import compose

_UPWARDS = Context(prec=30, rounding=ROUND_CEILING)


def composition_statement(
    randomizer: Randomizer, labels_per_user: int, epsilon_label: Fraction, epsilon_prior: Fraction
) -> CompositionClaims:
    """The pure figure, L·ε₁ of the prior, and ε at five δ, none of them above L·ε₂."""
    composition = compose([randomizer], labels_per_user)
    pure = labels_per_user * epsilon_label
    at = []
    for delta in DELTAS:
        epsilon = composition.epsilon(Decimal(delta))
        if epsilon is None or Fraction(epsilon) >= pure:
            epsilon = _UPWARDS.divide(Decimal(pure.numerator), Decimal(pure.denominator))
        at.append(EpsilonAtDelta(delta, format(epsilon.normalize(), "f")))
    return CompositionClaims(
        labels_per_user=labels_per_user,
        epsilon_pure=str(pure),
        epsilon_prior=str(labels_per_user * epsilon_prior),
        pair="table" if composition.exact.own_tables else "randomized response",
        epsilon_at_delta=at,
    )
