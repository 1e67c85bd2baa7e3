"""What the verifier asks of every exact form that a file can decode to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.artifact import write_model
from labeldp_compile.randomizer import Domain, Randomizer

Bounds = tuple[Fraction, Fraction]
Rows = NDArray[np.int64]
Words = NDArray[np.uint64]
MAX_PAIRS = 1 << 18


class TooMuchWorkError(Exception):
    """The tables are legal, but take longer to check than any compiled artifact does."""


class Form(ABC):
    """A randomizer as decoded from a file, and everything that can be derived from its integers.

    Written independently of the compiler's own analysis.
    """

    randomizer: Randomizer

    @abstractmethod
    def description(self) -> str:
        """The form and its sizes in plain words."""

    @abstractmethod
    def why_not_distributions(self) -> str | None:
        """What keeps the integers from being one distribution a label, or None."""

    @abstractmethod
    def worst_ratio(self) -> Fraction:
        """An upper bound of Pr[output | label] / Pr[output | label'] over outputs and labels."""

    @abstractmethod
    def biases(self, labels: Sequence[Fraction]) -> list[Fraction]:
        """[k] E[output | y] − y, exact."""

    @abstractmethod
    def loss_of_labels(
        self, labels: Sequence[Any], weights: Sequence[int], loss: str
    ) -> list[Bounds]:
        """[k] bounds of E[ℓ(ŷ, y) | y]; zeros where the weight is 0.

        ``squared`` ½(ŷ − y)², ``absolute`` |ŷ − y|, ``poisson`` ŷ − y·ln ŷ, ``zero_one`` 1[ŷ ≠ y].
        """

    @abstractmethod
    def critical_words(self) -> tuple[Rows, Words]:
        """Row indices [n] and words [n, w] on both sides of every threshold, or of many."""

    @abstractmethod
    def outputs_of(self, rows: Rows, words: Words) -> NDArray[Any]:
        """[n] what the integers demand for row indices [n] and words [n, w]."""

    def output_rounding(self) -> Fraction:
        """A bound on |float64 output − exact output|."""
        return Fraction(0)

    def rebuild(self, domain: Domain, certificate: dict[str, Any]) -> bytes:
        """The file that these integers define."""
        return write_model(domain, self.randomizer, certificate)

    def expected_loss(self, labels: Sequence[Any], weights: Sequence[int], loss: str) -> Bounds:
        """Bounds of E ℓ(ŷ, y), y drawn in proportion to the weights; equal if rational."""
        bounds = self.loss_of_labels(labels, weights, loss)
        total = sum(weights)
        low = sum((w * lo for w, (lo, _) in zip(weights, bounds, strict=True)), Fraction(0))
        high = sum((w * hi for w, (_, hi) in zip(weights, bounds, strict=True)), Fraction(0))
        return low / total, high / total
