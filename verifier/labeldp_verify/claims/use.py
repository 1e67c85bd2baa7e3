"""Bias and loss of one table, or of all, from its integers; and the fields that say so."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.analysis import Loss
from labeldp_verify.analysis.bounds import least_log_bound
from labeldp_verify.analysis.column_losses import ColumnLoss, column_losses
from labeldp_verify.analysis.stray_labels import strays
from labeldp_verify.checks import agree
from labeldp_verify.claims.certificate import Certificate
from labeldp_verify.forms import Domain, Randomizer, are_numbers
from labeldp_verify.forms.exact_numbers import ExactNumbers

Facts = dict[str, Any]
"""What fields must state, by their names as in ``utility.loss``."""


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
        loss=bounds or analysis.expected_loss(labels, weights, loss, astray),
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
        "exact.noisy_label_loss": None if loss == "poisson" else str(low),
        "utility.noisy_label_loss": float(low),
    }


def bound_facts(bound: Fraction | None, objective: Fraction) -> Facts:
    """The fields of a lower bound on the objective; all None if there is none."""
    gap = None
    if bound is not None:
        gap = float(max((objective - bound) / objective, Fraction(0))) if objective else 0.0
    return {
        "exact.loss_lower_bound": None if bound is None else str(bound),
        "utility.loss_lower_bound": None if bound is None else float(bound),
        "utility.certified_gap": gap,
    }
