"""Which row a grid label of a real domain reaches, and how often it strays to a neighbour.

The graph computes a label's position on the grid in float64, so that a grid label may stand a hair
beside its own point. Rounded to the nearest point it still reaches its own row (``is_faithful``
demands it). Rounded unbiasedly it reaches a neighbouring row with the probability counted here,
over all 2^53 values of the rounding word. A label's outputs are then a mixture of two rows: that
leaves privacy as it is (a mixture of ε-DP rows is ε-DP), but bias and loss must count it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from labeldp_verify.forms.domain import Domain, RealDomain

_WORDS = 1 << 53  # values of the rounding word's upper bits, all equally likely
_PASSES = 4  # a stray is rarer than 2^-20, so that 2^-80 of a step is left
Strays = Mapping[int, tuple[int, Fraction]]  # label → (the other row, its probability)


def strays(domain: Domain) -> Strays:
    """The labels that sometimes reach another row than their own; exact probabilities."""
    if not isinstance(domain, RealDomain) or domain.rounding != "unbiased":
        return {}
    found = {}
    for j, label in enumerate(domain.labels()):
        position = domain.position(float(label))
        if position != j:
            found[j] = _stray(j, position)
    return {j: (row, share) for j, (row, share) in found.items() if share}


def up_words(fraction: float) -> int:
    """How many of the 2^53 words round up: those n with n·2^-53 < fraction."""
    return math.ceil(Fraction(fraction) * _WORDS)


def mixed(strays: Strays, label: int, of_row: Callable[[int], Fraction]) -> Fraction:
    """An expectation given a label from those given a row."""
    own = of_row(label)
    if label not in strays:
        return own
    row, share = strays[label]
    return own + share * (of_row(row) - own)


def row_means(domain: Domain, targets: Sequence[Fraction]) -> list[Fraction]:
    """[k] means of the rows for which the means of the labels are the ``targets`` [k].

    To within 2^-80 of the largest difference of neighbouring targets.
    """
    astray, means = strays(domain), list(targets)
    for _ in range(_PASSES if astray else 0):
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
