"""What one person with several labels pays."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

MOST_LABELS = 10


@dataclass(frozen=True)
class Payment:
    """The cost of one person's labels.

    Attributes:
        labels: how many of them are randomized.
        label: L·ε₂, for the private labels alone.
        total: L·(ε₁ + ε₂), where all of them are in the data of the prior, too.
    """

    labels: int
    label: Fraction
    total: Fraction


def pure_composition(certificate: dict[str, Any], most: int = MOST_LABELS) -> list[Payment]:
    """ε for one person with 1 … ``most`` labels, by sequential composition; exact."""
    exact = certificate["exact"]
    label, total = Fraction(exact["epsilon_label"]), Fraction(exact["epsilon_total"])
    return [Payment(n, n * label, n * total) for n in range(1, most + 1)]
