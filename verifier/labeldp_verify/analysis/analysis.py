"""Questions to the integers of every exact form; answers are exact, or bounds from above.

Rows are those of the labels 0 … k − 1. A label reaches its own row, but for ``strays``.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.analysis.grid_labels import Strays, stray_columns
from labeldp_verify.budget import charge
from labeldp_verify.forms import Randomizer, TableRandomizer, WindowRandomizer
from labeldp_verify.forms.exact_numbers import ExactNumbers, Whole, log_bounds

Labels = Sequence[Any]  # exact numbers (Fraction), or categories
Rows = NDArray[np.intp]
Losses = tuple[ExactNumbers, ExactNumbers]
"""Bounds; equal where the expectation is rational."""
_LOGARITHM = 300e-6  # seconds
_LOG_SCALE = 2**256
R = TypeVar("R", bound=Randomizer)
L = TypeVar("L", bound=WindowRandomizer | TableRandomizer)


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
        """The reason why the integers are not one distribution a row, or None."""

    @abstractmethod
    def worst_ratio(self) -> Fraction:
        """An upper bound of Pr[output | label] / Pr[output | label'] over outputs and labels."""

    @property
    @abstractmethod
    def moments(self) -> tuple[ExactNumbers, ExactNumbers]:
        """[k] E[ŷ] and E[ŷ²] of every row; for outputs that are numbers."""

    @abstractmethod
    def distances(self, rows: Rows, labels: ExactNumbers) -> ExactNumbers:
        """[n] E|ŷ − labels[j]| in the row rows[j]."""

    @abstractmethod
    def unequal(self, rows: Rows, labels: Labels) -> ExactNumbers:
        """[n] Pr[ŷ ≠ labels[j]] in the row rows[j]."""

    @property
    @abstractmethod
    def logarithms(self) -> Losses | None:
        """Bounds [k] of E[ln ŷ] of every row; None where an output is not positive."""

    def output_rounding(self) -> Fraction:
        """A bound on |float64 output − exact output|."""
        return Fraction(0)

    def means(self) -> ExactNumbers:
        """[k] E[ŷ] of every row."""
        return self.moments[0]

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
        mean, square = self.moments
        unit = mean.unit**2
        return ExactNumbers(square.over(unit) - mean.numerators**2, unit)


class ListedAnalysis(Analysis[L]):
    """The analysis of a randomizer whose outputs are listed."""

    def description(self) -> str:
        """The form and its sizes in plain words."""
        r = self.randomizer
        return (
            f"a {r.form} randomizer: {self.rows:,} labels, {len(r.values):,} outputs, "
            f"words of {r.word_bits} bits"
        )

    @abstractmethod
    def _sums(self, numbers: Sequence[int]) -> Whole:
        """[k] Σ over the words of a row of the integer in ``numbers`` [m] that its output has."""

    @cached_property
    def _numbers(self) -> tuple[list[int], int]:
        """The outputs over one denominator."""
        return integers_of(self.randomizer.values)

    @cached_property
    def moments(self) -> tuple[ExactNumbers, ExactNumbers]:
        """[k] E[ŷ] and E[ŷ²] of every row."""
        (numbers, unit), words = self._numbers, self.randomizer.words
        first, second = self._sums(numbers), self._sums([n * n for n in numbers])
        return ExactNumbers(first, words * unit), ExactNumbers(second, words * unit**2)

    def _equal_outputs(self, labels: Labels) -> NDArray[np.int64]:
        """[n] the index of the output that equals each label, or −1."""
        index = {value: i for i, value in enumerate(self.randomizer.values)}
        if isinstance(labels, ExactNumbers) and labels.unit == 1:
            labels = labels.numerators.tolist()  # faster than fractions
        return np.array([index.get(label, -1) for label in labels], dtype=np.int64)

    @cached_property
    def logarithms(self) -> Losses | None:
        """Bounds [k] of E[ln ŷ] of every row; None where an output is not positive."""
        values: Sequence[Any] = self.randomizer.values
        charge(f"{len(values):,} logarithms", seconds=len(values) * _LOGARITHM)
        if min(values) <= 0:
            return None
        logs = [log_bounds(Fraction(v)) for v in values]
        below = self._sums([math.floor(low * _LOG_SCALE) for low, _ in logs])
        above = self._sums([math.ceil(high * _LOG_SCALE) for _, high in logs])
        scale = _LOG_SCALE * self.randomizer.words
        return ExactNumbers(below, scale), ExactNumbers(above, scale)


def integers_of(values: Sequence[Any]) -> tuple[list[int], int]:
    """Outputs that are numbers as integers, and the unit by which they were multiplied."""
    exact = ExactNumbers.of(values)
    return exact.numerators.tolist(), exact.unit
