"""Answers with noise: the only place where a staged release looks at labels.

An answer that is stored already is given again, and nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Int32, Int64, UInt8
from scipy.special import log_ndtr, softmax

from labeldp_trainer.data import Features
from labeldp_trainer.data.features import factors_of
from labeldp_trainer.discrete_gaussian.noise import noisy
from labeldp_trainer.errors import DataError
from labeldp_trainer.interactions.columns import BinnedColumn
from labeldp_trainer.interactions.questions import (
    BROAD,
    MAINLY_MAINS,
    MEAN_ALONE,
    Answered,
    FirstGuess,
    KeepRows,
    LabelQuestion,
    MeanCurve,
    Offset,
    Residuals,
)
from labeldp_trainer.interactions.terms import BLOCK, Terms
from labeldp_trainer.one_release.rows import (
    STEPS,
    UNIT,
    Lengths,
    RowOwners,
    RowSums,
    in_steps,
    lengths,
    squared_sensitivity,
    unit_of,
    user_shares,
)
from labeldp_trainer.staged_release.plan import (
    COUNT,
    BudgetPlan,
    DeltaError,
    HistogramBins,
    histogram_sensitivity,
    most_sums,
)
from labeldp_trainer.staged_release.release import PartFacts, ReleaseInStages, ReleasePart
from labeldp_trainer.staged_release.scale import NEARLY_ALL, LabelScale, ResidualGroups


@dataclass(frozen=True)
class ResidualSizes:
    """Sizes of residuals, by a histogram.

    Attributes:
        edges: [b + 1] of bins; the first is 0.
        shares: [b] of residuals in the bins; their sum is 1.
    """

    edges: Float64[np.ndarray, " e"]
    shares: Float64[np.ndarray, " b"]

    @cached_property
    def _middle(self) -> Float64[np.ndarray, " b"]:
        return (self.edges[1:] + self.edges[:-1]) / 2

    @cached_property
    def _whole(self) -> float:
        return float(self.shares @ self._middle**2)

    @cached_property
    def square(self) -> float:
        """Their mean square, of sizes that are even within a bin."""
        up, down = self.edges[1:], self.edges[:-1]
        return float(self.shares @ (up**2 + up * down + down**2)) / 3

    def slope(self, clip: float) -> float:
        """By how much clipping makes a residual smaller, on average."""
        return float(self.shares @ (np.minimum(self._middle, clip) * self._middle)) / self._whole

    def best_clip(self, noise: Callable[[float], float], cost: float) -> float:
        """The edge with the least expected error.

        ``noise`` gives the deviation of an estimated mean that noise makes, for a clip. If effects
        are as 1, 1/2, 1/3 …, and m of them share what may be spent, noise makes an error of m²·ν²,
        and the others leave V/m: of the best m it is as V^⅔·ν^⅔. What is cut off moves means where
        residuals are skewed, which adds ``cost`` times its share of the square.
        """

        def error(clip: float) -> float:
            cut = float(self.shares @ np.maximum(self._middle - clip, 0.0) ** 2) / self._whole
            return float((noise(clip) ** 2 / self.square) ** (1 / 3)) + cost * cut

        return min(self.edges[1:].tolist(), key=error)


_TAIL = 0.005  # of labels beyond either end of the range where nearly all lie
# What is cut off of labels beyond this skewness costs more: rare events are the rows that it is cut
# off. Noise hides the ends of a histogram, so that labels seem less skewed than they are.
_SKEWED_ABOVE, _CUT_OFF = 1.25, 0.05
_CUT, _CUT_SKEWED = 0.012, 0.1  # what a share of the square that is cut off costs
_DEVIATIONS = 3.5  # of a count, which noise alone may have
_MISSING = 2.0  # deviations, of all counts together
_MOST_NOISE = 0.2  # of the squares of shares
_LEAST_OF_EXPECTED = 0.25  # of the square that labels and predictions let expect
_ROOT = 0.5 * np.log(2 * np.pi)  # logarithm
_HIDDEN = 0.05  # of a deviation of labels: where noise of a mean is more, little is expected
Labels = Float64[np.ndarray, " n"] | Int32[np.ndarray, " n"]


def visible(
    shares: Float64[np.ndarray, " b"], noise: float, widths: Float64[np.ndarray, " b"]
) -> Float64[np.ndarray, " b"]:
    """Noisy shares without what noise alone may have made; the sum is 1.

    Bins are joined, 2, 4, 8 … of them, until noise is a small part of the squares; then those that
    it may have made are joined further. What is in joined bins is divided evenly. How many rows
    there are is known: if some are missing, they are where they may be, as probable as they are
    there. If one bin alone is seen, as many rows are expected elsewhere as noise may hide.
    """
    kept, size, every = np.zeros_like(shares), 1, np.arange(len(shares))
    while size < len(shares):
        block = every // size
        whole = np.bincount(block, shares)
        if kept.any() or len(shares) * noise**2 < _MOST_NOISE * float(whole @ whole):
            hidden = kept == 0
            count, sums = np.bincount(block, hidden), np.bincount(block, shares * hidden)
            apart = sums / (noise * np.sqrt(np.maximum(count, 1)))
            seen = hidden & (apart > _DEVIATIONS)[block]
            kept += np.where(seen, (sums / np.maximum(count, 1))[block], 0.0)
        size *= 2
    missing, hidden = 1 - float(kept.sum()), kept == 0
    if hidden.all():
        kept = widths
    elif hidden.any():
        seen = np.count_nonzero(kept)
        deviation = noise * np.sqrt(seen)
        if seen == 1:
            ratio = missing / deviation
            missing += deviation * np.exp(-ratio * ratio / 2 - _ROOT - log_ndtr(ratio))
        elif missing < _MISSING * deviation:
            return np.asarray(kept / kept.sum())
        kept += missing * _probable(missing, shares, noise, hidden)
    return np.asarray(kept / kept.sum())


def _probable(
    missing: float, shares: Float64[np.ndarray, " b"], noise: float, hidden: Bool[np.ndarray, " b"]
) -> Float64[np.ndarray, " b"]:
    """Where missing rows may be, given the noisy shares: evenly in the hidden ones of 1, 2, 4, 8 …
    neighbours, which are equally likely before. The sum is 1."""
    places, gains, size, every = [], [], 1, np.arange(len(shares))
    while size < 2 * len(shares):
        for block in range(-(-len(shares) // size)):
            own = hidden & (every // size == block)
            if own.any():
                place = own / np.count_nonzero(own)
                places.append(place)
                gains.append(missing * float(place @ (shares - missing * place / 2)) / noise**2)
        size *= 2
    return np.asarray(softmax(gains) @ np.array(places))


@dataclass(frozen=True)
class LabelColumn:
    """True labels, as a release reads them.

    Attributes:
        column: the labels [n] of rows in memory.
        read: gives of a column numbers within the range, or classes [n]. A number that is NaN is
            in no bin, and equals every prediction.
    """

    column: Any
    read: Callable[[Any], Labels] = np.asarray

    @cached_property
    def values(self) -> Labels:
        """Read once, though several parts ask about them."""
        return self.read(self.column)


@dataclass(frozen=True)
class PublicTable:
    """The public side of a table.

    All that is ever asked of every row is ``sums``. What else is decided may come from a sample.

    Attributes:
        features: of the n training rows, or of a sample of them.
        columns: their bins and basis functions, as they are learned from the features.
        codes: [s, columns] the bins of the rows.
        rows: whose they are.
    """

    features: Features
    columns: Sequence[BinnedColumn]
    codes: UInt8[np.ndarray, "s c"]
    rows: RowOwners
    _last: dict[type, tuple[object, Any]] = field(default_factory=dict, init=False, repr=False)

    @property
    def count(self) -> int:
        """n."""
        return self.rows.count

    def sums(
        self,
        asked: LabelCounts | LabelSums,
        labels: LabelColumn | None = None,
        keep: KeepRows = lambda part, whole: None,
    ) -> RowSums:
        """Over all rows; without labels their lengths alone. No moments."""
        return asked.over(self, None if labels is None else labels.values, keep)

    def terms(self) -> Terms:
        """Those of these rows; none is chosen."""
        return Terms(self.columns, self.codes, ())

    def predicted(self, offset: Offset) -> Float64[np.ndarray, " s"]:
        """What labels of these rows are compared with."""
        exposure = factors_of(self.features, "exposure")
        return self._once(offset, lambda: offset.over(self.terms(), exposure))

    def shares(self, question: LabelQuestion) -> Float[np.ndarray, " s"]:
        """What multiplies the rows: weights, and what makes those of a user short."""

        def found() -> Float[np.ndarray, " s"]:
            relative = self.rows.relative
            own = user_shares(self.rows, question.integer_rows(self.terms(), relative))
            return relative if own is None else relative * own

        return self._once(question, found)

    def _once(self, key: object, compute: Callable[[], Any]) -> Any:
        """Not again for the last of its kind."""
        if self._last.get(type(key), (None,))[0] is not key:
            self._last[type(key)] = key, compute()
        return self._last[type(key)][1]


@dataclass(frozen=True)
class LabelCounts:
    """A histogram of labels, or of what is left of them by a prediction.

    Attributes:
        size: bins 0 … size − 1; a row in bin ``size`` does not count.
        bins: the bins of labels on their scale [b], and of predictions.
        scale: of labels.
        offset: the prediction, if there is one.
        weighted: whether rows count by their weights.
    """

    size: int
    bins: Callable[[Any, Any], Int[np.ndarray, " b"]]
    scale: LabelScale
    offset: Offset | None = None
    weighted: bool = False

    @property
    def nothing(self) -> RowSums:
        """Over no rows."""
        return RowSums.zeros(0, (self.size,))

    def over(self, table: PublicTable, labels: Any, keep: KeepRows) -> RowSums:
        """Over the rows in memory, in steps; the most rows of a user instead of a length."""
        del keep
        found, counts = self.nothing, np.zeros(self.size + 1, np.int64)
        steps = steps_of(table.rows) if self.weighted else np.full(len(table.codes), COUNT)
        predicted = None if self.offset is None else table.predicted(self.offset)
        for part in table.terms().parts(BLOCK):
            own = None if predicted is None else predicted[part]
            np.add.at(counts, self.bins(self.scale.of(labels[part]), own), steps[part])
        most = 0 if table.rows.owners is None else int(np.bincount(table.rows.owners).max())
        return found._replace(labels=counts[:-1], lengths=Lengths(most, ()))


@dataclass(frozen=True)
class LabelSums:
    """The sum of a question.

    Attributes:
        question: with rows, and what labels are compared with.
        scale: of labels.
        outputs: entries of t.
        unit: lattice steps in the length of the longest row.
    """

    question: LabelQuestion
    scale: LabelScale
    outputs: int
    unit: int = UNIT

    @property
    def nothing(self) -> RowSums:
        """Over no rows."""
        return RowSums.zeros(0, (self.question.size, self.outputs))

    def over(self, table: PublicTable, labels: Any, keep: KeepRows) -> RowSums:
        """Over the rows in memory; lengths and sums are of the same integers."""
        question, found = self.question, self.nothing
        predicted, shares = None, table.shares(question) * (self.unit / UNIT)
        if labels is not None and question.offset is not None:
            predicted = table.predicted(question.offset)

        def entries(part: slice) -> Float64[np.ndarray, "b k"]:
            if predicted is None:
                return (labels[part, None] == np.arange(self.outputs)).astype(np.float64)
            # nothing if it is missing
            apart = np.nan_to_num(self.scale.of(labels[part]) - predicted[part])
            return in_steps(apart / question.clip)[:, None].astype(np.float64)

        def rows() -> Iterator[tuple[slice, Float64[np.ndarray, "b m"]]]:
            for part, q in question.integer_rows(table.terms(), shares):
                if labels is not None:
                    # whole numbers below 2^24·2^12·2^12: the float64 sum is exact
                    np.add(found.labels, (q.T @ entries(part)).astype(np.int64), out=found.labels)
                keep(part, q * (UNIT / self.unit))
                yield part, q

        return found._replace(lengths=lengths(rows(), table.rows))


def steps_of(rows: RowOwners) -> Int64[np.ndarray, " n"]:
    """What weighted rows count as: at most COUNT steps each, and not 0."""
    return np.maximum(np.rint(rows.relative.astype(float) * COUNT).astype(np.int64), 1)


def _bins(
    edges: Float64[np.ndarray, " e"],
    labels: Float64[np.ndarray, " b"],
    predicted: Float64[np.ndarray, " b"] | None,
) -> Int64[np.ndarray, " b"]:
    """The bins of labels, or of the sizes of residuals; one too many for NaN."""
    x = labels if predicted is None else np.abs(labels - predicted)
    found = np.searchsorted(edges[1:-1], x, side="right")
    return np.where(np.isnan(x), len(edges) - 1, found)


@dataclass
class Draws:
    """A source of answers that draws what is not stored.

    Answers are as if the rows in memory were all rows: each is that of all, times s/n.

    Attributes:
        release: what is there so far.
        table: has the rows.
        true: the labels; None if all is stored.
        grown: called with the release whenever a part was drawn, before the next is decided.
        asked: called with the number of a stored part of sums and the question decided here.
        add_noise: gives what is released, from an exact statistic and the scale of its noise.
    """

    release: ReleaseInStages
    table: PublicTable
    true: LabelColumn | None
    grown: Callable[[ReleaseInStages], None]
    asked: Callable[[int, LabelQuestion], None] = lambda part, question: None
    add_noise: Callable[[Int64[np.ndarray, "b k"], int], Int64[np.ndarray, "b k"]] = noisy
    extra: float = 0.0
    visible: bool = False

    def __post_init__(self) -> None:
        """Start with the first part."""
        facts = self.release.facts
        self.table = replace(self.table, columns=self.release.columns)
        self.rows, self.exposure = self.table.rows, factors_of(self.table.features, "exposure")
        self._share, self._steps = self.rows.count / facts.rows, unit_of(facts.rows)
        self._plan = BudgetPlan.of(
            Fraction(facts.epsilon), Fraction(facts.delta), classes=facts.classes is not None
        )
        self.most_sums = most_sums(facts.rows)
        self.refined = self._plan.refined(facts.rows * self.rows.usual_length)
        self.guess = BROAD if facts.classes is None else MAINLY_MAINS
        self._at, self._skewed, self._square, self._first_clip = 0, False, 0.0, 0.0
        self._slope: Callable[[float], float] = lambda clip: 1.0
        self._scale = LabelScale(0.0)

    def labels(self) -> FirstGuess:
        """From a noisy histogram of labels."""
        facts = self.release.facts
        if facts.label_range is None:
            assert facts.classes is not None
            edges = np.arange(len(facts.classes) + 1) - 0.5
            shares, _ = self._counted(len(facts.classes), partial(_bins, edges))
            return FirstGuess.of_classes(shares)
        edges = HistogramBins.of(facts.label_range).labels
        shares, noise = self._histogram(edges)
        middle = (edges[1:] + edges[:-1]) / 2
        if self.exposure is None:
            low, few = facts.label_range[0], not self.refined
            self._scale = LabelScale.least_skewed(low, middle, shares, few=few)
        edges = self._scale.of(edges)
        middle, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
        away = middle - shares @ middle
        self._square = square = float(shares @ away**2)
        self._skewed = abs(float(shares @ away**3)) > _SKEWED_ABOVE * square**1.5
        variance = square + float(shares @ widths**2) / 12
        tails = np.array([_TAIL, 1 - _TAIL])
        first, last = np.minimum(np.searchsorted(np.cumsum(shares), tails), len(shares) - 1)
        a, b = float(edges[first]), float(edges[last + 1])
        if self._skewed:
            beyond = np.maximum(edges[:-1][None, :] - edges[1:, None], 0.0) ** 2 @ shares
            b = max(b, float(edges[1:][np.argmax(beyond <= _CUT_OFF * square)]))
        self._first_clip = clip = (b - a) / 2
        # of so few other labels, no feature tells
        if 1 - shares.max() < min(_DEVIATIONS * noise, 1 - NEARLY_ALL):
            self.guess = MEAN_ALONE
        elif self.noise(clip) > _HIDDEN * variance**0.5 * self.rows.count:
            self.guess = MAINLY_MAINS
        return FirstGuess(np.array([(a + b) / 2]), variance, clip, self._ends)

    def residuals(self, offset: Offset) -> Residuals:
        """From a noisy histogram of the sizes of residuals."""
        edges, predicted = HistogramBins.of(self._ends).sizes, self.table.predicted(offset)
        shares, _ = self._histogram(edges, offset)
        sizes = ResidualSizes(edges, shares)
        self._slope = sizes.slope
        cost = _CUT_SKEWED if self._skewed else _CUT
        clip = sizes.best_clip(lambda clip: self.noise(clip) / self.rows.count, cost)
        # noise may hide large residuals, but not that predictions vary less than labels
        expected = max(_LEAST_OF_EXPECTED * (self._square - float(predicted.var())), sizes.square)
        clip *= (expected / sizes.square) ** 0.5
        if self._skewed and clip < self._first_clip:
            clip, self._slope = self._first_clip, lambda clip: 1.0
        return Residuals(expected, clip)

    def curve(self, offset: Offset, spread: float) -> MeanCurve | None:
        """From a noisy histogram of residuals in groups of rows by their prediction."""
        sigma = self._plan.sigma(self._at, histogram_sensitivity(self.rows.most_rows))
        # a mean is one of weighted rows
        predicted, steps = self.table.predicted(offset), steps_of(self.rows)
        groups = ResidualGroups.of(predicted, steps, spread, sigma * self._share)
        shares, noise = self._counted(groups.cells, groups.cells_of, offset, weighted=True)
        ends = self.release.facts.label_range
        if ends is None or self._scale.power == 1:
            return None
        return groups.curve(shares, noise, self._scale, ends)

    def noise(self, clip: float) -> float:
        """About the deviation of the next sums, in units of labels and of rows of usual length."""
        moved = squared_sensitivity(self._steps**2, classes=self._classes)
        return self._plan.sigma(self._at, moved) * self._unit(clip) / self.rows.usual_length

    def sums(self, question: LabelQuestion, keep: KeepRows) -> Answered:
        """The noisy sums."""
        part = None
        if self._at < len(self.release.parts):
            self.asked(self._at, question)
            part, ends = self.release.parts[self._at], self.release.facts.label_range
            if ends is not None and part.scale(ends[0]) != self._scale:
                raise ValueError("the labels are on another scale")
            question = part.question(ends)
        shares = self.table.shares(question)
        part = part or self._draw_sums(question, keep)
        self._at += 1
        unit, offset = self._unit(question.clip), question.offset
        predicted = None if offset is None else self.table.predicted(offset)
        return Answered(question, shares, part.answer * unit, part.facts.sigma * unit, predicted)

    @property
    def _classes(self) -> bool:
        return self.release.facts.classes is not None

    def _unit(self, clip: float) -> float:
        """Of sums, as if nothing were clipped: clipping makes a residual smaller, by its slope."""
        unit = 1.0 if self._classes else clip / STEPS / self._slope(clip)
        return unit / self._steps * self._share

    @property
    def _ends(self) -> tuple[float, float]:
        """Of the labels, on their scale."""
        assert self.release.facts.label_range is not None
        return self._scale.ends(self.release.facts.label_range)

    def _histogram(
        self, edges: Float64[np.ndarray, " b"], offset: Offset | None = None
    ) -> tuple[Float64[np.ndarray, " c"], float]:
        """Shares of labels, or of the sizes of residuals, in bins, without what noise alone may
        have made; the sum is 1. And the deviation of the noise of one."""
        shares, noise = self._counted(len(edges) - 1, partial(_bins, edges), offset)
        return visible(shares, noise, np.diff(edges)), noise

    def _counted(
        self,
        count: int,
        bins: Callable[[Any, Any], Int[np.ndarray, " r"]],
        offset: Offset | None = None,
        *,
        weighted: bool = False,
    ) -> tuple[Float64[np.ndarray, " b"], float]:
        """Shares of the rows in bins 0 … count − 1, and the deviation of their noise; a row counts
        as at most COUNT steps."""
        if self._at == len(self.release.parts):
            moved = histogram_sensitivity(self.rows.most_rows)
            sigma = self._plan.sigma(self._at, moved)
            asked = LabelCounts(count, bins, self._scale, offset, weighted)
            facts = PartFacts(
                kind=self._plan.parts[self._at][0],
                sigma=sigma,
                squared_sensitivity=moved,
                previous_sha256=self.release.sha256,
            )
            found = self.table.sums(asked, self.true)
            if found.lengths.longest > self.rows.most_rows:
                raise DataError("the table was changed while it was read")
            self._grow(facts, found.labels)
        part = self.release.parts[self._at]
        if len(part.answer) != count:
            raise ValueError("the histogram has other bins")
        self._at += 1
        steps = float(np.mean(steps_of(self.rows))) if weighted else COUNT
        total = steps * self.release.facts.rows
        return part.answer / total, part.facts.sigma / total

    def _draw_sums(self, question: LabelQuestion, keep: KeepRows) -> ReleasePart:
        classes = self.release.facts.classes
        asked = LabelSums(question, self._scale, len(classes or (0,)), self._steps)
        _, found, total = self.table.sums(asked, self.true, keep)
        moved = squared_sensitivity(found.longest, self.release.facts.rows, classes=self._classes)
        offset = question.offset
        facts = PartFacts(
            kind="sums",
            sigma=self._plan.sigma(self._at, moved),
            squared_sensitivity=moved,
            longest=found.longest,
            terms=question.terms,
            shift=question.rows.shift,
            floor=question.rows.floor,
            clip=None if offset is None else question.clip,
            offset_terms=None if offset is None else offset.terms,
            unit=None if offset is None else offset.unit,
            base=None if offset is None else offset.base,
            start=None if offset is None else self._scale.start,
            power=None if offset is None else self._scale.power,
            rows_sha256=found.sha256,
            previous_sha256=self.release.sha256,
        )
        weights = question.rows.weights
        self._grow(facts, total, weights, None if offset is None else offset.weights)
        return self.release.parts[-1]

    def _grow(
        self,
        facts: PartFacts,
        exact: Int64[np.ndarray, ...],
        weights: Int32[np.ndarray, "w m"] | None = None,
        offset: Int32[np.ndarray, " w"] | None = None,
    ) -> None:
        """Add a part with noise, if what is proved of all parts then stays within δ."""
        stated = self.release.facts
        empty = ReleasePart(facts, exact, weights, offset)
        noises = [*(part.noise for part in self.release.parts), empty.noise]
        if self._plan.proved_delta(noises, Fraction(stated.epsilon)) > Fraction(stated.delta):
            raise DeltaError()
        answer = self.add_noise(exact.reshape(len(exact), -1), facts.sigma).reshape(exact.shape)
        self.release = self.release.with_part(ReleasePart(facts, answer, weights, offset))
        self.grown(self.release)
