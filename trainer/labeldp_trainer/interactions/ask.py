"""What can be asked about labels, and what answers: the interface between learning and privacy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float64, Int32

from labeldp_trainer.interactions.cells import CellSums
from labeldp_trainer.interactions.design import RowWeights
from labeldp_trainer.interactions.terms import Term, Terms

_LEAST_SHARE = 1e-3  # of a class


@dataclass(frozen=True)
class Guess:
    """What is expected of effects before any answer, and how evenly a stage asks.

    Attributes:
        mains, interactions: shares of the variance of labels.
        new: shares of what is left, for the new terms of the second and the third stage.
        powers: of what is not known, by stage: with 1, what is asked minimises the expected error;
            with less, more is asked of what is expected to be small.
    """

    mains: float
    interactions: float
    new: tuple[float, float]
    powers: tuple[float, float, float]


BROAD = Guess(0.6, 0.3, (0.2, 0.1), (0.4, 0.8, 1.0))
MAINLY_MAINS = Guess(0.85, 0.05, (0.03, 0.02), (1.0, 1.0, 1.0))
"""For noise that hides most interactions, as that of classes does, which are not centred."""


@dataclass(frozen=True)
class Offset:
    """A prediction that labels are compared with: base + unit·(z·weights), within ``ends``.

    Attributes:
        terms: of z.
        weights: [w] integers up to MOST_WEIGHT.
        unit: of them.
        base: without them.
        ends: of labels.
    """

    terms: tuple[Term, ...]
    weights: Int32[np.ndarray, " w"]
    unit: float
    base: float
    ends: tuple[float, float]

    def over(self, table: Terms) -> Float64[np.ndarray, " n"]:
        """The predictions for all rows of a table, whichever of its terms are chosen.

        They are the same on every processor.
        """
        total = table.of(self.terms).weighted(self.weights.astype(np.float64))
        return np.clip(self.base + self.unit * total, *self.ends)


@dataclass(frozen=True)
class LabelQuestion:
    """The sum Σ q ⊗ t of a stage: rows q of terms, and what t is of a label.

    Attributes:
        terms: of the rows.
        rows: from a row of the terms to q.
        offset: t is the label less this, clipped to ± ``clip``. None for classes, whose t is
            one-hot.
        clip: in units of labels.
    """

    terms: tuple[Term, ...]
    rows: RowWeights
    offset: Offset | None
    clip: float

    @property
    def size(self) -> int:
        """How many sums there are for each output, m."""
        return int(self.rows.weights.shape[1])

    def integer_rows(
        self, table: Terms, shares: np.ndarray | None
    ) -> Iterator[tuple[slice, Float64[np.ndarray, "b m"]]]:
        """The q of a table, whichever of its terms are chosen, part by part; shares multiply them.

        They are the same on every processor.
        """
        for part, total in CellSums.of(table.of(self.terms)).products(self.rows.weights):
            yield part, self.rows.integers(total, None if shares is None else shares[part])


@dataclass(frozen=True)
class FirstGuess:
    """What is known of labels before any feature is used.

    Attributes:
        base: [K] a prediction without features.
        variance: of true labels, which features may explain; a mean over outputs.
        clip: half the range in which nearly all labels lie.
    """

    base: Float64[np.ndarray, " k"]
    variance: float
    clip: float

    @classmethod
    def of_classes(cls, shares: Float64[np.ndarray, " k"]) -> FirstGuess:
        """From about the shares of classes."""
        base = np.clip(shares, _LEAST_SHARE, 1.0)
        base /= base.sum()
        return cls(base, float((base * (1 - base)).mean()), 1.0)


@dataclass(frozen=True)
class Residuals:
    """Sizes of residuals.

    Attributes:
        square: their mean square.
        clip: a size that nearly all of them have at most.
        shared: the mean product of two rows that no bin tells apart, such as those of a person who
            comes back; 0 if unknown.
    """

    square: float
    clip: float
    shared: float = 0.0


KeepRows = Callable[[slice, Float64[np.ndarray, "b m"]], None]
"""Called with some integer rows of a question."""


class Source(Protocol):
    """Answers questions about labels, one after another.

    Attributes:
        extra: variance of the labels in answers beyond that of true ones.
        visible: whether labels may be looked at: sums have no noise of their own, and rows that no
            bin tells apart follow one another.
        most_sums: for each output, of a question.
        guess: what is asked is decided with.
    """

    extra: float
    visible: bool
    most_sums: int
    guess: Guess

    def labels(self) -> FirstGuess:
        """Where labels lie."""
        ...

    def noise(self, clip: float) -> float:
        """About the deviation that the next sums will have, in units of labels."""
        ...

    def sums(
        self, question: LabelQuestion, keep: KeepRows
    ) -> tuple[LabelQuestion, Float64[np.ndarray, "m k"], float]:
        """Sums in units of labels and of rows of length 1, the question that they answer, and the
        deviation of their noise. Integer rows that are computed for them are kept."""
        ...

    def residuals(self, offset: Offset) -> Residuals:
        """The sizes of residuals of numbers."""
        ...
