"""An even lattice of privacy losses and, in integers, the likelihood ratios that belong to it."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

from labeldp_verify.analysis.bounds import exp_bounds

RATIO_BITS = 96
SLACK = Fraction(1, 1 << (RATIO_BITS - 1))
"""ln α_j lies at most this far above j·step."""


class Lattice:
    """The losses j·step, j = 0 … N, and α_j = ratios[j] / 2^96, which is e^(j·step) rounded up.

    N is the least number with α_N ≥ the ratio that the lattice has to reach.
    """

    def __init__(self, step: Fraction, ratio: Fraction) -> None:
        """``step`` > 0 exact, ``ratio`` ≥ 1: the largest likelihood ratio."""
        self.step = step
        self.ratios = [1 << RATIO_BITS]
        while self.ratio(-1) < ratio:
            power = exp_bounds(len(self.ratios) * step)[1]
            self.ratios.append(-(-(power.numerator << RATIO_BITS) // power.denominator))

    @property
    def reach(self) -> int:
        """N."""
        return len(self.ratios) - 1

    def ratio(self, j: int) -> Fraction:
        """α_j."""
        return Fraction(self.ratios[j], 1 << RATIO_BITS)

    def excesses(self, pairs: Iterable[tuple[int, int]]) -> list[int]:
        """[N + 1] Σ max(p − α_j·q, 0) over pairs of integers p, q ≥ 1, in units of 2^-96."""
        above: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for p, q in pairs:
            # Positive up to the last α_j that is at most p/q.
            sums = above[bisect_right(self.ratios, (p << RATIO_BITS) // q) - 1]
            sums[0] += p
            sums[1] += q
        result, first, second = [0] * len(self.ratios), 0, 0
        for j in reversed(range(len(self.ratios))):
            if j in above:
                first, second = first + above[j][0], second + above[j][1]
            result[j] = (first << RATIO_BITS) - self.ratios[j] * second
        return result
