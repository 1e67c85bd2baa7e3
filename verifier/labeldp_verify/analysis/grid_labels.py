"""Real labels on a grid: which rows they reach, and the bias of labels between its points."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms.domain import Domain, RealDomain
from labeldp_verify.forms.exact_numbers import ExactNumbers
from labeldp_verify.printable import at_most

# ---- Which row a grid label of a real domain reaches, and how often it strays to a neighbour.
#
# The graph computes a label's position on the grid in float64, so that a grid label may stand a
# hair beside its own point. Rounded to the nearest point it still reaches its own row
# (``is_faithful`` demands it). Rounded unbiasedly it reaches a neighbouring row with the
# probability counted here, over all 2^53 values of the rounding word. A label's outputs are then a
# mixture of two rows: that leaves privacy as it is (a mixture of ε-DP rows is ε-DP), but bias and
# loss must count it.


_WORDS = 1 << 53  # values of the rounding word's upper bits, all equally likely
_PASSES = 4  # a stray is rarer than 2^-20, so that 2^-80 of a step is left
Strays = Mapping[int, tuple[int, Fraction]]  # label → (the other row, its probability)


def strays(domain: Domain) -> Strays:
    """The labels that sometimes reach another row than their own; exact probabilities."""
    if not isinstance(domain, RealDomain) or domain.rounding != "unbiased":
        return {}
    positions = domain.positions(np.array(domain.listed))
    off = np.flatnonzero(positions != np.arange(domain.size)).tolist()
    found = {j: _stray(j, float(positions[j])) for j in off}
    return {j: (row, share) for j, (row, share) in found.items() if share}


def up_words(fraction: float) -> int:
    """How many of the 2^53 words round up: those n with n·2^-53 < fraction."""
    return math.ceil(fraction * float(_WORDS))  # a power of two: exact


def stray_columns(strays: Strays) -> tuple[NDArray[np.int64], NDArray[np.int64], ExactNumbers]:
    """[n] the labels that stray, the rows they stray to, and with which probabilities."""
    at = np.array(list(strays), dtype=np.int64)
    rows = np.array([row for row, _ in strays.values()], dtype=np.int64)
    return at, rows, ExactNumbers.of(share for _, share in strays.values())


def row_means(domain: Domain, targets: Sequence[Fraction]) -> Sequence[Fraction]:
    """[k] means of the rows for which the means of the labels are the ``targets`` [k].

    To within 2^-80 of the largest difference of neighbouring targets.
    """
    astray = strays(domain)
    if not astray:
        return targets
    means = list(targets)
    for _ in range(_PASSES):
        moved = {j: share * (means[row] - means[j]) for j, (row, share) in astray.items()}
        for j, shift in moved.items():
            means[j] = targets[j] - shift
    return means


def _stray(j: int, position: float) -> tuple[int, Fraction]:
    whole = math.floor(position)
    up = up_words(position - whole)
    other, words = (j + 1, up) if whole == j else (whole, _WORDS - up)
    if abs(other - j) != 1:
        raise ValueError("a grid label lies far from its own grid point")
    return other, Fraction(words, _WORDS)


# ---- The bias for every label in the range, where a certificate states it for grid points alone.
#
# A real label x lies between two points of its grid, which are one *step* apart. Let b be the
# largest bias at a grid point.
#
#     nearest     x takes the row of the nearest point g, |x − g| ≤ ½ step: the bias is at most
#                 b + ½ step, and near that in the middle between two points
#     unbiased    x takes the rows of both neighbours, so that the mean of the two points is x: the
#                 bias is at most b, but for float64, in which the graph computes where x lies
#
# Labels outside the range are clamped, or become the default: nothing here speaks of them.


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
