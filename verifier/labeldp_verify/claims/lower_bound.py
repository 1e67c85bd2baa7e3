"""The lower bound that a certificate's dual values prove, and its class of randomizers."""

import math
from collections.abc import Sequence
from fractions import Fraction

from labeldp_verify.analysis.analysis import Loss
from labeldp_verify.analysis.bounds import exp_bounds
from labeldp_verify.analysis.lower_bound import (
    BiasRule,
    bound_value,
    dual_is_feasible,
    unbiased_tolerance,
)
from labeldp_verify.analysis.radii import radii_of, radius_bound
from labeldp_verify.analysis.range_bias import rounds_to_nearest
from labeldp_verify.checks import CheckFailedError, demand
from labeldp_verify.claims.certificate import Certificate, Optimality, RadiusOptimality, Witness
from labeldp_verify.claims.record import decimal, rational
from labeldp_verify.claims.use import agree_on, bound_facts
from labeldp_verify.cost import charge_duals, charge_radii
from labeldp_verify.forms import Domain
from labeldp_verify.forms.exact_numbers import ExactNumbers
from labeldp_verify.rounded import at_most

OVER = {
    "unbiased": "of all ε-DP unbiased randomizers",
    "max": "of all ε-DP randomizers within the bias",
    "penalty": "of all ε-DP randomizers, for loss plus penalty",
    "any": "of all ε-DP randomizers",
}
_SMALL = 0.01  # excess that is printed as such, and not as a factor


def excess(certified_gap: float) -> Fraction | None:
    """How far a loss is above its lower bound, in units of the bound: (1 + excess)·bound ≥ loss.

    The certificate's gap is in units of the loss. None if the bound is 0, or nearly so.
    """
    gap = Fraction(math.nextafter(certified_gap, math.inf) if certified_gap else 0)
    return gap / (1 - gap) if gap < 1 else None


def near_least(above: Fraction | None, over: str = "") -> str:
    """How near to the least possible a loss is, rounded up, from its ``excess``."""
    if above is None:
        return "above a lower bound of about 0"
    factor = f"at most (1 + {at_most(above, 2)}) times "
    if not above or above >= _SMALL:
        factor = f"at most {at_most(1 + above, 3)} times " if above else ""
    return f"{factor}the least possible {over}".rstrip()


def check_optimality(certificate: Certificate, domain: Domain, biases: ExactNumbers | None) -> None:
    """Prove the bound that the certificate of one table claims, if it claims one.

    ``biases`` [k] are the randomizer's own; None of no numbers. Raises CheckFailedError.
    """
    stated = certificate.optimality
    if stated is None:
        agree_on(certificate, bound_facts(None, Fraction(0)))
        return
    loss, weights = certificate.utility.loss, certificate.prior.weights
    demand(loss in ("squared", "absolute", "zero_one"), f"the {loss} loss has no bound")
    rule = BiasRule(stated.over, rational(stated.amount))  # type: ignore[arg-type]  # checked next
    demand(rule.kind in OVER and rule.amount >= 0, "the bound is over no known class")
    amount = rule.kind in ("max", "penalty")
    demand(amount or rule.amount == 0, "the class of the bound has no amount")
    # Slopes and biases speak of numbers.
    classes = biases is None
    demand(not classes or rule.kind == "any", "categories have no bias")
    labels = ExactNumbers.of([0] * domain.size if classes else domain.labels())
    _demand_in_class(rule, domain, labels, biases)
    upper = exp_bounds(rational(certificate.exact.epsilon_label))[1]
    if isinstance(stated, RadiusOptimality):
        demand(rule.kind == "any", "radii can only prove a bound over all randomizers")
        demand(not classes, "radii need labels that are numbers")
        bound, hair = _bound_of_radii(stated, labels, weights, upper, loss), Fraction(0)
    else:
        bound, hair = _bound_of_duals(stated, labels, weights, upper, loss, rule, biases)
    demand(bound >= 0, "the bound is negative, which no loss can be")
    objective = rational(certificate.exact.noisy_label_loss or "")
    if rule.kind == "penalty":
        square = Fraction(0) if biases is None else biases.mean_square(weights)
        objective = penalised(stated, objective, square)
    # A randomizer of the class cannot beat the bound by more than its own hair of bias allows.
    demand(
        bound <= objective + hair,
        "the loss is below the bound, so the randomizer is not in the class of the bound",
    )
    agree_on(certificate, bound_facts(bound, objective))


def _bound_of_radii(
    stated: RadiusOptimality,
    labels: ExactNumbers,
    weights: Sequence[int],
    upper: Fraction,
    loss: Loss,
) -> Fraction:
    """The bound that radii prove."""
    demand(loss in ("squared", "absolute"), f"radii prove no bound on the {loss} loss")
    unit = rational(stated.unit)
    demand(unit > 0, "the unit of the radii is not positive")
    try:
        steps = radii_of(stated.knots, stated.radii, len(labels))
    except ValueError as error:
        raise CheckFailedError(f"the radii are malformed: {error}") from None
    charge_radii(labels, unit, weights)
    radii = ExactNumbers(steps.astype(object) * unit.numerator, unit.denominator)
    bound = radius_bound(labels, weights, upper, radii, loss)
    if bound is None:
        raise CheckFailedError("the radii prove no lower bound")
    return bound


def _bound_of_duals(
    stated: Optimality,
    labels: ExactNumbers,
    weights: Sequence[int],
    upper: Fraction,
    loss: Loss,
    rule: BiasRule,
    biases: ExactNumbers | None,
) -> tuple[Fraction, Fraction]:
    """The bound that dual values prove, and by how much a bias of its own may beat it."""
    counts = {len(stated.alpha), len(stated.beta)}
    demand(counts == {len(labels)}, "there must be one dual value for each label")
    sides = [[decimal(text) for text in side] for side in (stated.alpha, stated.beta)]
    charge_duals(sides, weights, loss)
    alpha, beta = map(ExactNumbers.of, sides)
    demand(
        loss == "squared" or not any(beta.numerators), f"a bound on the {loss} loss has no slopes"
    )
    feasible = dual_is_feasible(labels, weights, upper, alpha, beta, loss)
    demand(feasible, "the dual values prove no lower bound")
    hair = Fraction(0)
    if biases is not None:
        products = abs(beta.numerators * biases.numerators)
        hair = ExactNumbers(products, beta.unit * biases.unit).total()
    return bound_value(labels, weights, alpha, beta, rule), hair


def penalised(stated: Witness | None, loss: Fraction, mean_square: Fraction) -> Fraction:
    """What a bound over the stated class is a bound of: the loss, or loss plus penalty."""
    if stated is None or stated.over != "penalty":
        return loss
    return loss + rational(stated.amount) * mean_square


def _demand_in_class(
    rule: BiasRule, domain: Domain, labels: ExactNumbers, biases: ExactNumbers | None
) -> None:
    """The randomizer itself must belong to the class that it is compared with.

    Labels that are rounded to the nearest point of a grid have a bias in between, however small it
    is at the points: no compiler places such a file among the unbiased, or within a budget of bias.
    """
    if rule.kind == "any" or biases is None:
        return
    demand(
        rule.kind == "penalty" or not rounds_to_nearest(domain),
        "the bound is over randomizers whose bias is limited, but labels between two points of the "
        "grid are rounded to the nearest and have a bias of up to half a step",
    )
    largest = biases.largest()
    if rule.kind == "max":
        demand(largest <= rule.amount, "the bias is larger than its budget")
    if rule.kind == "unbiased":
        demand(
            largest <= unbiased_tolerance(labels),
            "the bound is over unbiased randomizers, and this one is biased",
        )
