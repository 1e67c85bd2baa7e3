"""The last fit of more than two classes: a softmax, where the answers were fitted by squares.

Its scores are made of the few directions that the answers tell most about. They are combinations of
the terms' columns, so that the model stays a sum of effects. The penalty is found from the known
noise of the answers, as for one release (``linear/choice.py``). No label is needed.

What the answers do not tell, the fit by squares says. It may predict numbers below 0, with which no
label agrees, so the probabilities nearest to its predictions take their place there. The softmax is
fitted to either, whichever has the smaller estimated loss: where noise is large, to probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int32
from scipy.linalg import cho_solve

from labeldp_trainer.data.labels import Coded
from labeldp_trainer.interactions.stages import Fit
from labeldp_trainer.interactions.terms import BLOCK, MOST_WEIGHT, CellSums
from labeldp_trainer.linear.choice import Observed, least_loss
from labeldp_trainer.linear.sums import stable_root


def nearest_probabilities(predicted: Float32[np.ndarray, "n k"]) -> Float32[np.ndarray, "n k"]:
    """Of every row, the nearest point of the unit simplex."""
    descending = -np.sort(-predicted, axis=1)
    ranks = np.arange(1, predicted.shape[1] + 1, dtype=np.float32)
    shifts = (1 - np.cumsum(descending, axis=1, dtype=np.float32)) / ranks
    active = (descending + shifts > 0).sum(axis=1)
    shift = np.take_along_axis(shifts, np.maximum(active - 1, 0)[:, None], axis=1)
    return np.maximum(predicted + shift, np.float32(0))


def probabilities_moved(
    predicted: Float32[np.ndarray, "n k"], change: Float32[np.ndarray, "n k"]
) -> Float32[np.ndarray, "n k"]:
    """How these points move, to first order, if predictions do: entries above 0 keep their sum."""
    positive: Bool[np.ndarray, "n k"] = nearest_probabilities(predicted) > 0
    mean = (change * positive).sum(axis=1) / positive.sum(axis=1)
    return np.where(positive, change - mean[:, None], np.float32(0)).astype(np.float32)


_LIKELY = 0.5
_MOST = 128  # directions; what the others tell is hidden by noise
_ROUNDING = 1e-6  # of sums in float32, relative to the mean of the diagonal


def softmax_weights(
    fit: Fit, targets: Coded | None
) -> tuple[Float64[np.ndarray, "w k"], Float64[np.ndarray, " k"]]:
    """Weights of the integer columns, and biases: they give logits.

    ``targets`` are the labels of all rows, if they may be looked at. Deterministic.
    """
    directions = _directions(fit)
    found = _Sums.of(fit, directions)
    solved, offset = least_loss(found.observed(fit, targets))
    # no effects, where these are likelier: logits of noise may be large
    solved[1:] *= fit.found.probability if fit.found.probability > _LIKELY else 0.0
    weights = directions.whole @ (directions.unit[:, None] * solved[1:])
    return weights, solved[0] + offset


@dataclass(frozen=True)
class _Directions:
    """Some combinations of the integer columns z: x = z·whole·unit.

    Attributes:
        whole: [w, d] integers up to MOST_WEIGHT.
        unit: [d] of x.
    """

    whole: Int32[np.ndarray, "w d"]
    unit: Float64[np.ndarray, " d"]

    @classmethod
    def of(cls, weights: Float64[np.ndarray, "w d"]) -> _Directions:
        """Weights, nearly."""
        unit = np.maximum(np.abs(weights).max(axis=0), 1e-300) / MOST_WEIGHT
        return cls(np.rint(weights / unit).astype(np.int32), unit)


def _directions(fit: Fit) -> _Directions:
    """Of which the answers tell most, relative to noise: those with the largest eigenvalues of the
    prior covariance of a column of the statistic, in units of its noise. Their coefficients have
    the same prior variance; that of the constant is as large as that of the largest direction."""
    evidence, moments = fit.found.evidence, fit.moments
    level = evidence.usual_level
    prior = level.prior * fit.found.uncertainty.prior
    prior[0] = 0.0  # the constant is a column of its own
    _, _, cross = evidence.whitened(level.label)
    seen = cross * np.sqrt(prior, dtype=np.float32)[None, :]
    values, vectors = np.linalg.eigh((seen @ seen.T).astype(np.float64))
    # where noise hides everything, only the constant was asked about: there are no directions
    kept = np.flatnonzero(values > _ROUNDING * max(values[-1], 1.0))[::-1][:_MOST]
    weights = prior[:, None] * (cross.T @ vectors[:, kept]) / np.sqrt(values[kept])[None, :]
    squares = np.einsum("wd,wd->d", weights, moments.gram @ weights)
    return _Directions.of(
        moments.of_integer_columns(weights / np.sqrt(squares.max(initial=1e-300)))
    )


@dataclass(frozen=True)
class _Sums:
    """Public sums over all rows: w the shares of rows, f the fit, p the probabilities nearest to
    it, and x after a 1.

    Attributes:
        cells: of the terms.
        rows: [n, 1 + d] x.
        predicted: [n, k] f.
        square: [1 + d, 1 + d] Σ w·x·xᵀ.
        design: [1 + d, columns] Σ w·x·zᵀ of centred and scaled columns z.
        asked: [m, 1 + d] Σ q·w·xᵀ.
        predicted_sums, expected: [1 + d, k] Σ w·x ⊗ f, and of p.
        total: [m] Σ q.
        expected_answers: [m, k] Σ q ⊗ p.
    """

    cells: CellSums
    rows: Float32[np.ndarray, "n d"]
    predicted: Float32[np.ndarray, "n k"]
    square: Float64[np.ndarray, "d d"]
    design: Float64[np.ndarray, "d w"]
    asked: Float64[np.ndarray, "m d"]
    predicted_sums: Float64[np.ndarray, "d k"]
    expected: Float64[np.ndarray, "d k"]
    total: Float64[np.ndarray, " m"]
    expected_answers: Float64[np.ndarray, "m k"]

    @classmethod
    def of(cls, fit: Fit, directions: _Directions) -> _Sums:
        """Block by block."""
        weights, base = fit.raw()
        means = _Directions.of(weights)
        n, d, k = len(fit.terms.codes), len(directions.unit) + 1, len(base)
        m, width = fit.found.evidence.cross.shape
        found = cls(
            CellSums.of(fit.terms),
            np.ones((n, d), np.float32),
            np.empty((n, k), np.float32),
            np.zeros((d, d)),
            np.zeros((d, width)),
            np.zeros((m, d)),
            np.zeros((d, k)),
            np.zeros((d, k)),
            np.zeros(m),
            np.zeros((m, k)),
        )
        both = np.concatenate([directions.whole, means.whole], axis=1)
        for part, total in found.cells.products(both):
            found.rows[part, 1:] = total[:, : d - 1] * directions.unit
            found.predicted[part] = total[:, d - 1 :] * means.unit + base
        factors = fit.answers.factors
        for block in fit.terms.parts(BLOCK):
            own, f = found.rows[block] * factors[block, None], found.predicted[block]
            q, p = fit.answers.rows(block), nearest_probabilities(f)
            found.square[:] += own.T @ found.rows[block]
            found.design[:] += found.cells.adder(block).sums(own)
            found.asked[:] += q.T @ own
            found.predicted_sums[:] += own.T @ f
            found.expected[:] += own.T @ p
            found.total[:] += q.sum(axis=0, dtype=np.float64)
            found.expected_answers[:] += q.T @ p
        centred = found.design - found.square[:, :1] * fit.moments.mean[None, :]
        found.design[:] = centred * fit.moments.scale[None, :]
        return found

    def observed(self, fit: Fit, targets: Coded | None) -> Observed:
        """Σ w·x ⊗ t(y), as far as Σ q ⊗ t(y) tells it; the fit says the rest."""
        evidence, answers, prior = fit.found.evidence, fit.answers, fit.found.uncertainty.prior
        noise = np.diag(answers.noise())
        statistic, k = answers.statistic(), len(fit.base)
        # the entries of a one-hot label have the sum 1
        statistic -= (statistic.sum(axis=1) - self.total)[:, None] / k
        label = float((fit.base * (1 - fit.base)).mean())
        told = _solved(label * evidence.gram + noise, label * self.asked)
        same = _solved(self.square, self.asked.T @ told).T  # what S says of x
        factors = evidence.factors(prior)

        def change(
            noise: Float64[np.ndarray, "m k"],
        ) -> tuple[Float64[np.ndarray, "d k"], tuple[Float64[np.ndarray, "d k"], ...]]:
            moved = evidence.means(prior, factors, noise)
            expected = self._moved(fit, moved)
            return told.T @ noise + expected - same @ expected, (self.design @ moved, expected)

        return Observed(
            link="softmax",
            rows=self.rows,
            factors=answers.factors,
            sums=self.expected[0],
            noise=noise,
            seen=told.T @ (statistic - self.expected_answers) + self.expected,
            goals=(self.predicted_sums, self.expected),
            floor=float(told[:, 0] @ noise @ told[:, 0]) ** 0.5,
            sums_rows=lambda step: answers.rows(slice(None, None, step)),
            forward=lambda weights: told @ weights,
            change=change,
            targets=targets,
        )

    def _moved(
        self, fit: Fit, coefficients: Float64[np.ndarray, "w k"]
    ) -> Float64[np.ndarray, "d k"]:
        """How Σ w·x ⊗ p moves, to first order, if coefficients of the fit do."""
        weights, base = fit.moments.raw(coefficients)
        change, factors = _Directions.of(weights), fit.answers.factors
        found = np.zeros((self.rows.shape[1], len(base)))
        for part, total in self.cells.products(change.whole):
            moved = (total * change.unit + base).astype(np.float32)
            own = self.rows[part] * factors[part, None]
            found += own.T @ probabilities_moved(self.predicted[part], moved)
        return found


def _solved(
    square: Float64[np.ndarray, "d d"], right: Float64[np.ndarray, "d r"]
) -> Float64[np.ndarray, "d r"]:
    """square⁻¹·right, without what float32 does not tell from 0."""
    root = stable_root(
        square + _ROUNDING * float(square.trace()) / len(square) * np.eye(len(square))
    )
    return np.asarray(cho_solve((root, True), right, check_finite=False))
