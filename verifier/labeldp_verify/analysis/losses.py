"""The losses: one record each, with its exact expectation and the lower bounds that can be proved.

A loss is a record in ``LOSSES``, which all other code asks. Those with parameters are in
``loss_families``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from labeldp_verify.analysis.analysis import Analysis, Labels, Losses, Rows
from labeldp_verify.analysis.convex_bound import convex_holds, poisson_tangents
from labeldp_verify.analysis.cost_matrix import CostMatrix
from labeldp_verify.analysis.exact_loss import ExactLoss, parsed
from labeldp_verify.analysis.grid_labels import Strays, stray_columns
from labeldp_verify.analysis.loss_families import FAMILIES
from labeldp_verify.analysis.lower_bound import (
    Duals,
    require_weights,
    sided_holds,
    sided_radii,
    squared_holds,
    squared_radii,
    zero_one_holds,
)
from labeldp_verify.forms import sets_of
from labeldp_verify.forms.exact_numbers import ExactNumbers, whole

_AT_ONCE = 1 << 16  # rows whose losses are held at one time


def _squared(analysis: Analysis[Any], rows: Rows, labels: ExactNumbers) -> Losses:
    """½·E[(ŷ − y)²] from the first two moments."""
    mean, square = (moment.take(rows) for moment in analysis.moments)
    cross = ExactNumbers(labels.numerators * mean.numerators, labels.unit * mean.unit)
    own = ExactNumbers(labels.numerators * labels.numerators, labels.unit**2)
    unit = math.lcm(square.unit, cross.unit, own.unit)
    twice = square.over(unit) - 2 * cross.over(unit) + own.over(unit)
    return (ExactNumbers(twice, 2 * unit),) * 2


def _absolute(analysis: Analysis[Any], rows: Rows, labels: ExactNumbers) -> Losses:
    """E|ŷ − y|."""
    return (analysis.distances(rows, labels),) * 2


def _poisson(analysis: Analysis[Any], rows: Rows, labels: ExactNumbers) -> Losses:
    """E[ŷ] − y·E[ln ŷ], over the units of all three; within 2^-200 of its terms."""
    y, logarithms = labels.numerators, analysis.logarithms
    if min(y, default=0) < 0 or (logarithms is None and any(y)):
        raise ValueError("the Poisson loss of a positive label is infinite at the output 0")
    mean = analysis.means().take(rows)
    if logarithms is None:
        return mean, mean
    least, most = (side.take(rows) for side in logarithms)
    unit = mean.unit * labels.unit * least.unit
    high, low = (
        ExactNumbers(mean.over(unit) - (y * of.numerators) * mean.unit, unit)
        for of in (least, most)
    )
    return low, high


def _zero_one(analysis: Analysis[Any], rows: Rows, labels: Labels) -> Losses:
    """Pr[ŷ ≠ y]."""
    return (analysis.unequal(rows, labels),) * 2


def _sum(analysis: Analysis[Any], rows: Rows, labels: ExactNumbers) -> Losses:
    """See ``column_losses``."""
    raise ValueError("there is no loss 'sum' of a single column")


_RECORDS = (
    ExactLoss("squared", _squared, 120e-6, squared_holds, 60e-6, squared_radii, has_slopes=True),
    ExactLoss("absolute", _absolute, 140e-6, sided_holds, 20e-6, sided_radii),
    ExactLoss(
        "poisson",
        _poisson,
        dual=partial(convex_holds, tangents=poisson_tangents),
        rational=False,
        of_columns=False,
        is_signed=True,
    ),
    ExactLoss(
        "zero_one",
        _zero_one,
        60e-6,
        zero_one_holds,
        10e-6,
        equality=True,
        needs_numbers=False,
    ),
    ExactLoss("sum", _sum, of_columns=False),  # of columns: their losses, each times its weight
)
Loss = str
"""The name of a loss: one without parameters, or as in ``quantile(9/10)``, or a ``CostMatrix``."""


class _Losses(Mapping[Loss, ExactLoss]):
    """The records by name; iteration gives the names without parameters."""

    def __init__(self, records: Sequence[ExactLoss]) -> None:
        self._records = {loss.name: loss for loss in records}

    def __getitem__(self, name: Loss) -> ExactLoss:
        """The record of a name, which a loss has only one of. Raises KeyError."""
        if isinstance(name, CostMatrix):
            return name.record
        if name in self._records:
            return self._records[name]
        family, values = parsed(name) or ("", [])
        found: ExactLoss | str = ""
        if family in FAMILIES and len(values) == len(FAMILIES[family].parameters):
            try:
                found = FAMILIES[family].make(name, *values)
            except ValueError:
                raise KeyError(name) from None
        if isinstance(found, str):
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[Loss]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)


LOSSES = _Losses(_RECORDS)


# ---- What every loss has in common.


def losses_by_row(analysis: Analysis[Any], rows: Rows, labels: Labels, loss: Loss) -> Losses:
    """Bounds [n] of E[ℓ(ŷ, labels[j])] in the row rows[j], for ``rows`` and ``labels`` [n].

    Raises ValueError where the loss is infinite, or not defined for these outputs.
    """
    record = LOSSES[loss]
    if not record.equality and sets_of(analysis.randomizer) is not None:
        raise ValueError("sets of classes have only the zero_one loss")
    known = ExactNumbers.of(labels) if record.needs_numbers else labels
    return record.expected(analysis, rows, known)


def expected_loss(
    analysis: Analysis[Any],
    labels: Labels,
    weights: Sequence[int],
    loss: Loss,
    strays: Strays | None = None,
) -> tuple[Fraction, Fraction]:
    """Bounds of E ℓ(ŷ, y), y drawn in proportion to ``weights`` [k] (integers ≥ 0).

    Definition 4 of the optimal unbiased randomizers paper (2023).
    """
    known = ExactNumbers.of(labels) if LOSSES[loss].needs_numbers else labels
    low = high = Fraction(0)
    weighty = np.flatnonzero([weight != 0 for weight in weights])
    for rows in np.split(weighty, range(_AT_ONCE, len(weighty), _AT_ONCE)):
        own = [weights[i] for i in rows.tolist()]
        least, most = losses_by_row(analysis, rows, _taken(known, rows), loss)
        low, high = low + least.weighted(own), high + most.weighted(own)
    if strays:  # what changes where a label takes the row of a neighbour
        at, others, shares = stray_columns(strays)
        own = [weights[i] * n for i, n in zip(at.tolist(), shares.numerators, strict=True)]
        kept = np.flatnonzero([weight != 0 for weight in own])
        at, others, own = at[kept], others[kept], [own[i] for i in kept]
        seen = _taken(known, at)
        there, here = (
            losses_by_row(analysis, others, seen, loss),
            losses_by_row(analysis, at, seen, loss),
        )
        low += there[0].minus(here[0]).weighted(own) / shares.unit
        high += there[1].minus(here[1]).weighted(own) / shares.unit
    total = sum(weights)
    return low / total, high / total


def _taken(labels: Labels, rows: Rows) -> Labels:
    """The labels at these places."""
    if isinstance(labels, ExactNumbers):
        return labels.take(rows)
    return [labels[i] for i in rows.tolist()]


def dual_is_feasible(
    labels: Sequence[Fraction],
    weights: Sequence[int],
    exp_upper: Fraction,
    alpha: Sequence[Fraction],
    beta: Sequence[Fraction] | None = None,
    loss: Loss = "squared",
) -> bool:
    """Whether F ≥ 0 on the whole real line, proved; False if not, or if it cannot be told.

    Args:
        labels: [k] increasing; any numbers if the loss needs none.
        weights: [k] integers ≥ 0 in proportion to the prior, not all 0.
        exp_upper: at least e^ε.
        alpha: [k] exact, in units of the loss.
        beta: [k] exact; of a loss that has slopes alone.
        loss: one with a bound by dual values.

    Raises:
        ValueError: the arguments are not as described.
    """
    require_weights(weights, exp_upper)
    if len({len(labels), len(weights), len(alpha)}) != 1:
        raise ValueError("there must be one weight and one dual value for each label")
    holds = LOSSES[loss].dual
    if holds is None:
        raise ValueError(f"dual values prove no bound on the {loss} loss")
    slopes = ExactNumbers.of(beta or [0] * len(labels))
    y, level = ExactNumbers.of(labels), ExactNumbers.of(alpha)
    return holds(Duals(y, weights, level, slopes, exp_upper - 1))


def radius_bound(
    labels: ExactNumbers,
    weights: Sequence[int],
    exp_upper: Fraction,
    radii: ExactNumbers,
    loss: Loss,
) -> Fraction | None:
    """The bound Σα if F ≥ 0 on the whole real line, decided exactly; None if it is not.

    ``labels`` [k] increasing, ``weights`` [k] integers ≥ 0 in proportion to the prior and not all
    0, ``exp_upper`` ≥ e^ε, ``radii`` [k] ≥ 0, ``loss`` one with a bound by radii. O(k log k).
    """
    proved = LOSSES[loss].radii
    if proved is None:
        raise ValueError(f"radii prove no bound on the {loss} loss")
    require_weights(weights, exp_upper)
    if not len(labels) == len(weights) == len(radii):
        raise ValueError("there must be one weight and one radius for each label")
    unit, common = math.lcm(labels.unit, radii.unit), math.gcd(*weights)
    y, r = labels.over(unit), radii.over(unit)
    y = y - (y[0] + y[-1]) // 2  # shorter numbers
    w = whole([weight // common for weight in weights])
    bound = proved(y, w, r, unit, exp_upper - 1)
    return None if bound is None else bound / int(w.sum())
