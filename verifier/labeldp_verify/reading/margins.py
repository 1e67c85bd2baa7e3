"""The 95% margin of error of an average over n private labels: a bound, not an approximation.

A row's noise Z is its private label (or the weight used instead) minus the true one. The noise of
different rows is independent, and its distribution given the true label is known exactly: with the
variance v, E|Z − E Z|³ ≤ K·v and |Z − E Z| ≤ M. For S = Σ (Z − E Z) over n rows

    Bernstein     Pr[|S| ≥ t] ≤ 2·exp(−t²/(2·(n·v + M·t/3)))
    Chernoff      Pr[|S| ≥ t] ≤ 2·exp(n·ψ(λ) − λ·t), where log E exp(±λ·(Z − E Z)) ≤ ψ(λ) is known
    Berry-Esseen  Pr[|S| ≥ t] ≤ 2·(1 − Φ(t/√(n·v))) + 2·C·K/√(n·v), C = 0.56 (Shevtsova 2010)

The first two hold for rare outputs as well; the third comes close to the normal distribution's 1.96
where n is large. The mean variance v of the rows depends on the unknown labels. The bound holds for
every v between the least and the largest variance of a label.
"""

import math
from dataclasses import dataclass

CONFIDENCE = 0.95
_MISSES = 1 - CONFIDENCE
_BERRY_ESSEEN = 0.56
_FINER = 1.05  # from one variance that is looked at to the next
_HALVINGS = 40
_ABOVE = 1 + 1e-9  # what sums of float64 may be off


@dataclass(frozen=True)
class Noise:
    """What is known of the noise of one row, in units of the label.

    Attributes:
        least, most: of its variance, over all labels in the range.
        average: its variance if the labels are distributed as the prior says; at most that.
        third: K, the largest ratio of E|Z − E Z|³ to the variance.
        reach: M, the largest |Z − E Z|.
        bias: the largest |E Z|.
        tail: (λ, ψ(λ)) for several λ > 0, or nothing.
    """

    least: float
    average: float
    most: float
    third: float
    reach: float
    bias: float = 0.0
    tail: tuple[tuple[float, float], ...] = ()

    def margin(self, rows: int) -> float:
        """The 95% margin of error of an average over ``rows`` private labels.

        Holds for all labels in the range.
        """
        return self._bound(self.least, self.most, rows)

    def margin_under_prior(self, rows: int) -> float:
        """The same if the labels of the rows are distributed as the prior says."""
        return self._bound(self.average, self.average, rows)

    def _bound(self, least: float, most: float, rows: int) -> float:
        """The least t/n that the inequalities allow, plus the bias."""
        if most <= 0:
            return self.bias
        high = self._chernoff(most, rows)
        low = math.sqrt(rows * most)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (
                (low, middle) if self._is_rare(middle, least, most, rows) else (middle, high)
            )
        return high / rows * _ABOVE + self.bias

    def _chernoff(self, variance: float, rows: int) -> float:
        """The sum that is passed once in 20 times at most, by Bernstein or by Chernoff."""
        budget = math.log(2 / _MISSES)
        jump = budget * self.reach / 3
        bernstein = jump + math.sqrt(jump**2 + 2 * budget * rows * variance)
        return min([bernstein, *((rows * psi + budget) / rate for rate, psi in self.tail)])

    def _is_rare(self, t: float, least: float, most: float, rows: int) -> bool:
        """Whether Pr[|S| ≥ t] ≤ 5% for every variance between the two."""
        above = most
        while True:
            if self._chernoff(above, rows) <= t:  # and so for every smaller variance
                return True
            below = max(above / _FINER, least)
            if below <= 0:
                return False
            normal = math.erfc(t / math.sqrt(2 * rows * above))
            off = 2 * _BERRY_ESSEEN * self.third / math.sqrt(rows * below)
            if normal + off > _MISSES:
                return False
            if below == least:
                return True
            above = below
