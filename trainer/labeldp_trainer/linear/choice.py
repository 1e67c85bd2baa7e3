"""How much a softmax or Poisson model is penalised, and how sure it is: from the statistic itself.

A model that was fitted to a statistic S agrees with S more than with what S is without noise. By
how much, on average, is the covariance of noise and fit (Efron 2004, "The estimation of prediction
error"). For Gaussian noise it is E tr(Cov(noise)·∂W/∂S) (Stein's lemma). The noise is known: that
of privacy is stated, that of labels given features follows from the model. With a draw Z of such
noise, ⟨Z, ∂W/∂S·Z⟩ estimates the trace. So Σ w·A(x·W) − ⟨W, S⟩ + ⟨Z, ∂W/∂S·Z⟩ estimates the loss
of fresh labels of the same rows. All of this is post-processing, and the draws have a fixed seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64
from scipy.special import softmax

from labeldp_trainer.data.coded import Coded
from labeldp_trainer.linear.canonical import CanonicalFit, Link, unit_coordinates
from labeldp_trainer.linear.roots import stable_root
from labeldp_trainer.linear.sums import Posterior, Sums
from labeldp_trainer.linear.temperature import temperature

_PENALTIES = tuple(10 ** (-step / 2) for step in range(10))
"""With the first, a softmax has the direction of ridge."""
_SURE = 2.0
"""Standard deviations by which the estimate must fall: a convention. With 1, noise sometimes chose
on training rows that were held out (income over $50,000, several rows a user)."""
_PATIENCE = 2  # penalties in a row with no such fall, after which no smaller one is tried
_PROBED, _MOST_PROBES = 1000, 8  # numbers of all draws of noise together, for a steady mean
_MOST_SCORES = 1 << 25
_LEAST_MEAN = 1e-6


def least_loss(
    link: Link, sums: Sums, found: Posterior, clean: Float64[np.ndarray, "d k"]
) -> Float64[np.ndarray, "d k"]:
    """[d, k] weights of the used columns: logits, or logarithms of means.

    ``clean`` is the posterior mean of Σ w·x ⊗ t(y). Penalties fall as long as the estimated loss
    falls by more than its noise explains. Deterministic.
    """
    search = _Search(link, sums, found, clean)
    best, failed, weights = None, 0, np.zeros_like(search.goal)
    for penalty in _PENALTIES:
        weights = search.fit.solve(search.goal, penalty, weights)
        trial = search.tried(weights, penalty)
        if best is None or trial.loss < best.loss - _SURE * search.deviation(trial, best):
            best, failed = trial, 0
        elif (failed := failed + 1) == _PATIENCE:
            break
    assert best is not None
    return search.of_columns(best)


@dataclass(frozen=True)
class _Trial:
    """A model with one penalty.

    Attributes:
        weights: [r, k] in unit coordinates.
        moved: [r, k] by how much a draw of noise moves the weights.
        beta: by what all weights are multiplied.
        loss: its estimate for a row, less a number that all models share.
    """

    weights: Float64[np.ndarray, "r k"]
    moved: Float64[np.ndarray, "r k"]
    beta: float
    loss: float


class _Search:
    """Models of one statistic."""

    def __init__(
        self, link: Link, sums: Sums, found: Posterior, clean: Float64[np.ndarray, "d k"]
    ) -> None:
        self._sums, self._found = sums, found
        used, factors = sums.used(), sums.factors()
        self._total = float(factors.sum(dtype=np.float64))
        self._to_unit = unit_coordinates(used, factors)
        self._offset = self._base(clean)
        rows = used @ self._to_unit.astype(np.float32)
        self.fit = CanonicalFit(link, rows, factors, self._offset)
        # a regular sample is enough for temperatures and noise, but not for a model of rare classes
        step = -(-len(used) * clean.shape[1] // _MOST_SCORES)
        self._looked = slice(None, None, step)
        self._used, self._rows, part = used[::step], rows[::step], factors[::step]
        self._share = part / np.float32(part.sum(dtype=np.float64))
        self.goal = self._in_unit(clean)
        self._raw = self._in_unit(sums.statistic / sums.metric[:, None])
        self._each = self._share * np.float32(self._total * step**0.5)
        self._covariance = sums.noise if sums.classes else found.noise
        self._root = stable_root(self._covariance) if self._covariance.any() else None
        coordinates = len(clean) * max(clean.shape[1] - 1, 1)
        self._probes = min(-(-_PROBED // coordinates), _MOST_PROBES)

    def tried(self, weights: Float64[np.ndarray, "r k"], penalty: float) -> _Trial:
        """The model of these weights, with the β that is estimated to be best."""
        scores = self._rows @ weights.astype(np.float32)
        beta = self._beta(scores, float((weights * self.goal).sum()))
        means = self._means(beta * scores)
        excess, moved, metric = 0.0, np.zeros_like(weights), self._sums.metric[:, None]
        for probe in reversed(range(self._probes)):
            noise = self._noise(means, probe)
            goal = self._sums.cross @ self._found.response(noise)
            moved = self.fit.response(weights, self._in_unit(goal / metric), penalty)
            excess += float((moved * self._in_unit(noise / metric)).sum()) / self._probes
        agreement = float((weights * self._raw).sum()) - excess
        beta = self._beta(scores, agreement)
        loss = self.fit.partition(beta * weights) - beta * agreement
        return _Trial(weights, moved, beta, loss)

    def deviation(self, trial: _Trial, other: _Trial) -> float:
        """Of the difference of two estimates: with W of S, ⟨W, noise⟩ is a linear term of noise and
        a quadratic one, whose mean is estimated with draws."""
        means = self._means(trial.beta * (self._rows @ trial.weights.astype(np.float32)))
        linear = self._variance(trial.beta * trial.weights - other.beta * other.weights, means)
        moved = self._variance(trial.beta * trial.moved - other.beta * other.moved, means)
        return float((linear + 2 * (1 + 1 / self._probes) * moved) ** 0.5 / self._total)

    def of_columns(self, trial: _Trial) -> Float64[np.ndarray, "d k"]:
        """[d, k] the weights of the used columns, with the offset in the constant's."""
        solved: Float64[np.ndarray, "d k"] = self._to_unit @ (trial.beta * trial.weights)
        if self._sums.constant:
            solved[0] += self._offset
        return solved

    def _base(self, clean: Float64[np.ndarray, "d k"]) -> Float64[np.ndarray, " k"]:
        """[k] the link of the means over all rows, at least as large as their noise."""
        if not self._sums.constant:
            return np.zeros(clean.shape[1])
        noise = float(self._found.noise[0, 0]) ** 0.5 / float(self._sums.metric[0])
        means = np.maximum(clean[0], max(noise, _LEAST_MEAN * self._total)) / self._total
        found: Float64[np.ndarray, " k"] = np.log(
            means / means.sum() if self._sums.classes else means
        )
        return found

    def _in_unit(self, statistic: Float64[np.ndarray, "d k"]) -> Float64[np.ndarray, "r k"]:
        found: Float64[np.ndarray, "r k"] = self._to_unit.T @ statistic / self._total
        return found

    def _beta(self, scores: Float32[np.ndarray, "n k"], agreement: float) -> float:
        if not self._sums.classes:
            return 1.0
        return temperature(scores, self._offset, self._share, agreement)

    def _means(self, scores: Float32[np.ndarray, "n k"]) -> Float64[np.ndarray, "n k"]:
        logits = scores.astype(np.float64) + self._offset
        found: Float64[np.ndarray, "n k"] = (
            softmax(logits, axis=1) if self._sums.classes else np.exp(logits)
        )
        return found

    def _noise(self, means: Float64[np.ndarray, "n k"], probe: int) -> Float64[np.ndarray, "d k"]:
        """A draw of the noise of the statistic.

        Labels given features: classes are drawn from the model; residuals of targets that may be
        looked at are multiplied by normal numbers (the wild bootstrap). For numbers, the variance
        of what features do not explain is in the covariance.
        """
        random = np.random.default_rng(probe)
        found = np.zeros((len(self._sums.metric), means.shape[1]))
        if self._root is not None:
            normal = random.standard_normal(found.shape)
            if self._sums.classes:
                normal -= normal.mean(axis=1, keepdims=True)
            found += self._root @ normal
        if self._sums.classes:
            residuals = self._residuals(means, random)
            rows = self._used * self._each[:, None]
            found += self._sums.metric[:, None] * (rows.T @ residuals.astype(np.float32))
        return found

    def _residuals(
        self, means: Float64[np.ndarray, "n k"], random: np.random.Generator
    ) -> Float64[np.ndarray, "n k"]:
        targets = self._sums.targets
        if targets is not None:
            signs = random.standard_normal(len(means))
            wild: Float64[np.ndarray, "n k"] = signs[:, None] * self._left(means, targets)
            return wild
        below = np.cumsum(means, axis=1)[:, :-1]
        classes = (random.random(len(means))[:, None] > below).sum(axis=1)
        found: Float64[np.ndarray, "n k"] = np.eye(means.shape[1])[classes] - means
        return found

    def _left(
        self, means: Float64[np.ndarray, "n k"], targets: Coded
    ) -> Float64[np.ndarray, "n k"]:
        left: Float64[np.ndarray, "n k"] = targets.rows[targets.codes[self._looked]] - means
        return left

    def _variance(
        self, change: Float64[np.ndarray, "r k"], means: Float64[np.ndarray, "n k"]
    ) -> float:
        """Of ⟨change, noise of the statistic⟩, where the means of labels are these."""
        each = self._to_unit @ change / self._sums.metric[:, None]
        if not self._sums.classes:
            return float((each * (self._covariance @ each)).sum())
        each -= each.mean(axis=1, keepdims=True)
        scores = (self._rows @ change.astype(np.float32)).astype(np.float64)
        targets = self._sums.targets
        if targets is not None:
            own = np.square((self._left(means, targets) * scores).sum(axis=1))
        else:
            own = (means * np.square(scores)).sum(axis=1) - np.square((means * scores).sum(axis=1))
        return float((each * (self._covariance @ each)).sum() + np.square(self._each) @ own)
