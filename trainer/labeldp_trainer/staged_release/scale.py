"""The scale on which numbers are learned: a power of the label, and the way back to its mean.

On the scale on which labels are least skewed, effects that multiply become effects that add up, and
one clip suits the residuals of all rows. Which scale that is follows from the histogram of labels
that a release begins with. The mean of a label is not the label of the mean: what lies between them
is found from a histogram of residuals in groups of rows (smearing; Duan 1983).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Float64, Int64

from labeldp_trainer.interactions.questions import MeanCurve

_POWERS = (1.0, 0.75, 0.5, 0.33, 0.2, 0.0)
_COST = 0.25  # in skewness, of a power of 0: a scale as it is needs no way back
_START = 0.02  # of the distance of the mean from the lower end
NEARLY_ALL = 0.9
"""Labels in one bin: others are too few to tell a scale."""
_AT_END, _LEAST_AT_END = 0.1, 0.5  # with this share at the lower end, no power is less than that
_UNIFORM = 5 / 9  # (skewness² + 1)/kurtosis: of labels in two heaps it is more, up to 1


@dataclass(frozen=True)
class LabelScale:
    """t(y) = (y − low + start)^power, and its logarithm where the power is 0; y where it is 1.

    Attributes:
        low: end of the range of labels.
        start: so that a label at the lower end has a finite slope.
        power: of the distance.
    """

    low: float
    start: float = 0.0
    power: float = 1.0

    @classmethod
    def least_skewed(
        cls,
        low: float,
        middles: Float64[np.ndarray, " b"],
        shares: Float64[np.ndarray, " b"],
        *,
        few: bool = False,
    ) -> Self:
        """Of labels with these shares around these numbers.

        No power suits labels in two heaps, such as many zeros and others (Sarle's coefficient). A
        small one would mostly tell the labels at the lower end from the others, if they are many;
        of ``few`` rows, noise hides the way back to their mean.
        """
        start = _START * (float(shares @ middles) - low)
        if not start > 0 or shares.max() > NEARLY_ALL:
            return cls(low)

        def cost(power: float) -> float:
            t = cls(low, start, power).of(middles)
            away = t - shares @ t
            square = float(shares @ away**2) or 1.0
            away = away / square**0.5
            skewness, kurtosis = float(shares @ away**3), float(shares @ away**4)
            heaps = power < 1 and skewness**2 + 1 > _UNIFORM * kurtosis
            return math.inf if heaps else abs(skewness) + _COST * (1 - power)

        many = shares[0] > _AT_END
        least = (1.0 if few else _LEAST_AT_END) if many else 0.0
        power = min((power for power in _POWERS if power >= least), key=cost)
        return cls(low) if power == 1 else cls(low, start, power)

    def of(self, labels: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        """Labels on this scale; NaN stays NaN."""
        if self.power == 1:
            return labels
        away = np.maximum(labels - self.low, 0.0) + self.start
        return np.asarray(np.log(away) if self.power == 0 else away**self.power)

    def back(self, t: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        """The labels of numbers on this scale."""
        if self.power == 1:
            return t
        away = np.exp(t) if self.power == 0 else np.maximum(t, 0.0) ** (1 / self.power)
        return np.asarray(np.maximum(away - self.start, 0.0) + self.low)

    def ends(self, label_range: tuple[float, float]) -> tuple[float, float]:
        """A range of labels on this scale."""
        low, high = self.of(np.array(label_range)).tolist()
        return low, high


MOST_GROUPS, RESIDUAL_BINS = 4, 18
"""Of rows by their prediction, and of residuals: half a deviation each, and two for all others."""
_WIDEST = 4.0  # deviations
_NOISE_OF_A_GROUP = 40.0  # deviations of a count that a group has at least
_POINTS = 129
_ROWS_EXPECTED = 100.0  # that a normal shape of residuals counts as
_STEPS = 50


@dataclass(frozen=True)
class ResidualGroups:
    """Groups of rows by their prediction, and bins of the residuals in each.

    Attributes:
        predicted: [n] of the rows.
        steps: [n] that a row counts as.
        edges: [g − 1] between the groups.
        deviation: of residuals: the unit of the bins.
    """

    predicted: Float64[np.ndarray, " n"]
    steps: Int64[np.ndarray, " n"]
    edges: Float64[np.ndarray, " e"]
    deviation: float

    @classmethod
    def of(
        cls,
        predicted: Float64[np.ndarray, " n"],
        steps: Int64[np.ndarray, " n"],
        spread: float,
        sigma: float,
    ) -> Self:
        """Residuals have this variance, and counts of steps noise of this deviation."""
        groups = int(np.clip(steps.sum() / (_NOISE_OF_A_GROUP * sigma), 1, MOST_GROUPS))
        inner = np.linspace(0, 1, groups + 1)[1:-1]
        edges = np.unique(np.quantile(predicted, inner, method="higher"))
        return cls(predicted, steps, edges[edges > predicted.min()], float(np.sqrt(spread)))

    @property
    def cells(self) -> int:
        """How many bins all groups have."""
        return RESIDUAL_BINS * (len(self.edges) + 1)

    def _groups_of(self, predicted: Float64[np.ndarray, " b"]) -> Int64[np.ndarray, " b"]:
        return np.searchsorted(self.edges, predicted, side="right")

    def cells_of(
        self, labels: Float64[np.ndarray, " b"], predicted: Float64[np.ndarray, " b"]
    ) -> Int64[np.ndarray, " b"]:
        """The bins of any rows; ``cells`` of a row without a label."""
        residuals = labels - predicted
        cuts = np.linspace(-_WIDEST, _WIDEST, RESIDUAL_BINS - 1) * self.deviation
        bins = np.searchsorted(cuts, residuals, side="right")
        bins += self._groups_of(predicted) * RESIDUAL_BINS
        return np.where(np.isnan(residuals), self.cells, bins)

    def curve(
        self,
        shares: Float64[np.ndarray, " c"],
        noise: float,
        scale: LabelScale,
        label_range: tuple[float, float],
    ) -> MeanCurve:
        """From noisy shares of all steps in the bins; what noise hides is as if it were normal."""
        group = self._groups_of(self.predicted)
        rows = np.bincount(group, self.steps) / self.steps.sum()
        by_group = shares.reshape(len(rows), RESIDUAL_BINS)
        bin_width = 2 * _WIDEST / (RESIDUAL_BINS - 2)
        middles = (np.arange(RESIDUAL_BINS) - (RESIDUAL_BINS - 1) / 2) * bin_width
        normal = np.exp(-np.square(middles) / 2)
        of_all = _likely(by_group.sum(axis=0), noise * math.sqrt(len(rows)), normal / normal.sum())
        own = [_likely(s / r, noise / r, of_all) for s, r in zip(by_group, rows, strict=True)]
        low, high = scale.ends(label_range)
        points = np.linspace(self.predicted.min(), self.predicted.max(), _POINTS)
        labels = scale.back(np.clip(points[:, None] + middles[None, :] * self.deviation, low, high))
        centers = [np.median(self.predicted[group == number]) for number in range(len(rows))]
        found = labels @ np.array(own).T
        means = [np.interp(p, centers, means) for p, means in zip(points, found, strict=True)]
        return MeanCurve(points, np.array(means))


def _likely(
    shares: Float64[np.ndarray, " b"], noise: float, expected: Float64[np.ndarray, " b"]
) -> Float64[np.ndarray, " b"]:
    """The likeliest shares, given them with noise, if their relative entropy to those that are
    expected is as that of _ROWS_EXPECTED rows."""
    found, pull = expected, _ROWS_EXPECTED * noise**2
    for _ in range(_STEPS):
        # Newton's step of Σ (shares − x)²/2 + pull·Σ x·log(x/expected) in the logarithms of x
        slope = found - shares + pull * np.log(found / expected)
        curvature = 1.0 + pull / found
        level = (slope / curvature).sum() / (1 / curvature).sum()
        step = (level - slope) / (curvature * found)
        found = found * np.exp(np.clip(step, -1.0, 1.0))
        found = found / found.sum()
    return found
