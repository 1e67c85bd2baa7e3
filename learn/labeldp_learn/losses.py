"""Losses on private labels, as values, gradients and second derivatives in numpy.

``boosting_objective`` makes objectives of LightGBM and XGBoost of them, neither of which is
imported here.

Forward-corrected log loss. P[y, o] is Pr[output o | label y], p are a model's probabilities. The
loss of an output o is −ln q_o with q_o = Σ_y p_y·P[y, o]: the likelihood of what was seen
(Patrini et al. 2017). It needs no inverse, holds for sets, and never falls below 0. The gradient by
the score f_c is p_c − p_c·P[c, o]/q_o. The second derivative can be negative. Fisher's information
takes its place, which is its expectation under the model: p_c²·(Σ_o P[c, o]²/q_o − 1) ≥ 0.

Poisson and squared loss on unbiased targets v, with E[v | y] = y. Both are linear in the label but
for a constant. So given the true label, their expectation is the loss on it, and v may be negative.

Starting values of gradient boosting come from the noise of the artifact.

A private label is worth less than a true one. With the variance s² of the true labels and the mean
variance σ² that randomizing adds to a target, a mean over R = (s² + σ²)/s² private labels is as
exact as one true label. So n rows are worth N = n/R true labels. Both s² and σ² come from the
artifact and the private labels alone. Everything else follows from R and N:

* Rows in a leaf: 20·R, because 20 is what libraries take for true labels; n/8 at most.
* λ: a leaf's value is pulled to 0 as if 10·R more rows had said 0. This is the posterior mean for
  effects of variance s²/10 (ridge regression; James and Stein 1961).
* Depth d: the largest from 2 to 6 with at least 250 true labels' worth for each of 2^d leaves.
* Learning rate η: 0.05 (shrinkage, Friedman 2001).
* Rounds: a model fits about T·η·2^d numbers, each with the noise of about one N-th of the labels'
  variance (degrees of freedom of boosting, Bühlmann and Yu 2003). T·η = N/(16·2^d) keeps that noise
  at a sixteenth of s²; 40/d at most, where more rounds add little.

The constants were chosen on four of the tables of ``benchmarks/own_tools.py`` and are held against
tuning there. No library is imported here. Early stopping is off: what it watches is mostly noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from labeldp_verify.claims import Prior, PrivatePriorClaims
from numpy.typing import ArrayLike, NDArray

from labeldp_learn.columns import PrivateLabelError
from labeldp_learn.inversion import Floats, debiased_values
from labeldp_learn.private_labels import (
    PrivateLabels,
    Source,
    is_numeric,
    labels_of,
    opened,
    probabilities,
)

_LEAST = 1e-300
_LEAST_INFORMATION = 1e-12  # boosting libraries divide by second derivatives
_SMALLEST_MEAN = 1e-3  # of counts, as a start


class PrivateLoss(Protocol):
    """The loss for a boosting library: scores [n] or [n, k], and a number per row."""

    def value(self, scores: Floats, labels: ArrayLike) -> Floats:
        """[n] the loss of each row."""

    def gradient(self, scores: Floats, labels: ArrayLike) -> Floats:
        """First derivatives by the scores, of their shape."""

    def hessian(self, scores: Floats, labels: ArrayLike) -> Floats:
        """Positive numbers for second derivatives by each score, of the shape of the scores."""

    def labels(self, private: PrivateLabels) -> Floats:
        """[n] the number per row that the loss takes."""

    def start(self, private: PrivateLabels) -> Floats:
        """[] or [k] the score of a model that knows no features."""


class ForwardLogLoss:
    """The forward-corrected log loss for k scores, of which a softmax makes probabilities.

    The number per row is ``PrivateLabels.codes``; others raise PrivateLabelError. Scores [n, k] are
    in the order of ``PrivateLabels.labels``.

    Args:
        artifact: a path, or an Artifact of ``labeldp_verify``.
    """

    def __init__(self, artifact: Source) -> None:
        """Open the artifact. Raises InputError, VerificationError and PrivateLabelError."""
        decoded = opened(artifact)
        tables = [probabilities(decoded, i).values for i in range(len(decoded.tables))]
        self.classes = labels_of(decoded)
        self._chances = np.concatenate(tables, axis=1)  # [k, M] of the outputs of all tables
        self._ends = np.cumsum([0, *(table.shape[1] for table in tables)])

    @property
    def chances(self) -> Floats:
        """[k, M] Pr[output | label] of the outputs of all tables, one table after another."""
        return self._chances

    def probabilities(self, scores: Floats) -> Floats:
        """[n, k] of the true classes."""
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def value(self, scores: Floats, labels: ArrayLike) -> Floats:
        """[n] −ln Pr[the private label]."""
        likely = self._likely(labels)
        return np.asarray(
            -np.log(np.maximum((self.probabilities(scores) * likely).sum(axis=1), _LEAST))
        )

    def gradient(self, scores: Floats, labels: ArrayLike) -> Floats:
        """[n, k] the probabilities, minus those after the private label was seen."""
        p = self.probabilities(scores)
        after = p * self._likely(labels)
        return np.asarray(p - after / np.maximum(after.sum(axis=1, keepdims=True), _LEAST))

    def hessian(self, scores: Floats, labels: ArrayLike) -> Floats:
        """[n, k] Fisher's information of each score, times k/(k − 1), and at least 1e-12.

        The factor makes up for the scores that are moved at once (Friedman 2001, as in LightGBM).
        """
        p, k = self.probabilities(scores), len(self._chances)
        information = self._information(p, self._codes(labels)) * (k / (k - 1))
        return np.maximum(information, _LEAST_INFORMATION)

    def labels(self, private: PrivateLabels) -> Floats:
        """[n] the codes of private labels."""
        return private.codes.astype(np.float64)

    def start(self, private: PrivateLabels) -> Floats:
        """[k] logarithms of the estimated shares; none is smaller than that of one row."""
        return np.log(np.maximum(private.shares(), 1 / max(private.rows, 1)))

    def _codes(self, labels: ArrayLike) -> NDArray[np.int64]:
        """[n] codes as integers. Raises PrivateLabelError for other numbers."""
        given = np.asarray(labels)
        if (
            given.dtype.kind not in "buif"
            or not ((given >= 0) & (given < self._ends[-1]) & (given % 1 == 0)).all()
        ):
            raise PrivateLabelError(
                f"labels are whole numbers from 0 to {self._ends[-1] - 1}, the codes of private "
                "labels: give loss.labels(private)"
            )
        return given.astype(np.int64)

    def _likely(self, labels: ArrayLike) -> Floats:
        """[n, k] Pr[the private label | each label]."""
        return np.asarray(self._chances.T[self._codes(labels)])

    def _information(self, p: Floats, codes: NDArray[np.int64]) -> Floats:
        information = np.zeros_like(p)
        table = np.searchsorted(self._ends, codes, side="right") - 1
        for i in np.unique(table).tolist():
            rows = table == i
            chances = self._chances[:, self._ends[i] : self._ends[i + 1]]
            seen = np.maximum(p[rows] @ chances, _LEAST)
            information[rows] = np.square(p[rows]) * ((1 / seen) @ np.square(chances).T - 1)
        return information


class BinaryForwardLogLoss(ForwardLogLoss):
    """The forward-corrected log loss for two labels and one score: the log odds of the second."""

    def __init__(self, artifact: Source) -> None:
        """As ``ForwardLogLoss``. Raises PrivateLabelError unless there are two labels."""
        super().__init__(artifact)
        if len(self.classes) != 2:
            raise PrivateLabelError("there are more than two labels: use ForwardLogLoss")

    def probabilities(self, scores: Floats) -> Floats:
        """[n, 2] of the true classes, from scores [n]."""
        both = np.stack([np.zeros_like(scores), scores], axis=1)
        return super().probabilities(both)

    def gradient(self, scores: Floats, labels: ArrayLike) -> Floats:
        """[n]."""
        return np.asarray(super().gradient(scores, labels)[:, 1])

    def hessian(self, scores: Floats, labels: ArrayLike) -> Floats:
        """[n] Fisher's information of the score, and at least 1e-12."""
        information = self._information(self.probabilities(scores), self._codes(labels))
        return np.maximum(information[:, 1], _LEAST_INFORMATION)

    def start(self, private: PrivateLabels) -> Floats:
        """[] the log odds of the estimated share."""
        both = super().start(private)
        return np.asarray(both[1] - both[0])


class UnbiasedSquaredLoss:
    """½(score − v)² for unbiased targets v (``PrivateLabels.targets``)."""

    def value(self, scores: Floats, labels: ArrayLike) -> Floats:
        """[n]."""
        return np.asarray(0.5 * np.square(scores - np.asarray(labels)))

    def gradient(self, scores: Floats, labels: ArrayLike) -> Floats:
        """[n]."""
        return np.asarray(scores - np.asarray(labels))

    def hessian(self, scores: Floats, labels: ArrayLike) -> Floats:
        """[n] ones."""
        return np.ones_like(scores)

    def labels(self, private: PrivateLabels) -> Floats:
        """[n] unbiased targets."""
        return private.targets()

    def start(self, private: PrivateLabels) -> Floats:
        """[] their mean."""
        return np.asarray(private.targets().mean())


class UnbiasedPoissonLoss:
    """exp(score) − v·score for unbiased targets v, which may be negative.

    The prediction is exp(score). Where the mean of a leaf's targets is not positive, the score
    would fall without limit: strong regularization stops it.
    """

    def value(self, scores: Floats, labels: ArrayLike) -> Floats:
        """[n]."""
        return np.asarray(np.exp(scores) - np.asarray(labels) * scores)

    def gradient(self, scores: Floats, labels: ArrayLike) -> Floats:
        """[n]."""
        return np.asarray(np.exp(scores) - np.asarray(labels))

    def hessian(self, scores: Floats, labels: ArrayLike) -> Floats:
        """[n] exp(score), which does not depend on the label."""
        return np.asarray(np.exp(scores))

    def labels(self, private: PrivateLabels) -> Floats:
        """[n] unbiased targets."""
        return private.targets()

    def start(self, private: PrivateLabels) -> Floats:
        """[] the logarithm of their mean, or of 0.001 if that is larger."""
        return np.asarray(np.log(np.maximum(private.targets().mean(), _SMALLEST_MEAN)))


def boosting_objective(loss: PrivateLoss) -> BoostingObjective:
    """An objective for ``lightgbm.train`` and ``xgboost.train``, and for their estimators.

    Both libraries call an objective with the scores and what holds the labels, and take gradients
    and second derivatives of the same shape. A dataset holds ``loss.labels(private)`` for labels,
    and as ``init_score`` (LightGBM) or ``base_margin`` (XGBoost) ``loss.start(private)``.
    Predictions do not include it.

    Args:
        loss: one of ``labeldp_learn``.

    Returns:
        A function of (scores, dataset) as the libraries call it, or of (labels, scores, weights) as
        their estimators for scikit-learn do. It returns gradients and second derivatives, each
        times the row's weight if there are weights.

    Example:
        >>> from labeldp_learn import UnbiasedPoissonLoss, boosting_objective
        >>> objective = boosting_objective(UnbiasedPoissonLoss())
        >>> gradients, hessians = objective([2.0, -1.0], [0.0, 0.0])  # labels and scores
        >>> gradients.tolist(), hessians.tolist()
        ([-1.0, 2.0], [1.0, 1.0])
    """
    return BoostingObjective(loss)


@dataclass(frozen=True)
class BoostingObjective:
    """An objective of LightGBM and XGBoost; it can be pickled if its loss can."""

    loss: PrivateLoss

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> tuple[Floats, Floats]:
        """Gradients and second derivatives, as ``boosting_objective`` says.

        Both libraries look for a third argument. Without one, the estimator of LightGBM ignores
        weights, and that of XGBoost refuses them.
        """
        if hasattr(second, "get_label"):
            scores, labels, weights = first, second.get_label(), second.get_weight()
        else:
            scores, labels, weights = second, first, sample_weight
        scores = np.asarray(scores, np.float64)
        gradient, hessian = self.loss.gradient(scores, labels), self.loss.hessian(scores, labels)
        if weights is None or not len(weights):
            return gradient, hessian
        each = np.asarray(weights).reshape(-1, *([1] * (scores.ndim - 1)))
        return gradient * each, hessian * each


_LEAF, _PULL, _PER_LEAF, _RATE = 20, 10, 250, 0.05
_DEPTHS, _FREEDOM, _MOST = (2, 6), 16, 40
_LEAVES_AT_LEAST = 8  # rows over rows in a leaf
_LOOKED_AT = 1000  # rows
_NARROW, _ERRORS = 10, 1  # of the range; standard errors


@dataclass(frozen=True)
class BoostingPreset:
    """Starting values for boosting; the methods give them in the names of each library.

    Attributes:
        rows: n, what was fitted to.
        ratio: R, the private labels that are worth one true label.
        rounds, learning_rate, depth: of the trees.
        rows_in_leaf: the least number of rows of a leaf.
        pull: λ in rows.
        information: the mean second derivative of the loss in one row, by which ``pull`` and
            ``rows_in_leaf`` become sums of second derivatives.
        copies: how many weighted rows ``PrivateLabelClassifier`` makes of a row.
    """

    rows: int
    ratio: float
    rounds: int
    learning_rate: float
    depth: int
    rows_in_leaf: int
    pull: float
    information: float = 1.0
    copies: float = 1.0

    @property
    def worth(self) -> float:
        """N: how many true labels the rows are worth."""
        return self.rows / self.ratio

    def lightgbm(self) -> dict[str, Any]:
        """For ``LGBMRegressor`` and ``LGBMClassifier``."""
        return {
            "n_estimators": self.rounds,
            "learning_rate": self.learning_rate,
            "max_depth": self.depth,
            "num_leaves": 2**self.depth,
            "min_child_samples": round(self.rows_in_leaf * self.copies),
            "min_child_weight": 0.0,  # counted in rows instead
            "reg_lambda": self.pull * self.information,
        }

    def xgboost(self) -> dict[str, Any]:
        """For ``XGBRegressor`` and ``XGBClassifier``."""
        return {
            "n_estimators": self.rounds,
            "learning_rate": self.learning_rate,
            "max_depth": self.depth,
            "min_child_weight": self.rows_in_leaf * self.information,
            "reg_lambda": self.pull * self.information,
        }

    def hist_gradient_boosting(self) -> dict[str, Any]:
        """For ``HistGradientBoostingRegressor`` and ``HistGradientBoostingClassifier``."""
        return {
            "max_iter": self.rounds,
            "learning_rate": self.learning_rate,
            "max_depth": self.depth,
            "max_leaf_nodes": 2**self.depth,
            "min_samples_leaf": round(self.rows_in_leaf * self.copies),
            "l2_regularization": self.pull * self.information,
            "early_stopping": False,
        }


def boosting_preset(private: PrivateLabels, loss: PrivateLoss | None = None) -> BoostingPreset:
    """Starting values for boosting on these private labels.

    Args:
        private: the labels that are fitted.
        loss: a loss of ``labeldp_learn``. Without one, the library's own: squared error of
            unbiased targets, or the log loss of private classes in ``PrivateLabelClassifier``.

    Raises:
        PrivateLabelError: no useful weights remove the noise of classes.

    Example:
        >>> from pathlib import Path
        >>> from labeldp_compile import compile_spec
        >>> from labeldp_learn import PrivateLabels, boosting_preset
        >>> from labeldp_runtime import Randomizer
        >>> _ = compile_spec("specs/health-rating.yaml").write(Path("build"))
        >>> private = Randomizer.load("build/health-rating.onnx")(["good", "fair"] * 1000)
        >>> preset = boosting_preset(PrivateLabels("build/health-rating.onnx", private))
        >>> preset.depth, preset.xgboost()["learning_rate"]
        (2, 0.05)
    """
    n, spread = float(private.rows), _spread(private)
    ratio = min(max((spread + private.noise) / max(spread, 1e-300), 1.0), n)
    worth = n / ratio
    depth = min(max(math.floor(math.log2(max(worth / _PER_LEAF, 1.0))), _DEPTHS[0]), _DEPTHS[1])
    fitted = min(worth / (_FREEDOM * 2**depth), _MOST / depth)
    return BoostingPreset(
        rows=private.rows,
        ratio=ratio,
        rounds=max(round(fitted / _RATE), 1),
        learning_rate=_RATE,
        depth=depth,
        rows_in_leaf=max(round(min(_LEAF * ratio, n / _LEAVES_AT_LEAST)), 1),
        pull=_PULL * ratio,
        information=_information(private, loss),
        copies=_copies(private) if loss is None else 1.0,
    )


def _spread(private: PrivateLabels) -> float:
    """s², rather too small than too large: a tuned model must not take noise for signal.

    Of numbers, it is the largest of three: an unbiased estimate from the private labels, less one
    standard error; that of the artifact's prior, if it knows labels, without bins whose count may
    be noise; and that of labels in a tenth of their range.
    """
    if not is_numeric(private.opened):
        return private.spread
    parts, counts = private.parts, np.array([part.count for part in private.parts])
    labels = parts[0].goal()[:, 0]
    least = (float(np.ptp(labels)) / _NARROW) ** 2 / 12
    if not all(part.is_small for part in parts):
        return max(least, private.spread)
    # E[square | label] = label², about
    squares = np.concatenate(
        [
            debiased_values(part.matrix, labels**2, part.shares, 1 / part.sample)[part.codes]
            for part in parts
        ]
    )
    error = float(squares.std() / math.sqrt(len(squares)))
    seen = float(squares.mean() - private.targets().mean() ** 2) - _ERRORS * error
    known = 0.0
    if all(part.table.certificate.prior.kind != "uniform" for part in parts):
        shares = counts @ np.array([_known_shares(part.table.certificate.prior) for part in parts])
        shares /= counts.sum()
        known = float(shares @ (labels - shares @ labels) ** 2)
    return max(least, seen, known)


def _known_shares(prior: Prior) -> Floats:
    """[k] the shares of a prior; of a private one without bins whose count may be noise.

    Neighbours with equal weights are a bin. Its count is kept above the noise's scale times the
    logarithm of the number of bins (Donoho and Johnstone 1994, for Laplace noise).
    """
    weights = np.array([float(w) for w in prior.weights])
    if isinstance(prior, PrivatePriorClaims):
        bins = np.concatenate([[0], np.cumsum(np.diff(weights) != 0)])
        counts = np.bincount(bins, weights) / weights.sum() * prior.rows
        above = counts > prior.scale * math.log(max(len(counts), 2))
        weights = weights * (above if above.any() else counts == counts.max())[bins]
    return np.asarray(weights / weights.sum())


def _information(private: PrivateLabels, loss: PrivateLoss | None) -> float:
    """The mean second derivative of a loss in one row, without features."""
    if loss is not None:
        some = np.linspace(0, private.rows - 1, min(private.rows, _LOOKED_AT)).astype(np.int64)
        labels, start = loss.labels(private)[some], loss.start(private)
        return float(loss.hessian(np.tile(start, (len(some), *([1] * start.ndim))), labels).mean())
    if is_numeric(private.opened):
        return 1.0
    found = 0.0
    for part in private.parts:
        spread = part.spreading()
        fitted = part.shares @ (part.matrix if spread is None else part.matrix @ spread)
        found += part.count * float((fitted * (1 - fitted)).mean())
    return found / sum(part.count for part in private.parts)


def _copies(private: PrivateLabels) -> float:
    """The mean number of labels in a set."""
    if not private.answers_with_sets:
        return 1.0
    return len(private.expanded().rows) / max(private.rows, 1)
