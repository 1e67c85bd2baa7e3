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

Rows are read in blocks, twice: for the means, then for the powers of what each row, or person, is
away from them. AUC reads them twice more. Memory holds one block, and for AUC and deciles at most
``_MOST_LEVELS`` distinct predictions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from labeldp_verify.artifact import Artifact
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
_ENTRIES = 1 << 20  # predictions of a block
_MOST_ROWS = 1 << 16
_MOST_LEVELS = 1 << 20


Block = tuple[NDArray[np.int64], Mapping[str, NDArray[Any]], NDArray[Any] | None]
"""Of some rows: ``codes`` [b] of private labels, predictions by the name of the model as
``prepared`` makes them, and numbers of persons [b], all of whose rows are here, or None."""


class Rows:
    """Rows of any number, which are read in blocks as often as sums need them.

    Attributes:
        private: their distinct private labels, increasing, with ``counts``.
        models: the names of the predictions.
        count: n.
    """

    def __init__(
        self, artifact: Artifact, models: Sequence[str], read: Callable[[], Iterable[Block]]
    ) -> None:
        """``read`` gives the same blocks in the same order each time.

        Sums of floats depend on blocks, so these must not depend on how a file is read.
        """
        self.models, self._read = models, read
        times = Counter[int]()
        for codes, *_ in read():
            found = np.unique(codes, return_counts=True)
            times.update(dict(zip(*map(np.ndarray.tolist, found), strict=True)))
        distinct = np.array(sorted(times), np.int64)
        counts = np.array([times[code] for code in distinct.tolist()])
        self.private, self.count = (
            PrivateLabels.of_outputs(artifact, distinct, counts),
            times.total(),
        )

    def blocks(self) -> Iterator[Block]:
        """As they are read, with the places [b] of private labels among the distinct ones."""
        for codes, given, persons in self._read():
            yield np.searchsorted(self.private.codes, codes), given, persons


class Terms(NamedTuple):
    """What the rows of a block add to an estimate N/D.

    Attributes:
        rows: [b] numbers whose mean is N.
        weights: [b] numbers whose mean is D, where both are sums over pairs of rows; None if D
            is 1.
        spread: [b, j] standard deviations that a row's private label is expected to add, of j
            independent parts, by its prediction alone; None where no row can have most of them.
        noisy: whether they depend on private labels.
        coarse: how far N can be off, because predictions were rounded.
    """

    rows: Floats
    weights: Floats | None = None
    spread: Floats | None = None
    noisy: bool = True
    coarse: float = 0.0

    def minus(self, other: Terms) -> Terms:
        """The difference of two estimates from the same rows, which have the same D."""
        spread = None
        if self.spread is not None and other.spread is not None:
            spread = self.spread - other.spread
        coarse = self.coarse + other.coarse
        return Terms(
            self.rows - other.rows, self.weights, spread, self.noisy or other.noisy, coarse
        )

    def sums(self) -> tuple[float, float]:
        """What they add to n·N and n·D."""
        bottom = len(self.rows) if self.weights is None else self.weights.sum()
        return float(self.rows.sum()), float(bottom)


class Estimate:
    """N/D, and the sums over rows, or persons, that its interval needs.

    Attributes:
        top, bottom: N and D.
        range: what N/D can be.
        noisy: whether it depends on the private labels at all.
        varies: whether rows differ.
        coarse: as of ``Terms``.
    """

    def __init__(self, top: float, bottom: float, ends: tuple[float, float]) -> None:
        """No rows."""
        self.top, self.bottom, self.range = top, bottom, ends
        self.noisy = self.varies = False
        self._powers: list[tuple[float, ...]] = []
        self._spread = self._largest = self.coarse = 0.0

    @property
    def value(self) -> float:
        """N/D; the middle of its range if D is 0 or below, where nothing is known."""
        low, high = self.range
        return min(max(self.top / self.bottom, low), high) if self.bottom > 0 else (low + high) / 2

    def add(self, each: Terms, persons: NDArray[np.int64] | None = None, times: Any = None) -> None:
        """Add rows, each of which counts ``times`` [b], 1 by default."""
        # How far each row moves the errors of N and D; a sum over pairs is moved by both rows.
        a: Any = each.rows - self.top
        b: Any = np.zeros(len(a))
        if each.weights is not None:
            a, b = 2 * a, 2 * (each.weights - self.bottom)
        self.noisy |= each.noisy
        self.varies |= bool(a.any())
        self.coarse = each.coarse
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
            ends.append(min(max(end + side * self.coarse / self.bottom, low), high))
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
    probabilities = all(given.ndim == _MATRIX for given in every.values())
    names = chosen_metrics(private, metrics, probabilities=probabilities)
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
    estimates, terms_of = _values(rows, metrics)
    for places, given, who in rows.blocks():
        persons = None if who is None else np.unique(who, return_inverse=True)[1]
        for key, terms in terms_of(places, given):
            estimates[key].add(terms, persons)
    measured = []
    for (metric, *models), one in estimates.items():
        # The difference of equal predictions is 0 for any labels.
        one.noisy &= bool(one.top) or one.varies or not estimates[metric, models[0]].varies
        found = one.value, *one.interval(_reach(confidence), rows.count), rows.count, one.largest
        measured.append(Measured(metric, " − ".join(models), group, *found))
    return measured


_Key = tuple[str, ...]  # a metric, and a model, or two that are compared


def _values(
    rows: Rows, metrics: Sequence[str]
) -> tuple[dict[_Key, Estimate], Callable[..., Iterator[tuple[_Key, Terms]]]]:
    """Estimates without intervals, from one pass over the rows; and the function that gives the
    terms of a block. Raises PrivateLabelError."""
    keys = [*((model,) for model in rows.models), *combinations(rows.models, 2)]
    every = {metric: {m: METRICS[metric](rows, m) for m in rows.models} for metric in metrics}

    def terms_of(places: NDArray[np.int64], given: Any) -> Iterator[tuple[_Key, Terms]]:
        for metric, of in every.items():
            each = {model: terms(places, given[model]) for model, terms in of.items()}
            for key in keys:
                yield (metric, *key), reduce(Terms.minus, map(each.__getitem__, key))

    sums = dict[_Key, list[tuple[float, float]]]()
    for places, given, _ in rows.blocks():
        for key, terms in terms_of(places, given):
            sums.setdefault(key, []).append(terms.sums())
    estimates = {}
    for key, parts in sums.items():
        top, bottom = (math.fsum(part) / rows.count for part in zip(*parts, strict=True))
        low, high = RANGES.get(key[0], (-math.inf, math.inf))
        ends = (low - high, high - low) if key[2:] else (low, high)
        estimates[key] = Estimate(top, bottom, ends)
    return estimates, terms_of


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


def _rows(
    private: PrivateLabels,
    every: Mapping[str, NDArray[Any]],
    rows: NDArray[np.int64],
    persons: NDArray[np.int64] | None = None,
) -> Rows:
    """Some of the rows of arrays [n], by their numbers; all in one block if there are persons."""
    widest = max(array[:1].size for array in every.values())
    step = max(1, len(rows) if persons is not None else min(_MOST_ROWS, _ENTRIES // widest))

    def read() -> Iterator[Block]:
        for start in range(0, len(rows), step):
            own = rows[start : start + step]
            given = {model: array[own] for model, array in every.items()}
            yield private.codes[own], given, None if persons is None else persons[own]

    return Rows(private.opened, list(every), read)


def _prepared(private: PrivateLabels, given: Any) -> NDArray[Any]:
    if private.counts is not None:
        raise PrivateLabelError("metrics are of single rows: leave out counts, and repeat the rows")
    return prepared(private.labels, given, numeric=is_numeric(private.opened))


def chosen_metrics(
    private: PrivateLabels, metrics: Sequence[str] | None, *, probabilities: bool
) -> list[str]:
    """The names that are given, or those of all metrics that fit.

    ``probabilities`` says whether all models predict these, where labels are classes. Raises
    PrivateLabelError for a name that is no metric.
    """
    for name in metrics or ():
        if name not in METRICS:
            there = ", ".join(METRICS)
            raise PrivateLabelError(f"there is no metric {name!r}; there are {there}")
    if metrics is not None:
        return list(metrics)
    if is_numeric(private.opened):
        return ["squared error", "absolute error"]
    if not probabilities:
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

    Scores with one level (``_Levels``) are equal; the interval has room for this.
    """
    known, n = _one_hot(rows.private), rows.count
    if known.shape[1] != 2:
        raise PrivateLabelError("AUC is of two labels")
    levels = _Levels(_probabilities(given[model])[:, 1] for _, given, _ in rows.blocks())
    sums, counts = np.zeros((2, levels.count)), np.zeros(levels.count, np.int64)
    for places, given, _ in rows.blocks():
        of_row = levels(given[model][:, 1])
        counts += np.bincount(of_row, minlength=levels.count)
        for label in (0, 1):
            sums[label] += np.bincount(of_row, known[places, label], levels.count)
    # For each level, the sums of the one-hot rows with smaller scores, and half of those with it.
    below = (np.cumsum(sums, axis=1) - sums / 2).T
    every, others = rows.private.counts @ known, 2 * max(n - 1, 1)
    # Of m rows, at most m²/4 pairs have different labels. An equal score counts as half a pair.
    pairs = int((counts**2 // 4).sum()) if levels.shift else 0
    coarse = pairs / (n * others)

    def terms(places: NDArray[np.int64], predicted: Floats) -> Terms:
        under, over = below[levels(predicted[:, 1])].T
        no, yes = known[places].T
        # Over pairs of different rows: the two labels of one row are not independent.
        pairs = yes * (under - no / 2) + no * (every[1] - over - yes / 2)
        weights = yes * (every[0] - no) + no * (every[1] - yes)
        return Terms(pairs / others, weights / others, noisy=levels.count > 1, coarse=coarse)

    return terms


class _Levels:
    """The distinct values of some numbers, in order, if these are at most ``_MOST_LEVELS``.

    Otherwise numbers with the same first bits have one level. These are as many bits as possible,
    and do not depend on the order of the numbers.

    Attributes:
        shift: how many bits are left out.
        count: how many levels there are.
    """

    def __init__(self, blocks: Iterable[Floats]) -> None:
        """Read the numbers."""
        self.shift, held = 0, list[NDArray[np.uint64]]()
        for numbers in blocks:
            held.append(self._bits(numbers))
            if sum(map(len, held)) >= 2 * _MOST_LEVELS:
                held = [self._merged(held)]
        self._keys = self._merged(held)
        self.count = len(self._keys)

    def __call__(self, numbers: Floats) -> NDArray[np.int64]:
        """[b] the level of each number."""
        own, back = np.unique(self._bits(numbers), return_inverse=True)
        return np.searchsorted(self._keys, own)[back]

    def _bits(self, numbers: Floats) -> NDArray[np.uint64]:
        """Whole numbers that have the order of float64."""
        bits = (numbers + 0.0).view(np.uint64)  # −0 is 0
        signs = np.where(bits >> 63, ~np.uint64(0), np.uint64(1 << 63))
        return np.asarray((bits ^ signs) >> np.uint64(self.shift))

    def _merged(self, held: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
        keys = np.sort(np.concatenate(held))
        apart, shift = keys[1:] ^ keys[:-1], 0
        while np.count_nonzero(apart >> np.uint64(shift)) >= _MOST_LEVELS:
            shift += 1
        self.shift, keys = self.shift + shift, keys >> np.uint64(shift)
        return np.asarray(keys[np.append(True, keys[1:] != keys[:-1])])


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
    ``lift`` the usual one. Rows with equal predictions are in one bin, so that there can be fewer
    bins, which differ in size.

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
        for places, given, _ in rows.blocks():
            predicted = given[model]
            if is_classes and predicted.shape[1:] != (2,):
                raise PrivateLabelError("calibration is of numbers, or of two labels")
            yield places, predicted[:, 1] if is_classes else predicted

    if not 1 <= bins <= rows.count:
        raise PrivateLabelError("there are at least one bin, and a row for each")
    levels = _Levels(f for _, f in blocks())
    of_level = np.zeros(levels.count, np.int64)
    for _, f in blocks():
        of_level += np.bincount(levels(f), minlength=levels.count)
    ends = np.cumsum([len(part) for part in np.array_split(np.empty(rows.count, bool), bins)])
    # Rows of one level are together, in the bin of the middle one.
    bin_of = np.searchsorted(ends, np.cumsum(of_level) - of_level / 2, side="right")
    counts, sums = np.zeros((bins, len(known)), np.int64), np.zeros(bins)
    for places, f in blocks():
        own = bin_of[levels(f)]
        flat = np.bincount(own * len(known) + places, minlength=counts.size)
        counts += flat.reshape(counts.shape)
        sums += np.bincount(own, f, bins)
    whole, curve = float(counts.sum(axis=0) @ known) / rows.count, []
    for times, total in zip(counts, sums.tolist(), strict=True):
        if size := int(times.sum()):
            value = float(times @ known) / size
            part = Estimate(value, 1.0, (-math.inf, math.inf))
            part.add(Terms(known), times=times)
            low, high, _ = part.interval(_reach(confidence), size)
            lift = value / whole if whole else math.nan
            curve.append(Bin(total / size, value, low, high, lift, size))
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
        given = {"": self._predictions(private, estimator, X)}
        rows = _rows(private, given, np.arange(private.rows))
        (found,) = _values(rows, [self.metric])[0].values()
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
