"""Questions about labels, and their answers: the interface between learning and privacy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float, Float32, Float64, Int32
from scipy.linalg import qr

from labeldp_trainer.interactions.columns import VALUE_BITS
from labeldp_trainer.interactions.evidence import Uncertainty
from labeldp_trainer.interactions.terms import CHUNK, MOST_WEIGHT, CellSums, Term, Terms
from labeldp_trainer.linear.sums import stable_root
from labeldp_trainer.one_release.plan import water_filling
from labeldp_trainer.one_release.rows import SCALE

MOST_ROWS_OF_GRAM = 10_000
_USUAL = 1 << 12  # an entry of a row before it is scaled: sums of so small ones fit 16 bits
_LARGEST = 1 << 23  # an entry of a row before it is scaled: its square is added up in int64
_EXACT = 1 << 53
_ROUNDS = 3  # of subspace iteration, in float32: the rows need not be the very best ones
_SPARE = 32
_LEAST_LENGTH = 1e-6  # of the largest: what is below is rounding


@dataclass(frozen=True)
class RowWeights:
    """How a row of a design becomes an integer row of a stage.

    A row z becomes r = (z·weights)/2^shift, in which the products with the constant and with each
    term are rounded, and then scale·r/max(‖r‖, floor), rounded.

    Attributes:
        weights: [w, m] integers up to MOST_WEIGHT.
        shift: so that r is small.
        floor: rows that are shorter keep their proportion.
    """

    weights: Int32[np.ndarray, "w m"]
    shift: int
    floor: float

    def integers(
        self, total: Float64[np.ndarray, "b m"], shares: Float[np.ndarray, " b"]
    ) -> Float64[np.ndarray, "b m"]:
        """The integer rows of r, in float64, in its place; shares multiply them."""
        r = np.clip(total, -_LARGEST, _LARGEST, out=total)
        squares = np.einsum("bm,bm->b", r, r)
        long = squares >= _EXACT  # whole numbers below it have been added up exactly
        squares[long] = np.square(r[long].astype(np.int64)).sum(axis=1)
        r *= (SCALE / np.maximum(np.sqrt(squares), self.floor) * shares)[:, None]
        np.rint(r, out=r)
        return r


@dataclass(frozen=True)
class DesignMoments:
    """Of the design's columns over the rows: [w] means, [w] scales, and [w, w] Σ z·zᵀ/n of centred
    and scaled columns, all of a regular sample of the rows."""

    mean: Float64[np.ndarray, " w"]
    scale: Float64[np.ndarray, " w"]
    gram: Float32[np.ndarray, "w w"]

    def raw(
        self, weights: Float64[np.ndarray, "w m"]
    ) -> tuple[Float64[np.ndarray, "w m"], Float64[np.ndarray, " m"]]:
        """The weights of integer columns for those of centred and scaled ones, and a constant
        beside them."""
        found: Float64[np.ndarray, "w m"] = weights * self.scale[:, None]
        return found, -(self.mean[1:] @ found[1:])

    def of_integer_columns(self, weights: Float64[np.ndarray, "w m"]) -> Float64[np.ndarray, "w m"]:
        """The weights with the constant in the first column."""
        found, constant = self.raw(weights)
        found[0] += constant / (1 << VALUE_BITS)
        return found


def design_moments(terms: Terms) -> DesignMoments:
    """The constant is not centred. The columns of a term have together a mean square of 1."""
    sample = terms.of_rows(slice(None, None, -(-len(terms.codes) // MOST_ROWS_OF_GRAM)))
    z = sample.rows(slice(None))
    mean = z.mean(axis=0, dtype=np.float64)
    mean[0] = 0.0
    z -= mean.astype(np.float32)
    squares = np.einsum("nw,nw->w", z, z, dtype=np.float64) / len(z)
    own = np.bincount(terms.term_of + 1, squares, len(terms.chosen) + 1)
    scale = 1 / np.sqrt(np.maximum(own, 1e-12 * squares[0]))[terms.term_of + 1]
    z *= scale.astype(np.float32)
    gram = z.T @ z
    gram /= np.float32(len(z))
    # the constant's products with centred columns vanish
    gram[0, 1:] = gram[1:, 0] = 0.0
    return DesignMoments(mean, scale, gram)


def row_weights(
    terms: Terms,
    moments: DesignMoments,
    uncertainty: Uncertainty,
    noise: float,
    *,
    most: int,
    power: float,
    quantile: float,
) -> RowWeights:
    """The weights of a stage whose noise on a sum of rows of length 1 is ``noise``."""
    values, images = _leading(uncertainty, moments.gram, most)
    values = np.maximum(values, 1e-300)
    kept = values > 1e-9 * values[0]
    values, images = values[kept], images[:, kept]
    shaped = values**power
    shaped *= values.sum() / shaped.sum()
    precision = water_filling(shaped, (len(terms.codes) / noise) ** 2)
    used = precision > 0
    metric = np.sqrt(precision[used] / precision.max())
    weights = images[:, used] * (metric / np.sqrt(values[used]))[None, :]
    weights = moments.of_integer_columns(weights)
    whole = np.rint(weights * (MOST_WEIGHT / np.abs(weights).max())).astype(np.int32)
    return _fitted(terms, whole, quantile)


def _leading(
    uncertainty: Uncertainty, gram: Float32[np.ndarray, "w w"], most: int
) -> tuple[Float64[np.ndarray, " d"], Float64[np.ndarray, "w d"]]:
    """The largest eigenvalues of rootᵀ·gram·root with root·rootᵀ the covariance, and root times
    their vectors; of many columns by subspace iteration, which needs no root."""
    if len(gram) <= 2 * most:
        covariance = np.diag(uncertainty.prior) - uncertainty.gain.T @ uncertainty.gain
        deviations = np.sqrt(np.maximum(np.diag(covariance), 1e-30))
        root = stable_root(covariance / np.outer(deviations, deviations)) * deviations[:, None]
        values, vectors = np.linalg.eigh(root.T @ gram @ root)
        return values[::-1][:most], root @ vectors[:, ::-1][:, :most]
    deviations = np.sqrt(np.maximum(uncertainty.prior, 1e-30)).astype(np.float32)
    gain = uncertainty.gain / deviations[None, :]
    known = gain.astype(np.float32)
    gram = gram * deviations[:, None]
    gram *= deviations[None, :]
    basis = np.random.default_rng(0).normal(size=(len(gram), most + _SPARE)).astype(np.float32)
    for _ in range(_ROUNDS):
        seen = gram @ basis
        seen -= known.T @ (known @ seen)
        basis, _ = qr(seen, mode="economic", overwrite_a=True, check_finite=False)
    # covariance·gram is symmetric in the products that gram gives
    seen = (gram @ basis).astype(np.float64)
    lengths, apart = np.linalg.eigh(basis.T.astype(np.float64) @ seen)
    kept = lengths > _LEAST_LENGTH * lengths[-1]  # columns may depend on one another
    apart = apart[:, kept] / np.sqrt(lengths[kept])
    seen = seen @ apart
    taken = gain @ seen
    values, turn = np.linalg.eigh(seen.T @ seen - taken.T @ taken)
    values, turn = np.maximum(values[::-1][:most], 0.0), apart @ turn[:, ::-1][:, :most]
    return values, deviations[:, None] * (basis @ (turn * np.sqrt(values)))


def _fitted(terms: Terms, weights: Int32[np.ndarray, "w m"], quantile: float) -> RowWeights:
    """With a shift and a floor that suit a regular sample of the rows."""
    step = max(len(terms.codes) // CHUNK, 1)
    z = terms.of_rows(slice(None, None, step)).rows(slice(None))
    found = z @ weights.astype(np.float32)
    shift = max(int(np.ceil(np.log2(max(np.abs(found).max(), 1.0) / _USUAL))), 0)
    lengths = np.sqrt(np.square(np.rint(found * 2.0**-shift)).sum(axis=1))
    return RowWeights(weights, shift, float(max(np.rint(np.quantile(lengths, quantile)), 1.0)))


# What can be asked about labels, and what answers: the interface between learning and privacy.

_LEAST_SHARE = 1e-3  # of a class
_APART = 1e-9  # of the size of predictions


@dataclass(frozen=True)
class Guess:
    """The expectations of effects before any answer, and how evenly a stage asks.

    Attributes:
        mains, interactions: shares of the variance of labels.
        new: shares of what is left, for the new terms of the second stage and of later ones.
        powers: of what is not known, by stage: with 1, what is asked minimises the expected error;
            with less, more is asked of what is expected to be small.
    """

    mains: float
    interactions: float
    new: tuple[float, ...]
    powers: tuple[float, ...]


BROAD = Guess(0.6, 0.3, (0.2, 0.1, 0.05), (0.4, 0.7, 0.9, 1.0))
MAINLY_MAINS = Guess(0.85, 0.05, (0.03, 0.02, 0.01), (1.0, 1.0, 1.0, 1.0))
"""For noise that hides most interactions, as that of classes does, which are not centred."""
MEAN_ALONE = Guess(0.0, 0.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0, 1.0))
"""For labels that are nearly all alike: there are no terms, and what is asked is their mean."""


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

    def over(
        self, table: Terms, exposure: Float32[np.ndarray, " n"] | None = None
    ) -> Float64[np.ndarray, " n"]:
        """The predictions for all rows of a table, whichever of its terms are chosen.

        They are the same on every processor. Without terms, exposure does not matter: it is the
        middle of the labels.
        """
        total = table.of(self.terms).weighted(self.weights.astype(np.float64))
        found = np.clip(self.base + self.unit * total, *self.ends)
        return found if exposure is None or not self.terms else found * exposure


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
        self, table: Terms, shares: Float[np.ndarray, " n"]
    ) -> Iterator[tuple[slice, Float64[np.ndarray, "b m"]]]:
        """The q of a table, whichever of its terms are chosen, part by part; shares multiply them.

        They are the same on every processor.
        """
        rows, design = self.rows, CellSums.of(table.of(self.terms))
        for part, total in design.products(rows.weights, rows.shift):
            yield part, rows.integers(total, shares[part])


@dataclass(frozen=True)
class FirstGuess:
    """The facts of labels before any feature is used.

    Attributes:
        base: [K] a prediction without features.
        variance: of true labels, which features may explain; a mean over outputs.
        clip: half the range in which nearly all labels lie.
        ends: of numbers, on the scale on which they are learned; None of classes.
    """

    base: Float64[np.ndarray, " k"]
    variance: float
    clip: float
    ends: tuple[float, float] | None = None

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


@dataclass(frozen=True)
class MeanCurve:
    """The mean label of a prediction on another scale: straight between points.

    Attributes:
        points: [g] ascending predictions.
        means: [g] of labels.
    """

    points: Float64[np.ndarray, " g"]
    means: Float64[np.ndarray, " g"]

    @property
    def slopes(self) -> Float64[np.ndarray, " s"]:
        """Between points; 0 where float32 does not tell them apart, as of predictions that are all
        alike."""
        widths, size = np.diff(self.points), np.abs(self.points).max(initial=1.0)
        rise = np.zeros_like(widths)
        return np.divide(np.diff(self.means), widths, out=rise, where=widths > _APART * size)

    def over(self, predicted: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        """The mean labels."""
        return np.interp(predicted, self.points, self.means)


class Answered(NamedTuple):
    """What a source says.

    Attributes:
        question: that is answered.
        shares: [n] that multiply the rows.
        sums: in units of labels and of rows of length 1.
        noise: the deviation of their noise.
        predicted: [n] that labels were compared with; None of classes.
    """

    question: LabelQuestion
    shares: Float[np.ndarray, " n"]
    sums: Float64[np.ndarray, "m k"]
    noise: float
    predicted: Float64[np.ndarray, " n"] | None


KeepRows = Callable[[slice, Float64[np.ndarray, "b m"]], None]
"""Called with some integer rows of a question."""


class Source(Protocol):
    """Answers questions about labels, one after another.

    Attributes:
        extra: variance of the labels in answers beyond that of true ones.
        visible: whether labels may be looked at: sums have no noise of their own, and rows that no
            bin tells apart follow one another.
        most_sums: for each output, of a question.
        refined: main effects, and pairs, that get more functions after a stage; without any, noise
            hides pairs.
        guess: what is asked is decided with.
        exposure: [n] that multiplies what is predicted of a row, of mean 1; or None.
    """

    extra: float
    visible: bool
    most_sums: int
    refined: int
    guess: Guess
    exposure: Float32[np.ndarray, " n"] | None

    def labels(self) -> FirstGuess:
        """Where labels lie."""
        ...

    def noise(self, clip: float) -> float:
        """About the deviation that the next sums will have, in units of labels."""
        ...

    def sums(self, question: LabelQuestion, keep: KeepRows) -> Answered:
        """The answer. Integer rows that are computed for it are kept."""
        ...

    def residuals(self, offset: Offset) -> Residuals:
        """The sizes of residuals of numbers."""
        ...

    def curve(self, offset: Offset, spread: float) -> MeanCurve | None:
        """From final predictions of numbers, whose residuals have this variance, to mean labels;
        None if predictions are mean labels."""
        ...
