"""Bias, loss and lower bound of one table or of all, and the fields that state them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.any_form import ColumnLoss, column_losses
from labeldp_verify.analysis.grid_labels import rounds_to_nearest, strays
from labeldp_verify.analysis.losses import (
    LOSSES,
    Loss,
    dual_is_feasible,
    expected_loss,
    radius_bound,
)
from labeldp_verify.analysis.lower_bound import (
    BiasRule,
    bound_value,
    radii_of,
    unbiased_tolerance,
)
from labeldp_verify.claims.records import (
    Certificate,
    Optimality,
    RadiusOptimality,
    UtilityClaims,
    Witness,
)
from labeldp_verify.cost import charge_duals, charge_radii
from labeldp_verify.errors import CheckFailedError, agree, demand
from labeldp_verify.forms import Domain, Randomizer, are_numbers
from labeldp_verify.forms.exact_numbers import ExactNumbers, exp_bounds, least_log_bound
from labeldp_verify.printable import at_most
from labeldp_verify.strict import decimal, rational

# ---- Bias and loss of one table, or of all, from its integers; and the fields that say so.


Facts = dict[str, Any]
"""The values that fields must state, by their names as in ``utility.loss``."""


@dataclass(frozen=True)
class Use:
    """Bias and loss of a table under its prior, or of all tables weighted with their sizes.

    Attributes:
        loss: bounds of the noisy label loss; equal, but for the Poisson loss.
        largest_bias: max |bias|; None where private labels are no numbers.
        mean_square: of the biases, under the prior.
        output_rounding: how far a float64 output may be from the exact one.
        columns: [c] the losses of the label's columns, where they are summed.
        biases: [k] of one table.
    """

    loss: tuple[Fraction, Fraction]
    largest_bias: Fraction | None
    mean_square: Fraction
    output_rounding: Fraction = Fraction(0)
    columns: list[Fraction] | None = None
    biases: ExactNumbers | None = None


def use_of(
    domain: Domain,
    randomizer: Randomizer,
    loss: Loss,
    losses: Sequence[ColumnLoss] | None,
    weights: Sequence[int],
) -> Use:
    """Of one table; ValueError if ``losses`` are not those of the label's columns."""
    analysis: Any = analyse(randomizer)
    labels, astray = domain.labels(), strays(domain)
    biases, square = None, Fraction(0)
    if are_numbers(domain, randomizer):
        biases = analysis.biases(ExactNumbers.of(labels), astray)
        square = biases.mean_square(weights)
    columns, bounds = None, None
    if losses is not None:
        columns = column_losses(domain, randomizer, [own.loss for own in losses], weights)
        pairs = zip(losses, columns, strict=True)
        bounds = (sum((own.weight * found for own, found in pairs), Fraction(0)),) * 2
    return Use(
        loss=bounds or expected_loss(analysis, labels, weights, loss, astray),
        largest_bias=None if biases is None else biases.largest(),
        mean_square=square,
        output_rounding=Fraction(analysis.output_rounding()),
        columns=columns,
        biases=biases,
    )


def together(sizes: Sequence[int], uses: Sequence[Use]) -> Use:
    """Of all tables: losses weighted with their sizes, and the largest bias."""
    if len(uses) == 1:
        return uses[0]
    low, high = (weighted(sizes, [use.loss[side] for use in uses]) for side in (0, 1))
    biased = [use.largest_bias for use in uses if use.largest_bias is not None]
    columns = [use.columns for use in uses if use.columns is not None]
    return Use(
        loss=(low, high),
        largest_bias=max(biased, default=None),
        mean_square=weighted(sizes, [use.mean_square for use in uses]),
        columns=[weighted(sizes, own) for own in zip(*columns, strict=True)] if columns else None,
    )


def weighted(sizes: Sequence[int], numbers: Sequence[Fraction]) -> Fraction:
    """Σ size·number / Σ size."""
    pairs = zip(sizes, numbers, strict=True)
    return sum((n * x for n, x in pairs if n), Fraction(0)) / sum(sizes)


def agree_on(certificate: Certificate, facts: Facts) -> None:
    """Demand that the certificate states these fields. Raises CheckFailedError."""
    for field, value in facts.items():
        agree(certificate, field, value)


def ratio_facts(ratio: Fraction) -> Facts:
    """The fields of privacy that follow from the largest ratio of an output's probabilities."""
    bound = least_log_bound(ratio)
    return {
        "exact.realised_ratio": str(ratio),
        "exact.epsilon_label_bound": str(bound),
        "privacy.epsilon_label_bound": float(bound),
    }


def use_facts(use: Use, loss: Loss) -> Facts:
    """The fields of utility; ValueError if the loss is not known to float64 precision."""
    low, high = use.loss
    if float(low) != float(high):
        raise ValueError("the loss cannot be bounded tightly")
    largest = use.largest_bias
    return {
        "utility.output_rounding": float(use.output_rounding),
        "exact.largest_bias": None if largest is None else str(largest),
        "utility.largest_bias": None if largest is None else float(largest),
        "utility.rms_bias": None if largest is None else math.sqrt(use.mean_square),
        "exact.noisy_label_loss": str(low) if LOSSES[loss].rational else None,
        "utility.noisy_label_loss": float(low),
    }


def bound_facts(bound: Fraction | None, objective: Fraction) -> Facts:
    """The fields of a lower bound on the objective; all None if there is none.

    The gap is relative to the bound, and None where that is not above 0 and the objective is not 0.
    """
    gap = None if objective else 0.0
    if bound and bound > 0:
        gap = float(max(objective / bound - 1, Fraction(0)))
    return {
        "exact.loss_lower_bound": None if bound is None else str(bound),
        "utility.loss_lower_bound": None if bound is None else float(bound),
        "utility.certified_gap": None if bound is None else gap,
    }


# ---- The lower bound that a certificate's dual values prove, and its class of randomizers.


OVER = {
    "unbiased": "of all ε-DP unbiased randomizers",
    "max": "of all ε-DP randomizers within the bias",
    "penalty": "of all ε-DP randomizers, for loss plus penalty",
    "any": "of all ε-DP randomizers",
}
_SMALL = 0.01  # a gap that is printed as such, and not as a factor


def near_least(gap: float | None, over: str = "") -> str:
    """How near to the least possible a loss is, from its gap, rounded up: (1 + gap)·bound ≥ loss.

    The gap is None where the bound is 0.
    """
    if gap is None:
        return "above a lower bound of 0"
    above = Fraction(math.nextafter(gap, math.inf) if gap else 0)
    factor = f"at most (1 + {at_most(above, 2)}) times "
    if not above or above >= _SMALL:
        factor = f"at most {at_most(1 + above, 3)} times " if above else ""
    return f"{factor}the least possible {over}".rstrip()


def how_near(utility: UtilityClaims, over: str = "") -> str:
    """How near to the least possible a stated loss is, if a bound is stated."""
    bound = utility.loss_lower_bound
    if bound is None or bound >= 0:
        return near_least(utility.certified_gap, over)
    loss = Fraction(math.nextafter(utility.noisy_label_loss, math.inf))
    above = loss - Fraction(math.nextafter(bound, -math.inf))
    return f"at most {at_most(above, 2)} above the least possible {over}".rstrip()


def check_optimality(certificate: Certificate, domain: Domain, use: Use) -> None:
    """Prove the bound that the certificate of one table claims, if it claims one.

    ``use`` is the randomizer's own. Raises CheckFailedError.
    """
    biases = use.biases
    stated = certificate.optimality
    if stated is None:
        agree_on(certificate, bound_facts(None, Fraction(0)))
        return
    loss, weights = certificate.utility.loss, certificate.prior.weights
    demand(LOSSES[loss].dual is not None, f"the {loss} loss has no bound")
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
    signed = LOSSES[loss].is_signed
    demand(bound >= 0 or signed, "the bound is negative, which this loss cannot be")
    objective, most = (penalised(stated, loss, use.mean_square) for loss in use.loss)
    # A randomizer of the class cannot beat the bound by more than its own hair of bias allows.
    demand(
        bound <= most + hair,
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
    demand(LOSSES[loss].radii is not None, f"radii prove no bound on the {loss} loss")
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
    sloped = LOSSES[loss].has_slopes or not any(beta.numerators)
    demand(sloped, f"a bound on the {loss} loss has no slopes")
    feasible = dual_is_feasible(labels, weights, upper, alpha, beta, loss)
    demand(feasible, "the dual values prove no lower bound")
    hair = Fraction(0)
    if biases is not None:
        products = abs(beta.numerators * biases.numerators)
        hair = ExactNumbers(products, beta.unit * biases.unit).total()
    return bound_value(labels, weights, alpha, beta, rule), hair


def penalised(stated: Witness | None, loss: Fraction, mean_square: Fraction) -> Fraction:
    """The bounded quantity of the stated class: the loss, or loss plus penalty."""
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
