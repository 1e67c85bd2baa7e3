"""What follows from the counts of a table randomizer.

Numbers are brought to integers over one common denominator first, so that the sums over all counts
are sums of integers.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import compress
from operator import mul

from labeldp_verify.analysis.analysis import Labels, ListedAnalysis, Loss, Losses, Rows
from labeldp_verify.forms import TableRandomizer
from labeldp_verify.forms.exact_numbers import ExactNumbers, Whole, whole


class TableAnalysis(ListedAnalysis[TableRandomizer]):
    """The analysis of a table randomizer."""

    @property
    def rows(self) -> int:
        """k, the number of labels."""
        return len(self.randomizer.counts)

    def why_not_distributions(self) -> str | None:
        """What keeps the integers from being one distribution a row, or None."""
        r = self.randomizer
        for row in r.counts:
            if min(row) < 1:
                return "an output has probability 0 for some label"
            if sum(row) != r.words:
                return "the counts of a label do not add up to all words"
        return None

    def worst_ratio(self) -> Fraction:
        """The largest Pr[output | label] / Pr[output | label'] over all outputs and labels."""
        most, least = list(self.randomizer.counts[0]), list(self.randomizer.counts[0])
        for row in self.randomizer.counts[1:]:
            most = list(map(max, most, row))
            least = list(map(min, least, row))
        up, down = 1, 1
        for high, low in zip(most, least, strict=True):
            if high * down > up * low:
                up, down = high, low
        return Fraction(up, down)

    def losses(self, rows: Rows, labels: Labels, loss: Loss) -> Losses:
        """As of every form. Raises ValueError for sets of classes and another loss than 0-1."""
        if self.randomizer.sets is not None and loss != "zero_one":
            raise ValueError("sets of classes have only the zero_one loss")
        return super().losses(rows, labels, loss)

    def _sums(self, numbers: Sequence[int]) -> Whole:
        return whole(_dot(row, numbers) for row in self.randomizer.counts)

    def _absolute(self, rows: Rows, labels: ExactNumbers) -> ExactNumbers:
        """Outputs above y less those below, each with its distance."""
        (numbers, unit), parts, found = self._numbers, labels.unit, []
        for i, y in zip(rows.tolist(), labels.numerators * unit, strict=True):
            row = self.randomizer.counts[i]
            split = bisect_right(numbers, Fraction(y, parts))
            mass = sum(row) - 2 * sum(row[:split])
            moment = _dot(row, numbers) - 2 * _dot(row[:split], numbers[:split])
            found.append(moment * parts - y * mass)
        return ExactNumbers(whole(found), unit * parts * self.randomizer.words)

    def _zero_one(self, rows: Rows, labels: Labels) -> ExactNumbers:
        r = self.randomizer
        if r.sets is not None:
            return self._not_drawn_from_sets(rows)
        places = zip(rows.tolist(), self._equal_outputs(labels).tolist(), strict=True)
        kept = (r.counts[i][output] if output >= 0 else 0 for i, output in places)
        return ExactNumbers(whole(r.words - count for count in kept), r.words)

    def _not_drawn_from_sets(self, rows: Rows) -> ExactNumbers:
        """The 0-1 loss of a class that is drawn from the private set, each as likely."""
        r, sets = self.randomizer, self.randomizer.sets
        assert sets is not None
        sizes = [max(size, 1) for size in sets.sizes]
        unit = math.lcm(*set(sizes))
        shares = [unit // size for size in sizes]
        drawn = (
            sum(compress(map(mul, r.counts[i], shares), sets.matrix[i].tolist()))
            for i in rows.tolist()
        )
        return ExactNumbers(whole(r.words * unit - right for right in drawn), r.words * unit)


def _dot(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(map(mul, one, other))
