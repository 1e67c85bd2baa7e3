"""The rows of a stage: from what is not known yet to integer weights. No label is needed.

Rows are the leading components of what the model may still be, ``Z·P·Zᵀ`` with P the covariance of
the coefficients given all earlier stages, each with a precision by water-filling, as in
``one_release/design.py``. They are rounded to integers, on which it is measured what a label can
change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int32

from labeldp_trainer.interactions.columns import VALUE_BITS
from labeldp_trainer.interactions.terms import CHUNK, MOST_WEIGHT, Terms
from labeldp_trainer.linear.roots import stable_root
from labeldp_trainer.one_release.design import water_filling
from labeldp_trainer.one_release.lattice import UNIT

MOST_ROWS_OF_GRAM = 10_000
_LARGEST = 1 << 23  # an entry of a row before it is scaled: its square is added up in int64
_ROUNDS = 3  # of subspace iteration, in float32: the rows need not be the very best ones
_SPARE = 32


@dataclass(frozen=True)
class RowWeights:
    """How a row of a design becomes an integer row of a stage.

    A row z becomes r = (z·weights)/2^shift, rounded, and then scale·r/max(‖r‖, floor), rounded.

    Attributes:
        weights: [w, m] integers up to MOST_WEIGHT.
        shift: so that r is small.
        floor: rows that are shorter keep their proportion.
    """

    weights: Int32[np.ndarray, "w m"]
    shift: int
    floor: float

    def integers(
        self, z: Float32[np.ndarray, "b w"], shares: np.ndarray | None = None
    ) -> Float64[np.ndarray, "b m"]:
        """The integer rows, in float64; shares multiply them."""
        r = np.rint(z.astype(np.float64) @ self.weights.astype(np.float64) * 2.0**-self.shift)
        r = np.clip(r, -_LARGEST, _LARGEST)
        lengths = np.sqrt(np.square(r.astype(np.int64)).sum(axis=1).astype(np.float64))
        factor = (UNIT - UNIT / 1024) / np.maximum(lengths, self.floor)
        if shares is not None:
            factor = factor * shares
        found: Float64[np.ndarray, "b m"] = np.rint(r * factor[:, None])
        return found


@dataclass(frozen=True)
class DesignMoments:
    """Of the design's columns over the rows: [w] means, [w] scales, and [w, w] Σ z·zᵀ/n of centred
    and scaled columns, all of a regular sample of the rows."""

    mean: Float64[np.ndarray, " w"]
    scale: Float64[np.ndarray, " w"]
    gram: Float64[np.ndarray, "w w"]


def design_moments(terms: Terms) -> DesignMoments:
    """The constant is not centred. The columns of a term have together a mean square of 1."""
    n = len(terms.codes)
    step = -(-n // MOST_ROWS_OF_GRAM)
    sample = Terms(terms.columns, terms.codes[::step], terms.chosen)
    gram, total = np.zeros((terms.width, terms.width)), np.zeros(terms.width)
    for _, z in sample.chunks():
        gram += z.T @ z
        total += z.sum(axis=0, dtype=np.float64)
    count = len(sample.codes)
    mean, gram = total / count, gram / count
    mean[0] = 0.0
    gram -= mean[:, None] * mean[None, :]
    # the constant's products with centred columns vanish
    gram[0, 1:] = gram[1:, 0] = 0.0
    squares = np.bincount(terms.term_of + 1, np.diag(gram), len(terms.chosen) + 1)
    scale = 1 / np.sqrt(np.maximum(squares, 1e-12 * gram[0, 0]))[terms.term_of + 1]
    return DesignMoments(mean, scale, gram * scale[:, None] * scale[None, :])


def row_weights(
    terms: Terms,
    moments: DesignMoments,
    covariance: Float64[np.ndarray, "w w"],
    noise: float,
    *,
    most: int,
    power: float,
    quantile: float,
) -> RowWeights:
    """The weights of a stage whose noise on a sum of rows of length 1 is ``noise``."""
    deviations = np.sqrt(np.maximum(np.diag(covariance), 1e-30))
    relative = covariance / deviations[:, None] / deviations[None, :]
    root = stable_root(relative) * deviations[:, None]
    values, vectors = _leading(root, moments.gram, most)
    values = np.maximum(values, 1e-300)
    kept = values > 1e-9 * values[0]
    values, vectors = values[kept], vectors[:, kept]
    shaped = values**power
    shaped *= values.sum() / shaped.sum()
    precision = water_filling(shaped, (len(terms.codes) / noise) ** 2)
    used = precision > 0
    metric = np.sqrt(precision[used] / precision.max())
    weights = root @ (vectors[:, used] * (metric / np.sqrt(values[used]))[None, :])
    weights *= moments.scale[:, None]
    weights[0] -= moments.mean[1:] @ weights[1:] / (1 << VALUE_BITS)
    whole = np.rint(weights * (MOST_WEIGHT / np.abs(weights).max())).astype(np.int32)
    return _fitted(terms, whole, quantile)


def _leading(
    root: Float64[np.ndarray, "w w"], gram: Float64[np.ndarray, "w w"], most: int
) -> tuple[Float64[np.ndarray, " d"], Float64[np.ndarray, "w d"]]:
    """The largest eigenvalues and their vectors of rootᵀ·gram·root, by subspace iteration."""
    width = len(gram)
    if width <= 2 * most:
        values, vectors = np.linalg.eigh(root.T @ gram @ root)
        return values[::-1][:most], vectors[:, ::-1][:, :most]
    half, thin = root.astype(np.float32), gram.astype(np.float32)
    basis = np.random.default_rng(0).normal(size=(width, most + _SPARE)).astype(np.float32)
    for _ in range(_ROUNDS):
        basis, _ = np.linalg.qr(half.T @ (thin @ (half @ basis)))
    image = half @ basis
    values, turn = np.linalg.eigh((image.T @ (thin @ image)).astype(np.float64))
    return values[::-1][:most], (basis @ turn)[:, ::-1][:, :most]


def _fitted(terms: Terms, weights: Int32[np.ndarray, "w m"], quantile: float) -> RowWeights:
    """With a shift and a floor that suit a regular sample of the rows."""
    step = max(len(terms.codes) // CHUNK, 1)
    z = Terms(terms.columns, terms.codes[::step], terms.chosen).rows(slice(None))
    found = z.astype(np.float64) @ weights.astype(np.float64)
    shift = max(int(np.ceil(np.log2(max(np.abs(found).max(), 1.0) / (1 << 20)))), 0)
    lengths = np.sqrt(np.square(np.rint(found * 2.0**-shift)).sum(axis=1))
    return RowWeights(weights, shift, float(max(np.rint(np.quantile(lengths, quantile)), 1.0)))
