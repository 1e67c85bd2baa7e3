"""How good a model is, from private labels alone: unbiased estimates with intervals.

A metric that is a mean over rows of ℓ(y, f), of the true label y and the prediction f, is estimated
by the mean of d = Σ_y W[o, y]·ℓ(y, f), o the private label. Here P·W = I, so the mean of d given
y is ℓ(y, f). Only what ℓ needs is estimated: for the squared error y and y², not every share. The
variance of the estimate is that of d over the rows. It holds the noise of privacy and the sampling
of rows, so an interval is about the population that the rows are a sample of. AUC is a ratio of two
such sums over pairs of rows, whose variances are those of their influences (Hájek projections).

Two models are compared on the same rows. Their difference has its own variance, which is far
smaller than that of either, because most of the noise is the same.

Predictions must not come from these private labels: evaluate on rows, and persons, that the model
was not trained on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeldp_learn.columns import PrivateLabelError, array_of, indices_in, is_missing
from labeldp_learn.inversion import Floats
from labeldp_learn.private_labels import PrivateLabels, Source, is_numeric

LEAST_PROBABILITY = 1e-6
"""Smaller probabilities count as this in the log loss, and smaller means in the Poisson loss."""
FEWEST = 10
"""Rows, or persons, of an interval. With three rows, 95% intervals covered in 75% of the draws."""
_MATRIX = 2  # dimensions
_SYMMETRIC = 1e-6  # skewness below it changes no digit
_ROUNDED = 1e-5  # by which probabilities of float32 may lie outside of [0, 1]
_ROUNDING = 1e-12  # of a value: standard errors below it are those of float64


@dataclass(frozen=True)
class Influence:
    """An estimate N/D, and what each row adds to the errors of N and D; D is 1 for a mean.

    Attributes:
        top, rows: N, and [n] numbers whose mean is about 0; N has the variance of their mean.
        bottom, weights: the same of D.
        range: what N/D can be.
        spread: [n, j] standard deviations that a row's private label is expected to add, of j
            independent parts, by its prediction alone; None where no row can have most of them.
        exact: whether it does not depend on the private labels at all.
    """

    top: float
    rows: Floats
    bottom: float = 1.0
    weights: Floats | None = None
    range: tuple[float, float] = (-math.inf, math.inf)
    spread: Floats | None = None
    exact: bool = False

    @property
    def value(self) -> float:
        """N/D; the middle of its range if D is 0 or below, where nothing is known."""
        low, high = self.range
        return min(max(self.top / self.bottom, low), high) if self.bottom > 0 else (low + high) / 2

    def minus(self, other: Influence) -> Influence:
        """The difference of two estimates from the same rows, which have the same D."""
        ends = self.range[0] - other.range[1], self.range[1] - other.range[0]
        spread = None
        if self.spread is not None and other.spread is not None:
            spread = self.spread - other.spread
        top, rows = self.top - other.top, self.rows - other.rows
        same = not top and not rows.any() and bool(self.rows.any())
        exact = same or (self.exact and other.exact)
        return Influence(top, rows, self.bottom, self.weights, ends, spread, exact)

    def largest(self, persons: NDArray[np.int64] | None = None) -> float | None:
        """The share that one row, or person, has of the variance that is expected of all rows.

        If it is large, a sample without a rare output of this row shows too small a variance.
        """
        if self.spread is None:
            return None
        each = np.square(self.spread).sum(axis=1)
        each = each if persons is None else np.bincount(persons, each)
        total = float(each.sum())
        return float(each.max()) / total if total else None

    def interval(
        self, reach: float, persons: NDArray[np.int64] | None = None
    ) -> tuple[float, float, float]:
        """Its ends for this quantile of the normal distribution, and the standard error.

        ``persons`` [n] are numbers of persons, whose rows depend on one another. The interval holds
        all v for which N − v·D is near 0 (Fieller 1954): at most about ``reach`` standard errors
        away, which differs by side where the rows are skewed (``_skewed``), and grows where the
        error is uncertain (``_student``). For a mean that is v ± errors. If D may be 0, all v of
        the range are possible, and also if there are fewer than ``FEWEST`` rows (or persons), or if
        all rows are alike: they do not say how much they vary.
        """
        n, value, (low, high) = len(self.rows), self.value, self.range
        weights = np.zeros(n) if self.weights is None else self.weights
        sums = np.stack([self.rows, weights])
        if persons is not None:
            sums = np.stack([np.bincount(persons, each) for each in sums])
        groups = sums.shape[1]
        if groups < FEWEST:
            return low, high, math.inf
        sums = (sums - sums.mean(axis=1, keepdims=True)) * (math.sqrt(groups / (groups - 1)) / n)
        (top, both), (_, bottom) = (sums @ sums.T).tolist()
        if self.bottom <= 0 or self.bottom**2 <= reach**2 * bottom:
            return low, high, math.inf
        each = sums[0] - value * sums[1]
        variance = float(each @ each)
        if variance <= (_ROUNDING * value) ** 2:
            return (value, value, 0.0) if self.exact else (low, high, math.inf)
        skewness = float(np.sum(each**3)) / variance**1.5  # of the sum: that of a row over √n
        uncertainty = float(np.sum(each**4)) / variance**2 - 1 / groups
        reach = _student(reach, max(uncertainty, 2 / (groups - 1)))
        ends = []
        for side in (-1, 1):
            square = _skewed(-side * reach, skewness) ** 2
            scale = self.bottom**2 - square * bottom
            middle = (self.top * self.bottom - square * both) / scale
            inside = middle**2 - (self.top**2 - square * top) / scale
            end = middle + side * math.sqrt(max(inside, 0.0)) if scale > 0 else side * math.inf
            ends.append(min(max(end, low), high))
        return ends[0], ends[1], math.sqrt(variance) / self.bottom


def _student(quantile: float, uncertainty: float) -> float:
    """The quantile of Student's t for that of the normal distribution, by Fisher's expansion.

    ``uncertainty`` is the relative variance of the estimated variance: (κ − 1)/n for n rows of
    kurtosis κ, and 2/(n − 1) for normal ones. Its 2/uncertainty degrees of freedom are those of
    Satterthwaite (1946).
    """
    z, step = quantile, uncertainty / 2
    return z + (z**3 + z) * step / 4 + (5 * z**5 + 16 * z**3 + 3 * z) * step**2 / 96


def _skewed(quantile: float, skewness: float) -> float:
    """The quantile of an estimate over its standard error, from that of the normal distribution.

    ``skewness`` is that of the estimate. This inverts the monotone polynomial of Hall (1992, *On
    the removal of skewness by transformation*), which is right up to terms of 1/n.
    """
    if abs(skewness) < _SYMMETRIC:
        return quantile
    root = math.cbrt(1 + skewness * (quantile - skewness / 6))
    return 3 / skewness * (root - 1)


@dataclass(frozen=True)
class Measured:
    """An estimate with its interval.

    Attributes:
        metric: its name.
        model: its name; of a difference, ``first − second``.
        group: the name of the group of rows; None for all rows.
        value, low, high: the estimate, and the ends of its interval.
        error: the standard error.
        rows: how many were used.
        largest: the share that one row, or person, has of the variance that the predictions let
            expect; None where it is always small.
    """

    metric: str
    model: str
    group: Any
    value: float
    low: float
    high: float
    error: float
    rows: int
    largest: float | None = None

    def rows_to_settle(self, difference: float, confidence: float = 0.95) -> int:
        """About how many rows make an interval exclude 0 if this is the true difference."""
        if not difference:
            raise PrivateLabelError("no number of rows tells a difference of 0 from 0")
        if not math.isfinite(self.error):
            raise PrivateLabelError(f"{self.metric}: these rows are too few for an interval")
        reach = _reach(confidence) * self.error / abs(difference)
        return math.ceil(self.rows * reach**2)


def evaluate(
    private: PrivateLabels,
    predictions: Mapping[str, ArrayLike],
    metrics: Sequence[str] | None = None,
    *,
    by: ArrayLike | None = None,
    persons: ArrayLike | None = None,
    confidence: float = 0.95,
) -> list[Measured]:
    """Metrics of models on private labels, each with an interval, and differences of the models.

    Args:
        private: the private labels of n rows that no model was trained on.
        predictions: by the name of the model. Numbers [n]; or probabilities [n, k] in the order of
            ``private.labels``, or [n] of the second of two labels; or labels [n], for the accuracy.
        metrics: of ``METRICS``; by default those that fit the labels and all predictions.
        by: [n] public groups of rows; each is measured on its own, too. Rows without a value are
            the group "null".
        persons: [n] who each row belongs to, if a person has several. Rows without a value belong
            to one person.
        confidence: of the intervals, which are approximate.

    Raises:
        PrivateLabelError: a metric does not fit, the artifact supports no estimate of it, or a
            column has another number of rows.

    Example:
        >>> from pathlib import Path
        >>> from labeldp_compile import compile_spec
        >>> from labeldp_learn import PrivateLabels, evaluate
        >>> from labeldp_runtime import Randomizer
        >>> _ = compile_spec("specs/health-rating.yaml").write(Path("build"))
        >>> private = Randomizer.load("build/health-rating.onnx")(["good"] * 1000)
        >>> labels = PrivateLabels("build/health-rating.onnx", private)
        >>> metrics = evaluate(labels, {"one": ["good"] * 1000, "other": ["fair"] * 1000})
        >>> [(measured.metric, measured.model) for measured in metrics]
        [('accuracy', 'one'), ('accuracy', 'other'), ('accuracy', 'one − other')]
    """
    every = {name: _prepared(private, given) for name, given in predictions.items()}
    for name, given in every.items():
        if len(given) != private.rows:
            raise PrivateLabelError(
                f"there are {len(given):,} predictions of {name!r} for {private.rows:,} labels"
            )
    names = list(metrics) if metrics is not None else _fitting(private, every)
    for name in names:
        if name not in METRICS:
            raise PrivateLabelError(f"there is no metric {name!r}; there are {', '.join(METRICS)}")
    numbers = None if persons is None else _distinct(persons, private.rows, "persons")[1]
    parts: list[tuple[Any, NDArray[np.int64], PrivateLabels]]
    parts = [(None, np.arange(private.rows), private)]
    if by is not None:
        groups, codes = _distinct(by, private.rows, "by")
        for i, name in enumerate(groups):
            rows = np.flatnonzero(codes == i)
            parts.append((name, rows, private.subset(rows)))
    measured = []
    for group, rows, part in parts:
        # Numbered anew: persons without a row in the group are none of it.
        own = None if numbers is None else np.unique(numbers[rows], return_inverse=True)[1]
        for metric in names:
            each = {model: METRICS[metric](part, given[rows]) for model, given in every.items()}
            models = list(each)
            pairs = [(a, b) for i, a in enumerate(models) for b in models[i + 1 :]]
            both = [(f"{a} − {b}", each[a].minus(each[b])) for a, b in pairs]
            for model, influence in [*each.items(), *both]:
                low, high, error = influence.interval(_reach(confidence), own)
                ends = influence.value, low, high, error
                largest = influence.largest(own)
                measured.append(Measured(metric, model, group, *ends, len(rows), largest))
    return measured


def _distinct(column: Any, rows: int, what: str) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct values of a column, in order, and the place [n] of each row's value.

    Missing values are the last one, "null". Raises PrivateLabelError.
    """
    values = array_of(column)
    wrong = PrivateLabelError(f"{what} has one number or name for each of the {rows:,} rows")
    if values.shape != (rows,):
        raise wrong
    missing = is_missing(values)
    known = values[~missing]
    try:
        objects = known.dtype.kind == "O"
        names = sorted(set(known.tolist()), key=str) if objects else np.unique(known).tolist()
    except TypeError:  # lists and the like
        raise wrong from None
    codes = np.full(rows, len(names))
    codes[~missing] = indices_in(known, names)
    return [*names, *(["null"] if missing.any() else [])], codes


def _reach(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise PrivateLabelError("confidence lies between 0 and 1")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def prepared(labels: Sequence[Any], given: Any, *, numeric: bool) -> NDArray[Any]:
    """Predictions for these labels, as metrics take them.

    Numbers [n], probabilities [n, k], or places [n] of labels, as whole numbers. Raises
    PrivateLabelError.
    """
    array, k = array_of(given), len(labels)
    if numeric:
        if array.ndim != 1 or array.dtype.kind not in "buif":
            raise PrivateLabelError("predictions of numbers are one column of numbers")
        if is_missing(array).any():
            raise PrivateLabelError("some predictions are missing")
        return array.astype(np.float64)
    if array.ndim == _MATRIX:
        if array.shape[1] != k:
            raise PrivateLabelError(f"there are {k} labels, so probabilities have {k} columns")
        return _within_one(array.astype(np.float64))
    if array.dtype.kind == "f" and k == 2:
        return _within_one(np.stack([1 - array, array], axis=1))
    indices = indices_in(array, labels)
    if (indices < 0).any():
        raise PrivateLabelError("some predictions are neither probabilities nor labels")
    return indices


def _within_one(shares: Floats) -> Floats:
    """Probabilities as they are. Raises PrivateLabelError for scores, percentages and NaN."""
    if not (np.abs(shares - 0.5) <= 0.5 + _ROUNDED).all():
        raise PrivateLabelError(
            "probabilities are numbers between 0 and 1, and none may be missing"
        )
    return shares


def _prepared(private: PrivateLabels, given: Any) -> NDArray[Any]:
    if private.counts is not None:
        raise PrivateLabelError("metrics are of single rows: leave out counts, and repeat the rows")
    return prepared(private.labels, given, numeric=is_numeric(private.opened))


def _fitting(private: PrivateLabels, every: Mapping[str, NDArray[Any]]) -> list[str]:
    if is_numeric(private.opened):
        return ["squared error", "absolute error"]
    if any(given.ndim == 1 for given in every.values()):
        return ["accuracy"]
    return ["log loss", "accuracy", *(["AUC"] if len(private.labels) == 2 else [])]


def _mean(rows: Floats) -> Influence:
    value = float(rows.mean())
    return Influence(value, rows - value)


def _linear(known: Floats, weights: Floats, rest: Floats | float = 0.0) -> Influence:
    """The mean of Σ_j known·weights + rest, of unbiased ``known`` [n, j] and ``weights`` [n, j]."""
    rows = np.einsum("nj,nj->n", known, weights) + rest
    value = float(rows.mean())
    spread = weights * known.std(axis=0)
    return Influence(value, rows - value, spread=spread, exact=not weights.any())


def squared_error(private: PrivateLabels, predicted: Floats) -> Influence:
    """The mean of (y − f)²."""
    labels = _numbers(private)
    middle = (labels[0] + labels[-1]) / 2  # squares of numbers far from 0 would lose digits
    labels, predicted = labels - middle, predicted - middle
    known = private.unbiased(np.stack([labels, labels**2], axis=1))
    return _linear(known, np.stack([-2 * predicted, np.ones_like(predicted)], axis=1), predicted**2)


def absolute_error(private: PrivateLabels, predicted: Floats) -> Influence:
    """The mean of |y − f|: of s·f − s·y, where s is the sign of f − y."""
    labels = _numbers(private)  # increasing
    below = np.searchsorted(labels, predicted)  # how many labels are
    signs = np.where(np.arange(len(labels))[:, None] < np.arange(len(labels) + 1), 1.0, -1.0)
    sign, signed = (private.unbiased(goal, below) for goal in (signs, signs * labels[:, None]))
    return _mean(predicted * sign - signed)


def poisson_loss(private: PrivateLabels, predicted: Floats) -> Influence:
    """The mean of f − y·ln f; it differs from half the deviance by what no model changes."""
    mean = np.maximum(predicted, LEAST_PROBABILITY)
    return _linear(private.unbiased(_numbers(private)[:, None]), -np.log(mean)[:, None], mean)


def log_loss(private: PrivateLabels, predicted: Floats) -> Influence:
    """The mean of −ln f_y."""
    logs = np.log(np.maximum(_probabilities(predicted), LEAST_PROBABILITY))
    middle = logs.mean(axis=1)  # one-hot rows sum to 1, so it adds no noise
    return _linear(_one_hot(private), middle[:, None] - logs, -middle)


def accuracy(private: PrivateLabels, predicted: NDArray[Any]) -> Influence:
    """The share of rows whose likeliest label is the true one."""
    chosen = predicted if predicted.ndim == 1 else predicted.argmax(axis=1)
    return _mean(_one_hot(private, chosen.astype(np.int64)))


def area(private: PrivateLabels, predicted: Floats) -> Influence:
    """The chance that a row with the second label has a larger score than one with the first."""
    known = _one_hot(private)
    if known.shape[1] != 2:
        raise PrivateLabelError("AUC is of two labels")
    scores, others = _probabilities(predicted)[:, 1], max(len(known) - 1, 1)
    under = (_sums_below(scores, known[:, 0]) - known[:, 0] / 2) / others
    over = (known[:, 1].sum() - _sums_below(scores, known[:, 1]) - known[:, 1] / 2) / others
    rest = (known.sum(axis=0) - known) / others
    # Over pairs of different rows: the two labels of one row are not independent.
    top, bottom = float(np.mean(known[:, 1] * under)), float(np.mean(known[:, 1] * rest[:, 0]))
    return Influence(
        top,
        known[:, 1] * under + known[:, 0] * over - 2 * top,
        bottom,
        known[:, 1] * rest[:, 0] + known[:, 0] * rest[:, 1] - 2 * bottom,
        (0.0, 1.0),
        exact=not np.ptp(scores),
    )


Metric = Callable[[PrivateLabels, Any], Influence]
METRICS: dict[str, Metric] = {
    "squared error": squared_error,
    "absolute error": absolute_error,
    "Poisson loss": poisson_loss,
    "log loss": log_loss,
    "accuracy": accuracy,
    "AUC": area,
}
LARGER_IS_BETTER = frozenset({"accuracy", "AUC"})


def _sums_below(scores: Floats, weights: Floats) -> Floats:
    """[n] the sum of the weights of all rows with a smaller score, and half of equal ones."""
    _, place = np.unique(scores, return_inverse=True)
    sums = np.bincount(place, weights)
    return np.asarray((np.cumsum(sums) - sums / 2)[place])


def _numbers(private: PrivateLabels) -> Floats:
    if not is_numeric(private.opened):
        raise PrivateLabelError("this metric is of numbers, and the labels are classes")
    return np.asarray(private.labels, np.float64)


def _one_hot(private: PrivateLabels, columns: NDArray[np.int64] | None = None) -> Floats:
    if is_numeric(private.opened):
        raise PrivateLabelError("this metric is of classes, and the labels are numbers")
    return private.unbiased(np.eye(len(private.labels)), columns)


def _probabilities(predicted: NDArray[Any]) -> Floats:
    if predicted.ndim == 1:
        raise PrivateLabelError("this metric needs probabilities, and predictions are labels")
    return predicted


@dataclass(frozen=True)
class Bin:
    """Rows with similar predictions.

    Attributes:
        predicted: their mean prediction.
        observed, low, high: the estimated mean of their true labels, and its interval.
        lift: the observed mean over that of all rows.
        rows: how many they are.
    """

    predicted: float
    observed: float
    low: float
    high: float
    lift: float
    rows: int


def calibration(
    private: PrivateLabels, predicted: ArrayLike, bins: int = 10, confidence: float = 0.95
) -> list[Bin]:
    """Mean predictions against estimated means of true labels, in bins of equal numbers of rows.

    Predictions are numbers [n], or probabilities [n] of the second of two labels. The bins go from
    the smallest predictions to the largest, so with 10 bins the last one is the top decile, and its
    ``lift`` the usual one.

    Raises PrivateLabelError as ``evaluate``.

    Example:
        >>> from pathlib import Path
        >>> from labeldp_compile import compile_spec
        >>> from labeldp_learn import PrivateLabels, calibration
        >>> from labeldp_runtime import Randomizer
        >>> _ = compile_spec("specs/visits.yaml").write(Path("build"))
        >>> private = Randomizer.load("build/visits.onnx")([0, 3] * 500)
        >>> labels = PrivateLabels("build/visits.onnx", private)
        >>> [(one.predicted, one.rows) for one in calibration(labels, [0, 3] * 500, bins=2)]
        [(0.0, 500), (3.0, 500)]
    """
    given = _prepared(private, predicted)
    if given.ndim == _MATRIX:
        if given.shape[1] != 2:
            raise PrivateLabelError("calibration is of numbers, or of two labels")
        given, known = given[:, 1], _one_hot(private)[:, 1]
    else:
        known = private.unbiased(_numbers(private)[:, None])[:, 0]
    if not 1 <= bins <= len(given):
        raise PrivateLabelError("there are at least one bin, and a row for each")
    whole, curve = float(known.mean()), []
    for rows in np.array_split(np.argsort(given, kind="stable"), bins):
        part = _mean(known[rows])
        ends = part.interval(_reach(confidence))[:2]
        lift = part.value / whole if whole else math.nan
        curve.append(Bin(float(given[rows].mean()), part.value, *ends, lift, len(rows)))
    return curve


class PrivateScorer:
    """Called as (estimator, X, y) with private labels y; larger is better."""

    def __init__(self, metric: str, artifact: Source) -> None:
        """As ``scorer``."""
        if metric not in METRICS:
            raise PrivateLabelError(f"no metric {metric!r}; there are {', '.join(METRICS)}")
        self.metric, self.artifact = metric, artifact

    def __call__(self, estimator: Any, X: Any, y: Any, columns: Any = None) -> float:
        """The estimate for the true labels; losses with a minus sign.

        ``columns`` holds the public columns of the artifact's groups, if X does not.
        """
        private = PrivateLabels(self.artifact, y, X if columns is None else columns)
        value = METRICS[self.metric](private, self._predictions(private, estimator, X)).value
        return value if self.metric in LARGER_IS_BETTER else -value

    def _predictions(self, private: PrivateLabels, estimator: Any, x: Any) -> Any:
        """Numbers [n], or probabilities [n, k] in the order of the artifact's labels."""
        if is_numeric(private.opened):
            return np.asarray(estimator.predict(x), np.float64)
        index = {label: i for i, label in enumerate(private.labels)}
        if self.metric == "accuracy":  # which needs no probabilities
            return np.array([index[label] for label in np.asarray(estimator.predict(x)).tolist()])
        shares = np.zeros((private.rows, len(index)))
        columns = [index[label] for label in np.asarray(estimator.classes_).tolist()]
        shares[:, columns] = estimator.predict_proba(x)
        return shares


def scorer(metric: str, artifact: Source) -> PrivateScorer:
    """A scorer for ``GridSearchCV`` and ``cross_val_score`` of estimators of this package.

    Args:
        metric: one of ``labeldp_learn.evaluation.METRICS``, such as ``"log loss"``.
        artifact: a path, or an Artifact of ``labeldp_verify``.

    Example:
        >>> from labeldp_learn import scorer
        >>> scorer("log loss", "build/health-rating.onnx").metric
        'log loss'
    """
    return PrivateScorer(metric, artifact)
