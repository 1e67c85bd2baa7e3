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
from labeldp_compile.randomizer.strays import Strays, mixed

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
        """[k] E[output | y] − y, exact, if every label reaches its own row."""

    @abstractmethod
    def loss_of_labels(
        self, labels: Sequence[Any], weights: Sequence[int], loss: str
    ) -> list[Bounds]:
        """[k] bounds of E[ℓ(ŷ, y) | y], if y reaches its own row; zeros where the weight is 0.

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

    def true_biases(self, labels: Sequence[Fraction], strays: Strays) -> list[Fraction]:
        """[k] E[output | y] − y, exact, with the rows that labels stray to."""
        own = self.biases(labels)
        if not strays:
            return own
        means = [bias + y for bias, y in zip(own, labels, strict=True)]
        return [mixed(strays, i, means.__getitem__) - y for i, y in enumerate(labels)]

    def expected_loss(
        self, labels: Sequence[Any], weights: Sequence[int], loss: str, strays: Strays | None = None
    ) -> Bounds:
        """Bounds of E ℓ(ŷ, y), y drawn in proportion to the weights; equal if rational.

        A label reaches its own row, except for ``strays``.
        """
        # Weights of the rows that a label reaches: its own, the one before and the one behind.
        own: list[Fraction | int] = list(weights)
        before, behind = [Fraction(0)] * len(own), [Fraction(0)] * len(own)
        for i, (row, share) in (strays or {}).items():
            own[i] -= weights[i] * share
            (before if row < i else behind)[row] = weights[i] * share
        low = high = Fraction(0)
        for shares, seen in (
            (own, labels),
            (before, [*labels[1:], labels[-1]]),
            (behind, [labels[0], *labels[:-1]]),
        ):
            if not any(shares):
                continue
            bounds = self.loss_of_labels(seen, [int(share != 0) for share in shares], loss)
            low += sum((w * lo for w, (lo, _) in zip(shares, bounds, strict=True)), Fraction(0))
            high += sum((w * hi for w, (_, hi) in zip(shares, bounds, strict=True)), Fraction(0))
        return low / sum(weights), high / sum(weights)
