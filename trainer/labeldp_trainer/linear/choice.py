"""Linear models with canonical links, from a statistic of the labels, and how to penalise them.

Softmax and Poisson minimise Σ w·A(x·W) − ⟨W, S⟩ + ½·strength·Σ w·‖x·W‖², with the log-partition A:
log Σ exp, or exp. The coordinates are those in which Σ w·x·xᵀ is the identity: the problem is
well conditioned in them, and weights that give nearly the same predictions are near. Products with
rows are in float32, and sums over chunks of rows in float64.

The strength of the penalty, and how sure a model is, come from the statistic itself.

A model that was fitted to a statistic S agrees with S more than with what S is without noise. By
how much, on average, is the covariance of noise and fit (Efron 2004, "The estimation of prediction
error"). For Gaussian noise it is E tr(Cov(noise)·∂W/∂S) (Stein's lemma). The noise is known: that
of privacy is stated, that of labels given features follows from the model. With a draw Z of such
noise, ⟨Z, ∂W/∂S·Z⟩ estimates the trace. So Σ w·A(x·W) − ⟨W, S⟩ + ⟨Z, ∂W/∂S·Z⟩ estimates the loss
of fresh labels of the same rows. All of this is post-processing, and the draws have a fixed seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float32, Float64
from scipy.optimize import brentq, minimize
from scipy.special import softmax

from labeldp_trainer.data.labels import Coded
from labeldp_trainer.linear.sums import stable_root

Link = Literal["softmax", "poisson"]
_ITERATIONS = 200
_LARGEST_EXPONENT = np.float32(30)
_ROUNDING = 1e-6  # of the largest eigenvalue of a float32 sum; with few rows, many are below
_MOST_OUTPUTS = 1 << 20  # numbers of a model, at a time
_MOST_KEPT = 1 << 26  # means of all rows, that are not computed again
_ANSWERED = 1e-2  # accuracy of a response, relatively: noise decides what it is for


def unit_coordinates(
    used: Float32[np.ndarray, "n d"], factors: Float32[np.ndarray, " n"]
) -> Float64[np.ndarray, "d r"]:
    """U with Σ w·(x·U)ᵀ(x·U) / Σ w = 1, without directions that no row has."""
    gram = weighted_gram(used, factors) / factors.sum(dtype=np.float64)
    values, directions = np.linalg.eigh(gram)
    large = values > _ROUNDING * values[-1]
    return directions[:, large] / np.sqrt(values[large])[None, :]


def weighted_gram(
    used: Float32[np.ndarray, "n d"], factors: Float32[np.ndarray, " n"]
) -> Float64[np.ndarray, "d d"]:
    """Σ w·xᵀx."""
    gram = np.zeros((used.shape[1], used.shape[1]))
    for start in range(0, len(used), 8192):
        rows = used[start : start + 8192]
        gram += (rows * factors[start : start + 8192, None]).T @ rows
    return gram


class _Chunk(NamedTuple):
    """Some rows with their weights, and A and its slope, the mean of a label, at their outputs."""

    rows: Float32[np.ndarray, "c r"]
    weights: Float32[np.ndarray, " c"]
    partition: Float32[np.ndarray, " c"]
    means: Float32[np.ndarray, "c k"]


class CanonicalFit:
    """The problem for rows, with Σ w scaled to 1; weights [r, k] are in unit coordinates."""

    def __init__(
        self,
        link: Link,
        rows: Float32[np.ndarray, "n r"],
        factors: Float32[np.ndarray, " n"],
        offset: Float64[np.ndarray, " k"],
    ) -> None:
        """Rows x·U in unit coordinates, their factors w, and what is added to all outputs."""
        self._link: Link = link
        self._rows, self._offset = rows, offset.astype(np.float32)
        self._weights = (factors / factors.sum(dtype=np.float64)).astype(np.float32)
        self._chunk = min(max(_MOST_OUTPUTS // len(offset), 1), len(rows))

    def solve(
        self,
        goal: Float64[np.ndarray, "r k"],
        strength: float,
        start: Float64[np.ndarray, "r k"],
    ) -> Float64[np.ndarray, "r k"]:
        """The weights for a statistic ``goal``, divided by Σ w."""

        def objective(flat: Float64[np.ndarray, " rk"]) -> tuple[float, Float64[np.ndarray, " rk"]]:
            weights = flat.reshape(goal.shape)
            value, slope = 0.5 * strength * flat @ flat - flat @ goal.ravel(), -goal
            slope = slope + strength * weights
            for x, w, partition, means in self._chunks(weights):
                value += float(w @ partition)
                slope += x.T @ (w[:, None] * means)
            return float(value), slope.ravel()

        options = {"maxiter": _ITERATIONS, "ftol": 1e-8, "gtol": 1e-6, "maxcor": 20}
        solution = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
        return solution.x.reshape(goal.shape)

    def partition(self, weights: Float64[np.ndarray, "r k"]) -> float:
        """Σ w·A(x·W) / Σ w."""
        return sum(float(w @ partition) for _, w, partition, _ in self._chunks(weights))

    def response(
        self,
        weights: Float64[np.ndarray, "r k"],
        change: Float64[np.ndarray, "r k"],
        strength: float,
    ) -> Float64[np.ndarray, "r k"]:
        """How solved weights move, to first order, if the goal moves by ``change``."""
        few = len(self._rows) * len(self._offset) <= _MOST_KEPT
        kept = list(self._chunks(weights)) if few else None

        def bent(direction: Float64[np.ndarray, "r k"]) -> Float64[np.ndarray, "r k"]:
            curved = strength * direction
            for x, w, _, means in kept or self._chunks(weights):
                curved += x.T @ (w[:, None] * self._moved(means, x @ direction.astype(np.float32)))
            return curved

        return _conjugate_gradients(bent, change)

    def _chunks(self, weights: Float64[np.ndarray, "r k"]) -> Iterator[_Chunk]:
        own = weights.astype(np.float32)
        for start in range(0, len(self._rows), self._chunk):
            part = slice(start, start + self._chunk)
            outputs = self._rows[part] @ own + self._offset
            with np.errstate(over="ignore"):  # the line search turns back
                values = _softmax(outputs) if self._link == "softmax" else _exponential(outputs)
            yield _Chunk(self._rows[part], self._weights[part], *values)

    def _moved(
        self, means: Float32[np.ndarray, "c k"], outputs: Float32[np.ndarray, "c k"]
    ) -> Float32[np.ndarray, "c k"]:
        """How means move if outputs move by this."""
        if self._link == "softmax":
            return means * (outputs - (means * outputs).sum(axis=1, keepdims=True))
        return np.where(means < np.exp(_LARGEST_EXPONENT), means * outputs, np.float32(0))


def _conjugate_gradients(
    bent: Callable[[Float64[np.ndarray, "r k"]], Float64[np.ndarray, "r k"]],
    goal: Float64[np.ndarray, "r k"],
) -> Float64[np.ndarray, "r k"]:
    """The x with bent(x) = goal, for a positive linear function."""
    x, left = np.zeros_like(goal), goal.copy()
    direction, size = left, float(np.square(left).sum())
    least = _ANSWERED**2 * size
    for _ in range(_ITERATIONS):
        if size <= least:
            break
        curved = bent(direction)
        step = size / float((direction * curved).sum())
        x, left = x + step * direction, left - step * curved
        size, before = float(np.square(left).sum()), size
        direction = left + size / before * direction
    return x


def _softmax(
    outputs: Float32[np.ndarray, "c k"],
) -> tuple[Float32[np.ndarray, " c"], Float32[np.ndarray, "c k"]]:
    largest = outputs.max(axis=1)
    means = np.exp(outputs - largest[:, None])
    total = means.sum(axis=1)
    means /= total[:, None]
    return np.log(total) + largest, means


def _exponential(
    outputs: Float32[np.ndarray, "c 1"],
) -> tuple[Float32[np.ndarray, " c"], Float32[np.ndarray, "c 1"]]:
    """e^o; from a large o on its tangent, which is finite for every step of a line search."""
    cut = _LARGEST_EXPONENT
    means = np.exp(np.minimum(outputs, cut))
    return (means * (1 + np.maximum(outputs - cut, 0)))[:, 0], means


_REACH, _POINTS = 8.0, 2001  # deviations on either side, and points, of an integral
_UNSURE = 3e-3
"""An agreement is kept this far below the largest score, as a share of the way to the mean."""


def temperature(
    scores: Float32[np.ndarray, "n k"],
    offset: Float64[np.ndarray, " k"],
    factors: Float32[np.ndarray, " n"],
    agreement: float,
) -> float:
    """The β for logits β·s + offset that maximises β·agreement − Σ w·log Σ exp(β·s + offset).

    ``scores`` are s = x·W; ``agreement`` is ⟨W, S⟩ = Σ w·s[y]; β is between 10⁻² and 10⁴. If
    classes are far apart, noise can raise the agreement to that of a model that is certain of every
    class, or above, so it is capped.
    """
    most, mean = (
        float((factors * each).sum()) for each in (scores.max(axis=1), scores.mean(axis=1))
    )
    agreement = min(agreement, most - _UNSURE * (most - mean))

    def slope(log_beta: float) -> float:
        chances = softmax(math.exp(log_beta) * scores.astype(np.float64) + offset, axis=1)
        return agreement - float((factors * (chances * scores).sum(axis=1)).sum())

    low, high = math.log(1e-2), math.log(1e4)
    if slope(low) <= 0:
        return math.exp(low)
    if slope(high) >= 0:
        return math.exp(high)
    return math.exp(brentq(slope, low, high, xtol=1e-6))


def likely(agreement: float, deviation: float, most: float) -> float:
    """The agreement that is expected of a model, given an estimate of it and its deviation.

    Beforehand, with chance ½ the model knows nothing, and agrees by 0; otherwise agreements are as
    likely as they are large, up to ``most``, that of a model that is certain of every class. The
    loss is linear in the agreement, so its expectation decides how sure a model should be.
    """
    low, high = max(agreement - _REACH * deviation, 0.0), min(agreement + _REACH * deviation, most)
    if low >= high:
        return min(max(agreement, 0.0), most)
    points = np.linspace(low, high, _POINTS)
    logs = -np.square((points - agreement) / deviation) / 2
    nothing = -((agreement / deviation) ** 2) / 2
    top = max(float(logs.max()), nothing)
    chances = np.exp(logs - top) * 2 * points / most**2 * (high - low) / _POINTS
    return float((chances @ points) / (chances.sum() + math.exp(nothing - top)))


# How much a softmax or Poisson model is penalised, and how sure it is: from the statistic itself.
#
# A model that was fitted to a statistic S agrees with S more than with what S is without noise. By
# how much, on average, is the covariance of noise and fit (Efron 2004, "The estimation of
# prediction error"). For Gaussian noise it is E tr(Cov(noise)·∂W/∂S) (Stein's lemma). The noise is
# known: that of privacy is stated, that of labels given features follows from the model. With a
# draw Z of such noise, ⟨Z, ∂W/∂S·Z⟩ estimates the trace. So Σ w·A(x·W) − ⟨W, S⟩ + ⟨Z, ∂W/∂S·Z⟩
# estimates the loss of fresh labels of the same rows. All of this is post-processing, and the draws
# have a fixed seed.

_PENALTIES = tuple(10 ** (-step / 2) for step in range(10))
"""With the first, in unit coordinates, a softmax has the direction of ridge."""
_SURE = 2.0
"""Standard deviations by which the estimate must fall: a convention. With 1, noise sometimes chose
on training rows that were held out (income over $50,000, several rows a user)."""
_PATIENCE = 2  # penalties in a row with no such fall, after which no smaller one is tried
_PROBED, _MOST_PROBES = 1000, 8  # numbers of all draws of noise together, for a steady mean
_MOST_SCORES, _MOST_ENTRIES = 1 << 25, 1 << 28  # of a sample of the rows: outputs, and u
_LEAST_MEAN = 1e-6


@dataclass(frozen=True)
class Observed:
    """A statistic S = Σ u ⊗ t(y) + noise, and a model whose scores are x·W + a constant.

    Attributes:
        link: of the model.
        rows: [n, r] x of all rows, in coordinates in which the penalty of W is ‖W‖².
        factors: [n] weights w of the rows in the loss.
        sums: [k] Σ w·t(y) as a goal has it, for the constant; None if there is none.
        noise: [m, m] covariance of the noise of a column of S: added for privacy, and, unless
            labels are classes, that of labels given features.
        seen: [r, k] Σ w·x ⊗ t(y) as S has it, linear in S.
        goals: [r, k] what models may be fitted to: posterior means of it. The first is linear in S.
        floor: the least Σ w·t(y) that noise lets one see.
        sums_rows: u of a regular sample of the rows, given the step.
        forward: [m, k] by which ⟨W, seen⟩ = ⟨forward(W), S⟩ + a constant.
        change: by how much ``seen`` and the goals move with S, to first order.
        targets: of all rows, if they may be looked at.
    """

    link: Link
    rows: Float32[np.ndarray, "n r"]
    factors: Float32[np.ndarray, " n"]
    sums: Float64[np.ndarray, " k"] | None
    noise: Float64[np.ndarray, "m m"]
    seen: Float64[np.ndarray, "r k"]
    goals: tuple[Float64[np.ndarray, "r k"], ...]
    floor: float
    sums_rows: Callable[[int], Float32[np.ndarray, "s m"]]
    forward: Callable[[Float64[np.ndarray, "r k"]], Float64[np.ndarray, "m k"]]
    change: Callable[
        [Float64[np.ndarray, "m k"]],
        tuple[Float64[np.ndarray, "r k"], tuple[Float64[np.ndarray, "r k"], ...]],
    ]
    targets: Coded | None = None


def least_loss(
    observed: Observed,
) -> tuple[Float64[np.ndarray, "r k"], Float64[np.ndarray, " k"]]:
    """Weights and a constant: they give logits, or logarithms of means.

    Penalties fall as long as the estimated loss falls by more than its noise explains. Weights
    grow, and β falls with it: where β rises, the fit follows the noise, and the estimate of its
    loss, which takes the fit for a linear function of the noise, is no good. Of several goals, the
    one whose model has the smallest estimate is taken. Deterministic.
    """
    search = _Search(observed)
    trials = [_least_penalty(search, which) for which in range(len(observed.goals))]
    best = min(trials, key=lambda trial: trial.loss)
    return best.beta * best.weights, search.offset


def _least_penalty(search: _Search, which: int) -> _Trial:
    """Of the models that are fitted to one of the goals."""
    goal = search.goals[which]
    best, failed, weights, beta = None, 0, np.zeros_like(goal), np.inf
    for penalty in _PENALTIES:
        weights = search.fit.solve(goal, penalty, weights)
        trial = search.tried(weights, penalty, which)
        if trial.beta > beta:
            break
        beta = trial.beta
        if best is None or trial.loss < best.loss - _SURE * search.deviation(trial, best):
            best, failed = trial, 0
        elif (failed := failed + 1) == _PATIENCE:
            break
    assert best is not None
    return best


@dataclass(frozen=True)
class _Trial:
    """A model with one penalty.

    Attributes:
        weights: [r, k].
        moved: [r, k] by how much a draw of noise moves the weights.
        scores: [s, k] of the rows that are looked at, before ``beta``.
        beta: by what all weights are multiplied.
        loss: its estimate for a row, less a number that all models share.
    """

    weights: Float64[np.ndarray, "r k"]
    moved: Float64[np.ndarray, "r k"]
    scores: Float32[np.ndarray, "s k"]
    beta: float
    loss: float


class _Search:
    """Models of one statistic."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        factors, outputs = observed.factors, observed.seen.shape[1]
        self._classes = observed.link == "softmax"
        self._total = float(factors.sum(dtype=np.float64))
        self.offset = self._base()
        self.fit = CanonicalFit(observed.link, observed.rows, factors, self.offset)
        # a regular sample is enough for temperatures and noise, but not for a model of rare classes
        scores, entries = len(factors) * outputs, len(factors) * len(observed.noise)
        self._step = max(-(-scores // _MOST_SCORES), -(-entries // _MOST_ENTRIES))
        part = factors[:: self._step]
        self._looked = observed.rows[:: self._step]
        self._share = part / np.float32(part.sum(dtype=np.float64))
        # the noise of labels in a sum over the sample, as large as in one over all rows
        self._sums_rows = observed.sums_rows(self._step) * np.float32(self._step**0.5)
        self.goals = [goal / self._total for goal in observed.goals]
        self._seen = observed.seen / self._total
        self._root = stable_root(observed.noise) if observed.noise.any() else None
        coordinates = len(observed.noise) * max(outputs - 1, 1)
        self._probes = min(-(-_PROBED // coordinates), _MOST_PROBES)

    def tried(self, weights: Float64[np.ndarray, "r k"], penalty: float, which: int) -> _Trial:
        """The model of these weights, for one of the goals, with the β that is estimated to be
        best."""
        scores = self._looked @ weights.astype(np.float32)
        beta = self._beta(scores, float((weights * self.goals[which]).sum()))
        means = self._means(beta * scores)
        excess, moved = 0.0, np.zeros_like(weights)
        for probe in reversed(range(self._probes)):
            seen, goals = self._observed.change(self._noise(means, probe))
            moved = self.fit.response(weights, goals[which] / self._total, penalty)
            excess += float((moved * seen).sum() / self._total) / self._probes
        agreement = float((weights * self._seen).sum()) - excess
        if self._classes:
            most = float((self._share * scores.max(axis=1)).sum())
            agreement = likely(agreement, self._deviation(weights, moved, means), most)
        beta = self._beta(scores, agreement)
        loss = self.fit.partition(beta * weights) - beta * agreement
        return _Trial(weights, moved, scores, beta, loss)

    def deviation(self, trial: _Trial, other: _Trial) -> float:
        """Of the difference of two estimates: with W of S, ⟨W, noise⟩ is a linear term of noise and
        a quadratic one, whose mean is estimated with draws."""
        means = self._means(trial.beta * trial.scores)
        weights = trial.beta * trial.weights - other.beta * other.weights
        return self._deviation(weights, trial.beta * trial.moved - other.beta * other.moved, means)

    def _deviation(
        self,
        weights: Float64[np.ndarray, "r k"],
        moved: Float64[np.ndarray, "r k"],
        means: Float64[np.ndarray, "n k"],
    ) -> float:
        squared = 2 * (1 + 1 / self._probes) * self._variance(moved, means)
        return float((self._variance(weights, means) + squared) ** 0.5 / self._total)

    def _base(self) -> Float64[np.ndarray, " k"]:
        """[k] the link of the means over all rows, at least as large as their noise."""
        sums = self._observed.sums
        if sums is None:
            return np.zeros(self._observed.seen.shape[1])
        means = np.maximum(sums, max(self._observed.floor, _LEAST_MEAN * self._total))
        return np.log(means / (means.sum() if self._classes else self._total))

    def _beta(self, scores: Float32[np.ndarray, "n k"], agreement: float) -> float:
        if not self._classes:
            return 1.0
        return temperature(scores, self.offset, self._share, agreement)

    def _means(self, scores: Float32[np.ndarray, "n k"]) -> Float64[np.ndarray, "n k"]:
        logits = scores.astype(np.float64) + self.offset
        return softmax(logits, axis=1) if self._classes else np.exp(logits)

    def _noise(self, means: Float64[np.ndarray, "n k"], probe: int) -> Float64[np.ndarray, "m k"]:
        """A draw of the noise of the statistic.

        Labels given features: classes are drawn from the model; residuals of targets that may be
        looked at are multiplied by normal numbers (the wild bootstrap). For numbers, the variance
        of what features do not explain is in the covariance.
        """
        random = np.random.default_rng(probe)
        noise = np.zeros((len(self._observed.noise), means.shape[1]))
        if self._root is not None:
            normal = random.standard_normal(noise.shape)
            if self._classes:
                normal -= normal.mean(axis=1, keepdims=True)
            noise += self._root @ normal
        if self._classes:
            residuals = self._residuals(means, random)
            noise += self._sums_rows.T @ residuals.astype(np.float32)
        return noise

    def _residuals(
        self, means: Float64[np.ndarray, "n k"], random: np.random.Generator
    ) -> Float64[np.ndarray, "n k"]:
        targets = self._observed.targets
        if targets is not None:
            signs = random.standard_normal(len(means))
            return signs[:, None] * self._left(means, targets)
        below = np.cumsum(means, axis=1)[:, :-1]
        classes = (random.random(len(means))[:, None] > below).sum(axis=1)
        return np.eye(means.shape[1])[classes] - means

    def _left(
        self, means: Float64[np.ndarray, "n k"], targets: Coded
    ) -> Float64[np.ndarray, "n k"]:
        return targets.rows[targets.codes[:: self._step]] - means

    def _variance(
        self, change: Float64[np.ndarray, "r k"], means: Float64[np.ndarray, "n k"]
    ) -> float:
        """Of ⟨change, what is seen⟩, where the means of labels are these."""
        each = self._observed.forward(change)
        if not self._classes:
            return float((each * (self._observed.noise @ each)).sum())
        each -= each.mean(axis=1, keepdims=True)
        scores = (self._sums_rows @ each.astype(np.float32)).astype(np.float64)
        targets = self._observed.targets
        if targets is not None:
            own = np.square((self._left(means, targets) * scores).sum(axis=1))
        else:
            own = (means * np.square(scores)).sum(axis=1) - np.square((means * scores).sum(axis=1))
        return float((each * (self._observed.noise @ each)).sum() + own.sum())
