"""The losses with parameters, which are convex: a record for each family."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from labeldp_verify.analysis.analysis import Analysis, Losses, Rows
from labeldp_verify.analysis.convex_bound import convex_holds, huber_tangents, power_tangents
from labeldp_verify.analysis.exact_loss import ExactLoss, LossFamily
from labeldp_verify.analysis.lower_bound import sided_holds, sided_radii
from labeldp_verify.analysis.probabilities import exact_rows
from labeldp_verify.budget import charge
from labeldp_verify.forms import AdditiveRandomizer
from labeldp_verify.forms.exact_numbers import ExactNumbers, Whole, dot, whole

Costs = Callable[[Whole, int, int], tuple[Whole, Whole, int]]
"""Bounds [m] of ℓ and their scale, from distances [m] and the largest of all, over a unit."""

_PAIR = 4e-6  # seconds of a loss
_BITS = 160  # of a loss that is not rational
MOST_POWER, MOST_ROOT = 4, 10


def sided(
    under: Fraction, over: Fraction, analysis: Analysis[Any], rows: Rows, labels: ExactNumbers
) -> Losses:
    """E[under·(y − ŷ)⁺ + over·(ŷ − y)⁺], from E|ŷ − y| and E[ŷ − y]."""
    apart, above = analysis.distances(rows, labels), analysis.means().take(rows).minus(labels)
    unit = math.lcm(apart.unit, above.unit)
    scale = math.lcm(under.denominator, over.denominator)
    both, more = int((under + over) * scale), int((over - under) * scale)
    numerators = both * apart.over(unit) + more * above.over(unit)
    return (ExactNumbers(numerators, 2 * scale * unit),) * 2


def listed(costs: Costs, analysis: Analysis[Any], rows: Rows, labels: ExactNumbers) -> Losses:
    """E ℓ(ŷ, y), summed over the outputs. Raises ValueError for added noise."""
    r = analysis.randomizer
    if isinstance(r, AdditiveRandomizer):
        raise ValueError("added noise has too many outputs for this loss")
    values = ExactNumbers.of(r.values)
    unit = math.lcm(values.unit, labels.unit)
    v, y = values.over(unit), labels.over(unit)
    pairs = len(v) * len(y)
    charge(f"the losses of {pairs:,} pairs of label and output", seconds=pairs * _PAIR)
    reach = int(max(v[-1], max(y, default=0)) - min(v[0], min(y, default=0)))
    low, high, scale = [0] * len(y), [0] * len(y), 1
    for at, counts in enumerate(exact_rows(r, rows.tolist())):
        least, most, scale = costs(abs(v - y[at]), reach, unit)
        low[at] = dot(counts, least)
        high[at] = low[at] if most is least else dot(counts, most)
    return tuple(ExactNumbers(whole(side), scale * r.words) for side in (low, high))  # type: ignore[return-value]  # two of them


def _huber_costs(delta: Fraction, d: Whole, reach: int, unit: int) -> tuple[Whole, Whole, int]:
    most = delta.numerator * unit
    d = d * delta.denominator
    # ½d² up to δ, then δ·d − ½δ²: with the smaller one, e, it is e·d − ½e².
    e = whole([min(n, most) for n in d.tolist()])
    exact = e * (2 * d - e)
    return exact, exact, 2 * (unit * delta.denominator) ** 2


def _power_costs(power: Fraction, d: Whole, reach: int, unit: int) -> tuple[Whole, Whole, int]:
    a, b = power.numerator, power.denominator
    small = max(unit.bit_length() - reach.bit_length(), 0)
    bits = _BITS + math.ceil(power * small)
    below = unit**a
    low = whole([_root((n**a << (bits * b)) // below, b) for n in d.tolist()])
    high = low + 1
    return low * b, high * b, a << bits


def _root(number: int, degree: int) -> int:
    """The whole part of the root of a number ≥ 0, by Newton's method from above."""
    if degree % 2 == 0:
        return _root(math.isqrt(number), degree // 2)
    if degree == 1 or number == 0:
        return number
    root = 1 << -(-number.bit_length() // degree)
    while True:
        lower = ((degree - 1) * root + number // root ** (degree - 1)) // degree
        if lower >= root:
            return root
        root = lower


def _quantile(name: str, q: Fraction) -> ExactLoss:
    if not 0 < q < 1:
        raise ValueError("quantile must be above 0 and below 1, as in 0.9")
    return _sided(name, q, 1 - q)


def _under_over(name: str, under: Fraction, over: Fraction) -> ExactLoss | str:
    if min(under, over) <= 0:
        raise ValueError("under and over must be above 0: what an output costs per unit")
    return "absolute" if under == over == 1 else _sided(name, under, over)


def _sided(name: str, under: Fraction, over: Fraction) -> ExactLoss:
    holds = partial(sided_holds, under=under, over=over)
    radii = partial(sided_radii, under=under, over=over)
    return ExactLoss(name, partial(sided, under, over), 180e-6, holds, 25e-6, radii)


def _huber(name: str, delta: Fraction) -> ExactLoss:
    if delta <= 0:
        raise ValueError("huber must be above 0: the distance up to which the loss is squared")
    holds = partial(
        convex_holds, tangents=partial(huber_tangents, delta), multiple=delta.denominator
    )
    return ExactLoss(name, partial(listed, partial(_huber_costs, delta)), 400e-6, holds)


def _power(name: str, power: Fraction) -> ExactLoss | str:
    if not 1 <= power <= MOST_POWER or power.denominator > MOST_ROOT:
        raise ValueError(
            f"power must be between 1 and {MOST_POWER}, as a fraction with a denominator of at "
            f"most {MOST_ROOT}, as in 1.5"
        )
    if power in (1, 2):
        return "absolute" if power == 1 else "squared"
    holds = partial(convex_holds, tangents=partial(power_tangents, power))
    expected = partial(listed, partial(_power_costs, power))
    return ExactLoss(name, expected, 800e-6, holds, rational=False)


_FAMILIES = (
    LossFamily("quantile", ("quantile",), _quantile),
    LossFamily("under_over", ("under", "over"), _under_over),
    LossFamily("huber", ("huber",), _huber),
    LossFamily("power", ("power",), _power),
)
FAMILIES = {family.name: family for family in _FAMILIES}
