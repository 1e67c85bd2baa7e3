"""The bias for every label in the range, where a certificate states it for grid points alone.

A real label x lies between two points of its grid, which are one *step* apart. Let b be the largest
bias at a grid point.

    nearest     x takes the row of the nearest point g, |x − g| ≤ ½ step: the bias is at most
                b + ½ step, and near that in the middle between two points
    unbiased    x takes the rows of both neighbours, so that the mean of the two points is x: the
                bias is at most b, but for float64, in which the graph computes where x lies

Labels outside the range are clamped, or become the default: nothing here speaks of them.
"""

from fractions import Fraction

import numpy as np

from labeldp_verify.forms.domain import Domain, RealDomain
from labeldp_verify.rounded import at_most

_HALF_ULP = Fraction(1, 1 << 53)
_ROUNDINGS = 5  # of one position: range, factor, difference, product, and one to spare


def rounds_to_nearest(domain: Domain) -> bool:
    """Whether labels between two grid points all become the nearer one."""
    return isinstance(domain, RealDomain) and domain.rounding == "nearest"


def grid_step(domain: Domain) -> Fraction:
    """From one grid point to the next, where they are furthest apart; 0 if every label is one."""
    return domain.widest_step if isinstance(domain, RealDomain) else Fraction(0)


def bias_in_range(
    domain: Domain, at_points: Fraction, output_rounding: Fraction = Fraction(0)
) -> Fraction:
    """An upper bound of |E[output | x] − x| for every label x in the range.

    Args:
        at_points: the largest bias over the points of the grid (of integers: over all labels).
        output_rounding: how far a float64 output may be from the exact one.
    """
    bias = at_points + output_rounding
    if not isinstance(domain, RealDomain):
        return bias
    step = grid_step(domain)
    off = float(np.abs(domain.positions(np.array(domain.listed)) - np.arange(domain.size)).max())
    astray = Fraction(off) + _ROUNDINGS * domain.points * _HALF_ULP  # grid steps
    points = _HALF_ULP * max(abs(Fraction(domain.min)), abs(Fraction(domain.max)))
    if domain.rounding == "nearest":
        return bias + points + (Fraction(1, 2) + astray) * step
    # The means of two rows differ by a step and two biases at most, and those of labels between
    # them are linear in between but for ``astray``.
    return bias + points + 2 * astray * (step + 2 * at_points)


def bias_in_words(
    domain: Domain, at_points: Fraction, output_rounding: Fraction = Fraction(0)
) -> str:
    """Both figures where they differ, each with the labels that it is for."""
    most = bias_in_range(domain, at_points, output_rounding)
    if not isinstance(domain, RealDomain):
        return f"the largest bias is {at_most(most)} for labels in the range"
    how = "rounded to the nearest" if domain.rounding == "nearest" else "rounded at random"
    return (
        f"the largest bias is {at_most(at_points + output_rounding)} at the points of the grid "
        f"and at most {at_most(most)} for all labels in the range, which are {how}"
    )
