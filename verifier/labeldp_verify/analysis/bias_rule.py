"""Which randomizers a lower bound speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal


@dataclass(frozen=True)
class BiasRule:
    """Which randomizers a bound speaks of, by their bias d_y = E[M(y)] − y.

    ``unbiased``: d = 0. ``max``: |d_y| ≤ amount. ``penalty``: all, and the bound is on the loss
    plus amount·Σ p_y·d_y². ``any``: all (β = 0).
    """

    kind: Literal["unbiased", "max", "penalty", "any"]
    amount: Fraction = Fraction(0)


def unbiased_tolerance(labels: Sequence[Fraction]) -> Fraction:
    """The bias up to which a randomizer counts as unbiased: 2^-40 of the range of the labels.

    Whole counts of words of 62 bits stay below it; a file with shorter words may not.
    """
    return (labels[-1] - labels[0]) / 2**40
