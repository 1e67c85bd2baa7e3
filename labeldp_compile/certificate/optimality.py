"""Dual values as exact decimals, moved by a hair so that the verifier can prove their bound.

A solver's duals violate their constraint by rounding. Subtracting the same t from every α adds
t·(k + (e^ε − 1)·|S|) to the verifier's F, S being the labels whose h is negative, so some small t
repairs it at a cost of k·t in the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from labeldp_verify.analysis.absolute_bound import absolute_dual_is_feasible
from labeldp_verify.analysis.bias_rule import BiasRule
from labeldp_verify.analysis.bounds import exp_upper
from labeldp_verify.analysis.loss import Labels, Loss
from labeldp_verify.analysis.lower_bound import bound_value, dual_is_feasible
from labeldp_verify.analysis.zero_one_bound import zero_one_dual_is_feasible
from labeldp_verify.certificate import Optimality

from labeldp_compile.solve.dual_bound import DualBound


@dataclass(frozen=True)
class ProvedBound:
    """A lower bound with its witness, as the certificate holds it."""

    value: Fraction
    alpha: list[str]
    beta: list[str]
    rule: BiasRule

    def witness(self) -> Optimality:
        """The certificate's ``optimality``."""
        return Optimality(self.rule.kind, str(self.rule.amount), self.alpha, self.beta)


def prove_bound(
    dual: DualBound,
    loss: Loss,
    labels: Labels,
    weights: Sequence[int],
    epsilon: Fraction,
    scale: Fraction,
) -> ProvedBound | None:
    """The bound on the squared, absolute or 0-1 loss that the duals prove, or None if nothing.

    ``scale`` is the loss of the randomizer: repairs start at 10^-17 of it and end at its size.
    """
    upper = exp_upper(epsilon)
    # A penalty prices bias by the prior, so β must vanish where the prior does.
    priced = dual.rule.kind == "penalty"
    beta = [
        Decimal(0) if priced and not weight else _decimal(b)
        for b, weight in zip(dual.beta, weights, strict=True)
    ]
    beta_exact = [Fraction(b) for b in beta]
    for exponent in (None, *range(-17, 0)):
        shift = Fraction(0) if exponent is None else scale * Fraction(10) ** exponent / len(beta)
        alpha = [_decimal(float(Fraction(a) - shift)) for a in dual.alpha]
        exact = [Fraction(a) for a in alpha]
        if loss == "zero_one":
            feasible = zero_one_dual_is_feasible(weights, upper, exact)
        elif loss == "absolute":
            feasible = absolute_dual_is_feasible(labels, weights, upper, exact)
        else:
            feasible = dual_is_feasible(labels, weights, upper, exact, beta_exact)
        if feasible:
            numbers = [y if isinstance(y, Fraction) else Fraction(0) for y in labels]
            value = bound_value(numbers, weights, exact, beta_exact, dual.rule)
            if value < 0:  # no loss is negative: such a bound says nothing
                return None
            return ProvedBound(value, [str(a) for a in alpha], [str(b) for b in beta], dual.rule)
    return None


def _decimal(number: float) -> Decimal:
    return Decimal(repr(float(number)))
