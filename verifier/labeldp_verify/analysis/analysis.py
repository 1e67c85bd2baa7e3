"""What is asked of the integers of every exact form; all of it exact, or bounded from above.

Rows are those of the labels 0 … k − 1. A label reaches its own row, but for ``strays``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Generic, Literal, TypeVar

from labeldp_verify.analysis.strays import Strays, stray_columns
from labeldp_verify.forms import Randomizer
from labeldp_verify.forms.exact_numbers import ExactNumbers

Loss = Literal["squared", "absolute", "poisson", "zero_one", "sum"]
"""``sum`` is that of a joint label: the losses of its columns, each times its weight."""
Labels = Sequence[Any]  # [k] exact numbers (Fraction), or categories
Bounds = tuple[Fraction, Fraction]  # equal where the expectation is rational

OfRow = Callable[[int], Fraction]
BoundsOfRow = Callable[[int], Bounds]
R = TypeVar("R", bound=Randomizer)


class TooMuchWorkError(Exception):
    """The tables are legal, but take longer to check than any compiled artifact does."""


class Analysis(ABC, Generic[R]):
    """Everything that can be derived from the integers of one randomizer."""

    def __init__(self, randomizer: R) -> None:
        """Pure data; whether it is a randomizer at all is for ``why_not_distributions``."""
        self.randomizer = randomizer

    @property
    @abstractmethod
    def rows(self) -> int:
        """k, the number of labels."""

    @abstractmethod
    def description(self) -> str:
        """The form and its sizes in plain words."""

    @abstractmethod
    def why_not_distributions(self) -> str | None:
        """What keeps the integers from being one distribution a row, or None."""

    @abstractmethod
    def worst_ratio(self) -> Fraction:
        """An upper bound of Pr[output | label] / Pr[output | label'] over outputs and labels."""

    @abstractmethod
    def moments(self) -> tuple[OfRow, OfRow]:
        """E[ŷ] and E[ŷ²] by the row; for outputs that are numbers."""

    @abstractmethod
    def loss_of(self, labels: Labels, loss: Loss) -> BoundsOfRow:
        """Bounds of E[ℓ(ŷ, labels[i])] by the row i.

        ``squared`` ½(ŷ − y)², ``absolute`` |ŷ − y|, ``poisson`` ŷ − y·ln ŷ, ``zero_one`` 1[ŷ ≠ y].
        Raises ValueError where the loss is infinite.
        """

    def output_rounding(self) -> Fraction:
        """A bound on |float64 output − exact output|."""
        return Fraction(0)

    def means(self) -> ExactNumbers:
        """[k] E[ŷ] of every row."""
        mean, _ = self.moments()
        return ExactNumbers.of(map(mean, range(self.rows)))

    def biases(self, labels: Sequence[Fraction], strays: Strays | None = None) -> ExactNumbers:
        """[k] E[ŷ | y] − y."""
        means = self.means()
        biases = means.minus(ExactNumbers.of(labels))
        if not strays:
            return biases
        at, rows, shares = stray_columns(strays)
        unit = biases.unit * shares.unit
        moved = (means.take(rows).minus(means.take(at))).over(biases.unit)
        numerators = biases.over(unit).copy()
        numerators[at] += shares.numerators * moved
        return ExactNumbers(numerators, unit)

    def variances(self) -> ExactNumbers:
        """[k] Var[ŷ] of every row."""
        mean, square = self.moments()
        return ExactNumbers.of(square(i) - mean(i) ** 2 for i in range(self.rows))

    def expected_loss(
        self, labels: Labels, weights: Sequence[int], loss: Loss, strays: Strays | None = None
    ) -> Bounds:
        """Bounds of E ℓ(ŷ, y), y drawn in proportion to ``weights`` [k] (integers ≥ 0).

        The two differ for the Poisson loss only, by less than 2^-200 of its terms. Definition 4 of
        the optimal unbiased randomizers paper (2023).
        """
        of_row = self.loss_of(labels, loss)
        low = high = Fraction(0)
        for i, weight in enumerate(weights):
            if weight:
                lo, hi = of_row(i)
                low, high = low + weight * lo, high + weight * hi
        for step in (-1, 1):  # what changes where a label takes the row of a neighbour
            astray = [(i, p) for i, (row, p) in (strays or {}).items() if row == i + step]
            if not any(weights[i] for i, _ in astray):
                continue
            seen = [labels[min(max(row - step, 0), len(labels) - 1)] for row in range(len(labels))]
            other = self.loss_of(seen, loss)
            for i, share in astray:
                if weights[i]:
                    (lo, hi), (own_lo, own_hi) = other(i + step), of_row(i)
                    low += weights[i] * share * (lo - own_lo)
                    high += weights[i] * share * (hi - own_hi)
        total = sum(weights)
        return low / total, high / total


def squared_loss(moments: tuple[OfRow, OfRow], labels: Labels) -> BoundsOfRow:
    """½·E[(ŷ − y)²] from the first two moments."""
    mean, square = moments

    def of_row(i: int) -> Bounds:
        y = labels[i]
        result = (square(i) - 2 * y * mean(i) + y * y) / 2
        return result, result

    return of_row


def integers_of(values: Sequence[Any]) -> tuple[list[int], int]:
    """Outputs that are numbers as integers, and the unit by which they were multiplied."""
    exact = ExactNumbers.of(values)
    return exact.numerators.tolist(), exact.unit
