"""Which row a grid label of a real domain reaches, and how often it strays to a neighbour.

The graph computes a label's position on the grid in float64, so that a grid label may stand a hair
beside its own point. Rounded to the nearest point it still reaches its own row (``is_faithful``
demands it). Rounded unbiasedly it reaches a neighbouring row with the probability counted here,
over all 2^53 values of the rounding word. A label's outputs are then a mixture of two rows: that
leaves privacy as it is (a mixture of ε-DP rows is ε-DP), but bias and loss must count it.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms.domain import Domain, RealDomain
from labeldp_verify.forms.exact_numbers import ExactNumbers

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
