"""From a randomizer and its provenance to the certificate."""

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from labeldp_verify.analysis import (
    LOSSES,
    Labels,
    Loss,
    bound_value,
    dual_is_feasible,
    exp_upper,
    radii_of,
    radius_bound,
    unbiased_tolerance,
)
from labeldp_verify.claims import (
    Certificate,
    Declaration,
    Optimality,
    RadiusOptimality,
    TableStatement,
    Witness,
    state_certificate,
    use_of,
)
from labeldp_verify.forms import Domain, ExactNumbers, Integers, Randomizer, check_groups

from labeldp_compile.mechanisms.mechanism import DualBound, RadiusBound
from labeldp_compile.prior.priors import TablePrior


class ProvedBound(NamedTuple):
    """A lower bound on the loss, with the witness in the certificate."""

    witness: Witness
    value: Fraction


def build_certificate(
    integers: Integers,
    loss: Loss,
    provenance: Declaration,
    priors: Sequence[TablePrior],
    bounds: Sequence[DualBound | RadiusBound | None],
) -> Certificate:
    """The certificate of integers, for each of the tables [T + 1] and for all together.

    Each table has a prior, and a witness of a bound on its loss if there is one. ``provenance``
    holds the prior of the last table, which is for all rows without another table.

    Raises ValueError if a table is not ε₂-DP, so that nothing uncertified is ever written. Raises
    it also if the parts do not fit together.
    """
    groups = integers.groups
    check_groups(groups)
    if not len(priors) == len(integers.tables) == groups.tables:
        raise ValueError("every table needs integers, a size and a prior")
    sizes = [prior.size if groups.columns else 1 for prior in priors]
    if sum(sizes) <= 0:
        raise ValueError("at least one group must have rows")
    if {provenance.column, *provenance.columns} & {column.name for column in groups.columns}:
        raise ValueError("the group cannot be the label: its table would disclose the label")
    if provenance.prior != priors[-1].statement:
        raise ValueError("the prior must be that of the last table")
    if provenance.composes and provenance.labels_per_user is not None:
        from labeldp_compile.composition import composition_statement  # noqa: PLC0415

        composition = composition_statement(
            integers.tables,
            provenance.labels_per_user,
            provenance.epsilon_label,
            provenance.epsilon_prior,
        )
        provenance = replace(provenance, composition=composition)
    stated = []
    for randomizer, size, prior, dual in zip(integers.tables, sizes, priors, bounds, strict=True):
        proved = _proved(integers.label, randomizer, loss, provenance, prior, dual)
        priced = isinstance(dual, DualBound) and dual.rule.kind in ("max", "penalty")
        stated.append(TableStatement(size, prior.statement, proved, lists_biases=priced))
    return state_certificate(integers, loss, provenance, stated)


def _proved(
    domain: Domain,
    randomizer: Randomizer,
    loss: Loss,
    provenance: Declaration,
    prior: TablePrior,
    dual: DualBound | RadiusBound | None,
) -> ProvedBound | None:
    """The bound that a table's witness proves, if any."""
    labels, weights, epsilon = domain.labels(), prior.weights, provenance.epsilon_label
    if isinstance(dual, RadiusBound):
        return prove_radii(dual, loss, labels, weights, epsilon)
    if dual is None:
        return None
    use = use_of(domain, randomizer, loss, provenance.losses, weights)
    if not _belongs(dual, labels, use.biases):
        return None
    return prove_bound(dual, loss, labels, weights, epsilon, use.loss[0])


def _belongs(dual: DualBound, labels: Labels, bias: ExactNumbers | None) -> bool:
    """Whether the randomizer is of the class of the bound; with short words it may not be."""
    if dual.rule.kind not in ("unbiased", "max"):
        return True
    most = unbiased_tolerance(labels) if dual.rule.kind == "unbiased" else dual.rule.amount
    return bias is not None and bias.largest() <= most


# Dual values as exact decimals, shifted slightly so that the verifier can prove their bound.
#
# A solver's duals violate their constraint by rounding. Subtracting the same t from every α adds
# t·(k + (e^ε − 1)·|S|) to the verifier's F, where S is the set of labels whose h is negative. So a
# small t repairs the constraint and lowers the bound by k·t.


def prove_bound(
    dual: DualBound,
    loss: Loss,
    labels: Labels,
    weights: Sequence[int],
    epsilon: Fraction,
    scale: Fraction,
) -> ProvedBound | None:
    """The bound on the squared, absolute or 0-1 loss that the duals prove, or None.

    ``scale`` is the loss of the randomizer: repairs start at 10^-17 of it and grow to its size.
    """
    upper = exp_upper(epsilon)
    # A penalty prices bias by the prior, so β must vanish where the prior does.
    priced = dual.rule.kind == "penalty"
    beta = [
        Decimal(0) if priced and not weight else _decimal(b)
        for b, weight in zip(dual.beta, weights, strict=True)
    ]
    beta_exact, duals = ExactNumbers.of(beta), ExactNumbers.of(dual.alpha)
    # Categories are no numbers, and the 0-1 loss needs none.
    numbers = ExactNumbers.of([0] * len(labels) if LOSSES[loss].equality else labels)
    for exponent in (None, *range(-17, 0)):
        shift = Fraction(0) if exponent is None else scale * Fraction(10) ** exponent / len(beta)
        alpha = [_decimal(number) for number in _lowered(duals, shift)]
        exact = ExactNumbers.of(alpha)
        if dual_is_feasible(numbers, weights, upper, exact, beta_exact, loss):
            value = bound_value(numbers, weights, exact, beta_exact, dual.rule)
            if value < 0:  # no loss is negative: such a bound says nothing
                return None
            sides = [[str(number) for number in side] for side in (alpha, beta)]
            witness = Optimality(dual.rule.kind, str(dual.rule.amount), *sides)
            return ProvedBound(witness, value)
    return None


_RADIUS_STEPS = 2**40  # of the range of the labels, rounded up to a power of two


def prove_radii(
    dual: RadiusBound, loss: Loss, labels: Labels, weights: Sequence[int], epsilon: Fraction
) -> ProvedBound | None:
    """The bound on the squared or absolute loss that radii prove, or None.

    Radii that are rounded down still prove a bound, except for the rounding in which they were
    found. So they are made smaller, first by 10^-12 of their size, and at most by 10^-6.
    """
    y = ExactNumbers.of(labels)
    unit = Fraction(2) ** _power_above(y[-1] - y[0]) / _RADIUS_STEPS
    upper = exp_upper(epsilon)
    for exponent in (None, *range(-12, -5)):
        scale = (1 if exponent is None else 1 - Fraction(10) ** exponent) / unit
        steps = [min(math.floor(Fraction(r) * scale), _RADIUS_STEPS) for r in dual.radii]
        every = radii_of(dual.knots, steps, len(y)).astype(object)
        radii = ExactNumbers(every * unit.numerator, unit.denominator)
        value = radius_bound(y, weights, upper, radii, loss)
        if value is not None:
            witness = RadiusOptimality("any", "0", str(unit), list(dual.knots), steps)
            return ProvedBound(witness, value) if value else None
    return None


def _power_above(number: Fraction) -> int:
    """The least whole e with 2^e ≥ number, or one more."""
    return number.numerator.bit_length() - number.denominator.bit_length() + 1


def _lowered(duals: ExactNumbers, shift: Fraction) -> list[float]:
    """[k] the float64 nearest to each dual value less the shift."""
    unit = duals.unit * shift.denominator
    by = shift.numerator * duals.unit
    return [(number * shift.denominator - by) / unit for number in duals.numerators.tolist()]


def _decimal(number: float) -> Decimal:
    return Decimal(repr(float(number)))
