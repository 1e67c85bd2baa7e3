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

Rows are read in blocks, twice for each metric: for its mean, then for the powers of what each row,
or person, is away from it. Memory holds one block, but for AUC, which sorts all scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labeldp_learn.columns import PrivateLabelError, array_of, indices_in, is_missing
from labeldp_learn.intervals import CONFIDENCE
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
_ENTRIES = 1 << 20  # predictions of a block
_MOST_ROWS = 1 << 16


class Block(NamedTuple):
    """Some rows.

    Attributes:
        places: [b] of each row's private label among the distinct ones.
        predictions: by the name of the model, as ``prepared`` makes them.
        persons: [b] numbers of persons, all of whose rows are in this block; or None.
    """

    places: NDArray[np.int64]
    predictions: Mapping[str, NDArray[Any]]
    persons: NDArray[Any] | None = None


@dataclass(frozen=True)
class Rows:
    """Rows of any number, which are read in blocks as often as sums need them.

    Attributes:
        private: their distinct private labels, with ``counts``.
        models: the names of the predictions.
        blocks: gives the same blocks in the same order each time. Sums of floats depend on them, so
            the rows of a block must not depend on how a file is read.
    """

    private: PrivateLabels
    models: Sequence[str]
    blocks: Callable[[], Iterable[Block]]

    @property
    def count(self) -> int:
        """n."""
        return int(np.sum(self.private.counts))


class Terms(NamedTuple):
    """What the rows of a block add to an estimate N/D.

    Attributes:
        rows: [b] numbers whose mean is N.
        weights: [b] numbers whose mean is D, where both are sums over pairs of rows; None if D
            is 1.
        spread: [b, j] standard deviations that a row's private label is expected to add, of j
            independent parts, by its prediction alone; None where no row can have most of them.
        noisy: whether they depend on private labels.
    """

    rows: Floats
    weights: Floats | None = None
    spread: Floats | None = None
    noisy: bool = True

    def minus(self, other: Terms) -> Terms:
        """The difference of two estimates from the same rows, which have the same D."""
        spread = None
        if self.spread is not None and other.spread is not None:
            spread = self.spread - other.spread
        return Terms(self.rows - other.rows, self.weights, spread, self.noisy or other.noisy)

    def less(self, top: float, bottom: float) -> Terms:
        """How far the errors of N and D are moved by each row; a sum over pairs, by both rows."""
        if self.weights is None:
            return self._replace(rows=self.rows - top)
        rows, weights = 2 * (self.rows - top), 2 * (self.weights - bottom)
        return self._replace(rows=rows, weights=weights)


class Estimate:
    """N/D, and the sums over rows, or persons, that its interval needs.

    Attributes:
        top, bottom: N and D.
        range: what N/D can be.
        noisy: whether it depends on the private labels at all.
        varies: whether rows differ.
    """

    def __init__(self, top: float, bottom: float, ends: tuple[float, float]) -> None:
        """No rows."""
        self.top, self.bottom, self.range = top, bottom, ends
        self.noisy = self.varies = False
        self._powers: list[tuple[float, ...]] = []
        self._spread, self._largest = 0.0, 0.0

    @property
    def value(self) -> float:
        """N/D; the middle of its range if D is 0 or below, where nothing is known."""
        low, high = self.range
        return min(max(self.top / self.bottom, low), high) if self.bottom > 0 else (low + high) / 2

    def add(self, each: Terms, persons: NDArray[np.int64] | None = None, times: Any = None) -> None:
        """Add rows ``less`` N and D; each stands for so many ``times``, 1 by default."""
        self.noisy |= each.noisy
        self.varies |= bool(each.rows.any())
        a: Any = each.rows
        b: Any = np.zeros(len(each.rows)) if each.weights is None else each.weights
        if persons is not None:
            a, b = np.bincount(persons, a), np.bincount(persons, b)
        if each.spread is not None:
            spread = np.square(each.spread).sum(axis=1)
            of_each = spread if persons is None else np.bincount(persons, spread)
            self._spread += float(of_each.sum())
            self._largest = max(self._largest, float(of_each.max()))
        error, square = a - self.value * b, np.square(a - self.value * b)
        counts = np.ones(len(a)) if times is None else times
        weighted = counts * error
        powers = (counts * a @ a, counts * a @ b, counts * b @ b, weighted @ error)
        sums = (*powers, weighted @ square, (weighted * error) @ square)
        self._powers.append((float(counts.sum()), *map(float, sums)))

    @property
    def largest(self) -> float | None:
        """The share that one row, or person, has of the variance that is expected of all rows.

        If it is large, a sample without a rare output of this row shows too small a variance.
        """
        return self._largest / self._spread if self._spread else None

    def interval(self, reach: float, rows: int) -> tuple[float, float, float]:
        """Its ends for this quantile of the normal distribution, and the standard error.

        The interval holds all v for which N − v·D is near 0 (Fieller 1954): at most about ``reach``
        standard errors away, which differs by side where the rows are skewed (``_skewed``), and
        grows where the error is uncertain (``_student``). For a mean that is v ± errors. If D may
        be 0, all v of the range are possible, and also if there are fewer than ``FEWEST`` rows (or
        persons), or if all rows are alike: they do not say how much they vary.
        """
        value, (low, high) = self.value, self.range
        groups, *sums = (math.fsum(power) for power in zip(*self._powers, strict=True))
        if groups < FEWEST:
            return low, high, math.inf
        scale = groups / (groups - 1) / rows**2
        top, both, bottom, variance = (scale * power for power in sums[:4])
        if self.bottom <= 0 or self.bottom**2 <= reach**2 * bottom:
            return low, high, math.inf
        if variance <= (_ROUNDING * value) ** 2:
            return (low, high, math.inf) if self.noisy else (value, value, 0.0)
        skewness = scale**1.5 * sums[4] / variance**1.5  # of the sum: that of a row over √n
        uncertainty = scale**2 * sums[5] / variance**2 - 1 / groups
        reach = _student(reach, max(uncertainty, 2 / (groups - 1)))
        ends = []
        for side in (-1, 1):
            square = _skewed(-side * reach, skewness) ** 2
            divisor = self.bottom**2 - square * bottom
            middle = (self.top * self.bottom - square * both) / divisor
            inside = middle**2 - (self.top**2 - square * top) / divisor
            end = middle + side * math.sqrt(max(inside, 0.0)) if divisor > 0 else side * math.inf
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
    names = chosen_metrics(private, every, metrics)
    numbers = None if persons is None else _distinct(persons, private.rows, "persons")[1]
    parts: list[tuple[Any, NDArray[np.int64]]] = [(None, np.arange(private.rows))]
    if by is not None:
        groups, codes = _distinct(by, private.rows, "by")
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(groups)))
        parts += zip(groups, np.split(order, ends[:-1]), strict=True)
    return [
        one
        for group, rows in parts
        for one in measure(_rows(private, every, rows, numbers), names, confidence, group)
    ]


def measure(
    rows: Rows, metrics: Sequence[str], confidence: float, group: Any = None
) -> list[Measured]:
    """``evaluate`` for rows in blocks, which are those of ``group``. Raises PrivateLabelError."""
    n, measured, models = rows.count, [], rows.models
    pairs = [(a, b) for i, a in enumerate(models) for b in models[i + 1 :]]
    for metric in metrics:
        terms = {model: METRICS[metric](rows, model) for model in models}
        means = {model: _means(rows, model, of) for model, of in terms.items()}
        ends = RANGES.get(metric, (-math.inf, math.inf))
        each = {model: Estimate(*means[model], ends) for model in models}
        apart = ends[0] - ends[1], ends[1] - ends[0]
        both = {(a, b): Estimate(means[a][0] - means[b][0], means[a][1], apart) for a, b in pairs}
        for block in rows.blocks():
            own = {
                model: of(block.places, block.predictions[model]).less(*means[model])
                for model, of in terms.items()
            }
            persons = block.persons
            if persons is not None:
                persons = np.unique(persons, return_inverse=True)[1]
            for model, estimate in each.items():
                estimate.add(own[model], persons)
            for (a, b), estimate in both.items():
                estimate.add(own[a].minus(own[b]), persons)
        for (a, _), estimate in both.items():
            # Equal predictions: their difference is 0 whatever the labels are.
            estimate.noisy &= bool(estimate.top) or estimate.varies or not each[a].varies
        named = {**each, **{f"{a} − {b}": estimate for (a, b), estimate in both.items()}}
        for name, one in named.items():
            low, high, error = one.interval(_reach(confidence), n)
            found = one.value, low, high, error, n, one.largest
            measured.append(Measured(metric, name, group, *found))
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


def rows_of_block(every: Iterable[Any]) -> int:
    """How many rows a block has, by the ``shape`` (n,) or (n, c) of each of its predictions."""
    widest = max(math.prod(one.shape[1:]) for one in every)
    return max(1, min(_MOST_ROWS, _ENTRIES // widest))


def _rows(
    private: PrivateLabels,
    every: Mapping[str, NDArray[Any]],
    rows: NDArray[np.int64],
    persons: NDArray[np.int64] | None = None,
) -> Rows:
    """Some of the rows of arrays [n], by their numbers; all in one block if there are persons."""
    codes, places, counts = np.unique(private.codes[rows], return_inverse=True, return_counts=True)
    step = len(rows) if persons is not None else rows_of_block(every.values())

    def blocks() -> Iterator[Block]:
        for start in range(0, len(rows), step):
            own = rows[start : start + step]
            given = {model: array[own] for model, array in every.items()}
            who = None if persons is None else persons[own]
            yield Block(places[start : start + step], given, who)

    return Rows(PrivateLabels.of_outputs(private.opened, codes, counts), list(every), blocks)


def _prepared(private: PrivateLabels, given: Any) -> NDArray[Any]:
    if private.counts is not None:
        raise PrivateLabelError("metrics are of single rows: leave out counts, and repeat the rows")
    return prepared(private.labels, given, numeric=is_numeric(private.opened))


def chosen_metrics(
    private: PrivateLabels, every: Mapping[str, Any], metrics: Sequence[str] | None
) -> list[str]:
    """The names that are given, or those of all metrics that fit these predictions.

    Raises PrivateLabelError for a name that is no metric.
    """
    if metrics is not None:
        for name in metrics:
            if name not in METRICS:
                there = ", ".join(METRICS)
                raise PrivateLabelError(f"there is no metric {name!r}; there are {there}")
        return list(metrics)
    if is_numeric(private.opened):
        return ["squared error", "absolute error"]
    if any(len(given.shape) == 1 for given in every.values()):
        return ["accuracy"]
    return ["log loss", "accuracy", *(["AUC"] if len(private.labels) == 2 else [])]


RowTerms = Callable[[NDArray[np.int64], Any], Terms]
"""From the places [b] of private labels among the distinct ones, and predictions [b]."""
Metric = Callable[[Rows, str], RowTerms]
"""For all blocks of some rows, and the name of a model."""


def _linear(
    rows: Rows, known: Floats, parts: Callable[[Any], tuple[Floats, Floats | float]]
) -> RowTerms:
    """The mean of Σ_j known·weights + rest, of unbiased ``known`` [m, j] of the private labels.

    ``parts`` gives weights [b, j] and rest [b] of predictions.
    """
    counts = rows.private.counts / rows.count
    deviations = np.sqrt(counts @ (known - counts @ known) ** 2)

    def terms(places: NDArray[np.int64], predicted: Any) -> Terms:
        weights, rest = parts(predicted)
        each = np.einsum("nj,nj->n", known.take(places, axis=0), weights) + rest
        return Terms(each, spread=weights * deviations, noisy=bool(weights.any()))

    return terms


def squared_error(rows: Rows, model: str) -> RowTerms:
    """The mean of (y − f)²."""
    labels = _numbers(rows.private)
    middle = (labels[0] + labels[-1]) / 2  # squares of numbers far from 0 would lose digits
    labels = labels - middle

    def parts(predicted: Floats) -> tuple[Floats, Floats]:
        f = predicted - middle
        return np.stack([-2 * f, np.ones_like(f)], axis=1), f**2

    return _linear(rows, rows.private.unbiased(np.stack([labels, labels**2], axis=1)), parts)


def absolute_error(rows: Rows, model: str) -> RowTerms:
    """The mean of |y − f|: of s·f − s·y, where s is the sign of f − y."""
    labels = _numbers(rows.private)  # increasing
    signs = np.where(np.arange(len(labels))[:, None] < np.arange(len(labels) + 1), 1.0, -1.0)
    sign, signed = map(rows.private.unbiased, (signs, signs * labels[:, None]))

    def terms(places: NDArray[np.int64], predicted: Floats) -> Terms:
        at = places, np.searchsorted(labels, predicted)  # how many labels are below
        return Terms(predicted * sign[at] - signed[at])

    return terms


def poisson_loss(rows: Rows, model: str) -> RowTerms:
    """The mean of f − y·ln f; it differs from half the deviance by what no model changes."""

    def parts(predicted: Floats) -> tuple[Floats, Floats]:
        mean = np.maximum(predicted, LEAST_PROBABILITY)
        return -np.log(mean)[:, None], mean

    return _linear(rows, rows.private.unbiased(_numbers(rows.private)[:, None]), parts)


def log_loss(rows: Rows, model: str) -> RowTerms:
    """The mean of −ln f_y."""

    def parts(predicted: NDArray[Any]) -> tuple[Floats, Floats]:
        logs = np.log(np.maximum(_probabilities(predicted), LEAST_PROBABILITY))
        middle = logs.mean(axis=1)  # one-hot rows sum to 1, so it adds no noise
        return middle[:, None] - logs, -middle

    return _linear(rows, _one_hot(rows.private), parts)


def accuracy(rows: Rows, model: str) -> RowTerms:
    """The share of rows whose likeliest label is the true one."""
    known = _one_hot(rows.private)

    def terms(places: NDArray[np.int64], predicted: NDArray[Any]) -> Terms:
        return Terms(known[places, predicted if predicted.ndim == 1 else predicted.argmax(axis=1)])

    return terms


def area(rows: Rows, model: str) -> RowTerms:
    """The chance that a row with the second label has a larger score than one with the first.

    All scores are held in memory, at most about 50 bytes a row.
    """
    known, n = _one_hot(rows.private), rows.count
    if known.shape[1] != 2:
        raise PrivateLabelError("AUC is of two labels")
    scores, places, end = np.empty(n), np.empty(n, np.int32), 0
    for block in rows.blocks():
        start, end = end, end + len(block.places)
        scores[start:end] = _probabilities(block.predictions[model])[:, 1]
        places[start:end] = block.places
    order = np.argsort(scores, kind="stable")
    scores, places = scores[order], places[order]
    del order
    first = np.flatnonzero(np.append(True, scores[1:] != scores[:-1]))
    scores = scores[first]
    # For each score, the sums of the one-hot rows with smaller ones, and half of those with this.
    below = np.empty((len(scores), 2))
    for label in (0, 1):
        sums = np.add.reduceat(known[places, label], first)
        below[:, label] = np.cumsum(sums) - sums / 2
    every, others = rows.private.counts @ known, 2 * max(n - 1, 1)

    def terms(places: NDArray[np.int64], predicted: Floats) -> Terms:
        own, back = np.unique(predicted[:, 1], return_inverse=True)
        under, over = below[np.searchsorted(scores, own)[back]].T
        no, yes = known[places].T
        # Over pairs of different rows: the two labels of one row are not independent.
        pairs = yes * (under - no / 2) + no * (every[1] - over - yes / 2)
        weights = yes * (every[0] - no) + no * (every[1] - yes)
        return Terms(pairs / others, weights / others, noisy=len(scores) > 1)

    return terms


METRICS: dict[str, Metric] = {
    "squared error": squared_error,
    "absolute error": absolute_error,
    "Poisson loss": poisson_loss,
    "log loss": log_loss,
    "accuracy": accuracy,
    "AUC": area,
}
RANGES = {"AUC": (0.0, 1.0)}
LARGER_IS_BETTER = frozenset({"accuracy", "AUC"})


def _means(rows: Rows, model: str, of: RowTerms) -> tuple[float, float]:
    """N and D."""
    tops, bottoms = [], []
    for block in rows.blocks():
        each = of(block.places, block.predictions[model])
        tops.append(float(each.rows.sum()))
        bottoms.append(float(len(each.rows) if each.weights is None else each.weights.sum()))
    return math.fsum(tops) / rows.count, math.fsum(bottoms) / rows.count


def _numbers(private: PrivateLabels) -> Floats:
    if not is_numeric(private.opened):
        raise PrivateLabelError("this metric is of numbers, and the labels are classes")
    return np.asarray(private.labels, np.float64)


def _one_hot(private: PrivateLabels) -> Floats:
    if is_numeric(private.opened):
        raise PrivateLabelError("this metric is of classes, and the labels are numbers")
    return private.unbiased(np.eye(len(private.labels)))


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
    rows = _rows(private, {"": given}, np.arange(private.rows))
    return calibration_of(rows, "", bins, confidence)


def calibration_of(rows: Rows, model: str, bins: int, confidence: float) -> list[Bin]:
    """``calibration`` for rows in blocks, without persons. Raises PrivateLabelError."""
    is_classes = not is_numeric(rows.private.opened)
    if is_classes:
        known = _one_hot(rows.private)[:, 1]
    else:
        known = rows.private.unbiased(_numbers(rows.private)[:, None])[:, 0]

    def blocks() -> Iterator[tuple[NDArray[np.int64], Floats]]:
        for block in rows.blocks():
            predicted = block.predictions[model]
            if is_classes and predicted.shape[1:] != (2,):
                raise PrivateLabelError("calibration is of numbers, or of two labels")
            yield block.places, (predicted[:, 1] if is_classes else predicted) + 0.0  # −0 is 0

    if not 1 <= bins <= rows.count:
        raise PrivateLabelError("there are at least one bin, and a row for each")
    sizes = [len(part) for part in np.array_split(np.empty(rows.count, bool), bins)]
    edges = _smallest(lambda: (f for _, f in blocks()), np.cumsum(sizes)[:-1].tolist())
    seen, sums = [0] * len(edges), []
    counts = np.zeros((bins, len(known)), np.int64)
    for places, predicted in blocks():
        of_row = np.zeros(len(places), np.int64)
        for i, (edge, equal) in enumerate(edges):
            beyond, same = predicted > edge, np.flatnonzero(predicted == edge)
            beyond[same[max(equal - seen[i], 0) :]] = True
            seen[i] += len(same)
            of_row += beyond
        counts += np.bincount(of_row * len(known) + places, minlength=counts.size).reshape(
            counts.shape
        )
        sums.append(np.bincount(of_row, predicted, minlength=bins))
    whole, curve = float(counts.sum(axis=0) @ known) / rows.count, []
    for size, times, total in zip(sizes, counts, zip(*sums, strict=True), strict=True):
        value = float(times @ known) / size
        part = Estimate(value, 1.0, (-math.inf, math.inf))
        part.add(Terms(known - value), times=times)
        ends = part.interval(_reach(confidence), size)[:2]
        lift = value / whole if whole else math.nan
        curve.append(Bin(math.fsum(total) / size, value, *ends, lift, size))
    return curve


def _smallest(
    blocks: Callable[[], Iterable[Floats]], ranks: Sequence[int]
) -> list[tuple[float, int]]:
    """For each rank r, the r-th smallest of all numbers, and how many of the r have this value.

    The order of float64 is that of their bits as integers, of which each pass finds 16.
    """
    found = [(0, rank) for rank in ranks]  # the first bits, and the rank among numbers with them
    for shift in (48, 32, 16, 0):
        counts = {bits: np.zeros(1 << 16, np.int64) for bits, _ in found}
        for block in blocks():
            keys = block.view(np.uint64)
            keys = np.sort(keys ^ np.where(keys >> 63, ~np.uint64(0), np.uint64(1 << 63)))
            for bits in counts:
                own = slice(*np.searchsorted(keys >> shift >> 16, (bits, bits + 1)))
                digits = (keys[own] >> shift & 0xFFFF).astype(np.int64)
                counts[bits] += np.bincount(digits, minlength=1 << 16)
        for i, (bits, rank) in enumerate(found):
            up_to = np.cumsum(counts[bits])
            digit = int(np.searchsorted(up_to, rank))
            found[i] = (bits << 16 | digit, rank - int(up_to[digit] - counts[bits][digit]))
    signed = (bits ^ (1 << 63 if bits >> 63 else (1 << 64) - 1) for bits, _ in found)
    values = np.array(list(signed), np.uint64).view(np.float64).tolist()
    return [(value, rank) for value, (_, rank) in zip(values, found, strict=True)]


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
        given = {"": self._predictions(private, estimator, X)}
        rows = _rows(private, given, np.arange(private.rows))
        (found,) = measure(rows, [self.metric], CONFIDENCE)
        return found.value if self.metric in LARGER_IS_BETTER else -found.value

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
