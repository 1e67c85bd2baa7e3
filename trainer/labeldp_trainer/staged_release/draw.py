"""Answers with noise: the only place where a staged release looks at labels.

An answer that is stored already is given again, and nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int32, Int64

from labeldp_trainer.discrete_gaussian.noise import noisy
from labeldp_trainer.interactions.questions import (
    BROAD,
    MAINLY_MAINS,
    FirstGuess,
    KeepRows,
    LabelQuestion,
    Offset,
    Residuals,
)
from labeldp_trainer.interactions.terms import Terms
from labeldp_trainer.one_release.rows import (
    STEPS,
    UNIT,
    Lengths,
    RowOwners,
    in_steps,
    lengths,
    squared_sensitivity,
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

_LEAST_CLIP = 0.5  # in deviations of residuals
_CUT = 0.012  # what a share of the square that is cut off costs


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

    def clip_of_share(self, share: float) -> float:
        """Beyond which there is about this share of residuals, and not far below a deviation."""
        place = int(np.searchsorted(np.cumsum(self.shares), 1 - share))
        up = self.edges[1:]
        return max(float(up[min(place, len(up) - 1)]), _LEAST_CLIP * float(np.sqrt(self.square)))

    def best_clip(self, noise: Callable[[float], float], cost: float = _CUT) -> float:
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
# Labels beyond this skewness have this share of their residuals clipped, for clipping moves their
# mean. Noise hides the ends of a histogram, so that labels seem less skewed than they are.
_SKEWED_ABOVE, _CLIPPED_SKEWED = 1.25, 0.05
_DEVIATIONS = 3.0  # of a count, which noise alone may have
Labels = Float64[np.ndarray, " n"] | Int32[np.ndarray, " n"]


@dataclass
class Draws:
    """A source of answers that draws what is not stored.

    Attributes:
        release: what is there so far.
        codes: [n, columns] bins of the rows.
        rows: whose they are.
        true: gives the labels, numbers within the range or classes [n]; None if all is stored. A
            number that is NaN is in no bin, and equals every prediction.
        grown: called with the release whenever a part was drawn, before the next is decided.
        asked: called with the number of a stored part of sums and the question decided here.
        add_noise: gives what is released, from an exact statistic and the scale of its noise.
    """

    release: ReleaseInStages
    codes: Int32[np.ndarray, "n c"]
    rows: RowOwners
    true: Callable[[], Labels] | None
    grown: Callable[[ReleaseInStages], None]
    asked: Callable[[int, LabelQuestion], None] = lambda part, question: None
    add_noise: Callable[[Int64[np.ndarray, "b k"], int], Int64[np.ndarray, "b k"]] = noisy
    extra: float = 0.0
    visible: bool = False

    def __post_init__(self) -> None:
        """Start with the first part."""
        facts = self.release.facts
        self._plan = BudgetPlan.of(
            Fraction(facts.epsilon), Fraction(facts.delta), classes=facts.classes is not None
        )
        self.most_sums = most_sums(facts.rows)
        self.guess = BROAD if facts.classes is None else MAINLY_MAINS
        self._at, self._skewed = 0, False
        self._slope: Callable[[float], float] = lambda clip: 1.0

    def labels(self) -> FirstGuess:
        """From a noisy histogram of labels."""
        facts = self.release.facts
        if facts.label_range is None:
            assert facts.classes is not None
            shares, _ = self._counted(lambda y: np.asarray(y, np.int64), len(facts.classes))
            return FirstGuess.of_classes(shares)
        edges = self._bins.labels
        shares = self._histogram(edges, lambda y: y)
        middle, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
        away = middle - shares @ middle
        square = float(shares @ away**2)
        self._skewed = abs(float(shares @ away**3)) > _SKEWED_ABOVE * square**1.5
        variance = square + float(shares @ widths**2) / 12
        tails = np.array([_TAIL, 1 - _TAIL])
        first, last = np.minimum(np.searchsorted(np.cumsum(shares), tails), len(shares) - 1)
        a, b = float(edges[first]), float(edges[last + 1])
        return FirstGuess(np.array([(a + b) / 2]), variance, (b - a) / 2)

    def residuals(self, offset: Offset) -> Residuals:
        """From a noisy histogram of the sizes of residuals."""
        edges = self._bins.sizes
        shares = self._histogram(edges, lambda y: np.abs(y - self._predicted(offset)))
        sizes = ResidualSizes(edges, shares)
        if self._skewed:
            clip = sizes.clip_of_share(_CLIPPED_SKEWED)
            slope = sizes.slope(clip)  # that of the share, also if an earlier clip is smaller
            self._slope = lambda clip: slope
        else:
            self._slope = sizes.slope
            clip = sizes.best_clip(lambda clip: self.noise(clip) / self.rows.count)
        return Residuals(sizes.square, clip)

    def noise(self, clip: float) -> float:
        """About the deviation of the next sums, in units of labels and of rows of length 1."""
        moved = squared_sensitivity(UNIT * UNIT, classes=self._classes)
        return self._plan.sigma(self._at, moved) * self._unit(clip)

    def sums(
        self, question: LabelQuestion, keep: KeepRows
    ) -> tuple[LabelQuestion, Float64[np.ndarray, "m k"], float]:
        """The noisy sums, the question that they answer, and the deviation of the noise."""
        if self._at < len(self.release.parts):
            self.asked(self._at, question)
            part = self.release.parts[self._at]
            question = part.question(self.release.facts.label_range)
        else:
            part = self._draw_sums(question, keep)
        self._at += 1
        unit = self._unit(question.clip)
        return question, part.answer * unit, part.facts.sigma * unit

    @property
    def _classes(self) -> bool:
        return self.release.facts.classes is not None

    def _unit(self, clip: float) -> float:
        """Of sums, as if nothing were clipped: clipping makes a residual smaller, by its slope."""
        return 1 / UNIT if self._classes else clip / STEPS / UNIT / self._slope(clip)

    @cached_property
    def _bins(self) -> HistogramBins:
        facts = self.release.facts
        assert facts.label_range is not None
        return HistogramBins.of(facts.label_range)

    def _histogram(
        self, edges: Float64[np.ndarray, " b"], of: Callable[[Labels], Labels]
    ) -> Float64[np.ndarray, " c"]:
        """Shares of numbers in bins, without what noise alone may have made; the sum is 1."""

        def bins(y: Labels) -> Int64[np.ndarray, " n"]:
            x = of(y)
            return np.searchsorted(edges[1:-1], x[~np.isnan(x)], side="right")

        shares, noise = self._counted(bins, len(edges) - 1)
        kept = np.where(shares > _DEVIATIONS * noise, shares, 0.0)
        if not kept.sum() > 0:
            kept = np.ones_like(kept)
        return np.asarray(kept / kept.sum())

    def _counted(
        self, bins: Callable[[Labels], Int64[np.ndarray, " n"]], count: int
    ) -> tuple[Float64[np.ndarray, " b"], float]:
        """Shares of the rows, and the deviation of their noise."""
        if self._at == len(self.release.parts):
            assert self.true is not None
            moved = histogram_sensitivity(self.rows.most_rows)
            sigma = self._plan.sigma(self._at, moved)
            counts = np.bincount(bins(self.true()), minlength=count).astype(np.int64)
            facts = PartFacts(
                kind=self._plan.parts[self._at][0],
                sigma=sigma,
                squared_sensitivity=moved,
                previous_sha256=self.release.sha256,
            )
            self._grow(facts, counts * COUNT)
        part = self.release.parts[self._at]
        if len(part.answer) != count:
            raise ValueError("the histogram has other bins")
        self._at += 1
        n = self.rows.count
        return part.answer / COUNT / n, part.facts.sigma / COUNT / n

    def _draw_sums(self, question: LabelQuestion, keep: KeepRows) -> ReleasePart:
        assert self.true is not None
        found, total = self._summed(question, keep)
        moved = squared_sensitivity(found.longest, classes=self._classes)
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
            rows_sha256=found.sha256,
            previous_sha256=self.release.sha256,
        )
        weights = question.rows.weights
        self._grow(facts, total, weights, None if offset is None else offset.weights)
        return self.release.parts[-1]

    def _summed(
        self, question: LabelQuestion, keep: KeepRows
    ) -> tuple[Lengths, Int64[np.ndarray, "m k"]]:
        """The lengths of the integer rows, and their exact sum times the labels."""
        assert self.true is not None
        labels, offset, classes = self.true(), question.offset, self.release.facts.classes
        if offset is None:
            assert classes is not None
            entries = labels[:, None] == np.arange(len(classes))[None, :]
        else:
            apart = np.nan_to_num(labels - self._predicted(offset))  # nothing if it is missing
            entries = in_steps(apart / question.clip)[:, None]
        total = np.zeros((question.size, entries.shape[1]), np.int64)

        def rows() -> Iterator[tuple[slice, Float64[np.ndarray, "b m"]]]:
            table = Terms(self.release.columns, self.codes, question.terms)
            for part, q in question.integer_rows(table, self.rows.shares):
                # whole numbers below 2^24·2^12·2^12: the float64 sum is exact
                np.add(total, (q.T @ entries[part].astype(np.float64)).astype(np.int64), out=total)
                keep(part, q)
                yield part, q

        return lengths(rows(), self.rows), total

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

    def _predicted(self, offset: Offset) -> Float64[np.ndarray, " n"]:
        return offset.over(Terms(self.release.columns, self.codes, ()))


def measured(
    question: LabelQuestion,
    release: ReleaseInStages,
    codes: Int32[np.ndarray, "n c"],
    rows: RowOwners,
) -> Lengths:
    """The longest integer row of a question, and their digest."""
    table = Terms(release.columns, codes, question.terms)
    return lengths(question.integer_rows(table, rows.shares), rows)
