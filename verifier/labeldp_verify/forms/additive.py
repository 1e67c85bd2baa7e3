"""The additive randomizer: one noise distribution for all labels, on an evenly spaced lattice.

Label y is at lattice point y·S (S = ``spacing``), so the labels span D = (k − 1)·S steps, the
*period*. The noise is n = b·D + i: a first word draws the block b in [−J − 1, J], a second word
draws i in [0, D) from the shape of the block's side of zero, and

    output = clamp(y·S + n, low, high),      Pr[n = b·D + i] = blocks[b]·shapes[side][i] / 2^(2B).

The two outermost blocks are the folded tails: with noise from them, every label is clamped to
``low`` or ``high``. Points one period apart have the same i, so the ratio of their weights is that
of two blocks. It is exactly e^ε where it is e^ε in the Laplace and staircase distributions.
"""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

ADDITIVE_WORD_BITS = 64


@dataclass(frozen=True)
class AdditiveRandomizer:
    """The integers of an additive randomizer; pure data, checked by ``check_additive``.

    Attributes:
        word_bits: B, the number of random bits of each of the two words that a label consumes.
        labels: k ≥ 2.
        spacing: S ≥ 1, lattice steps from one label to the next.
        blocks: [2·J + 2] weights of the blocks −J − 1 … J, each ≥ 1, sum 2^B; J ≥ 1.
        shapes: ([D], [D]) weights inside a block below zero and from zero on, each ≥ 1 and with the
            sum 2^B, in the order of n.
        low, high: first and last output as lattice points, (k − 1)·S − J·D ≤ low ≤ high ≤ J·D.
        origin: value of the lowest label, float64.
        unit: value of a lattice step, float64 > 0. The output at the lattice point t is
            t·unit + origin in float64 arithmetic (rounded twice).
    """

    word_bits: int
    labels: int
    spacing: int
    blocks: tuple[int, ...]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    low: int
    high: int
    origin: float
    unit: float

    form = "additive"
    words_per_label = 2

    @property
    def words(self) -> int:
        """2^B, the number of equally likely values of each word."""
        return 1 << self.word_bits

    @property
    def outputs(self) -> int:
        """Number of distinct outputs."""
        return self.high - self.low + 1

    @property
    def period(self) -> int:
        """D, the lattice steps from the lowest label to the highest."""
        return (self.labels - 1) * self.spacing

    @property
    def reach(self) -> int:
        """J, the number of blocks on each side of zero before the folded tail."""
        return len(self.blocks) // 2 - 1

    def value(self, point: int) -> float:
        """The output at a lattice point, by the graph's own float64 operations."""
        return float(point) * self.unit + self.origin

    def points_of(self, value: float | Fraction) -> range:
        """The lattice points low … high whose output is this number; outputs never decrease."""
        points = range(self.low, self.high + 1)
        first = bisect_left(points, value, key=self.value)
        return range(self.low + first, self.low + bisect_right(points, value, key=self.value))

    def point_value(self, point: int) -> Fraction:
        """The exact number that ``value`` rounds."""
        return point * Fraction(self.unit) + Fraction(self.origin)

    def to_json(self) -> dict[str, Any]:
        """The integers that decide what the randomizer does, for a digest."""
        return {
            "form": self.form,
            "word_bits": self.word_bits,
            "labels": self.labels,
            "spacing": self.spacing,
            "blocks": list(self.blocks),
            "shapes": [list(shape) for shape in self.shapes],
            "low": self.low,
            "high": self.high,
            "origin": self.origin.hex(),
            "unit": self.unit.hex(),
        }


def check_additive(randomizer: AdditiveRandomizer) -> None:
    """Raise ValueError unless the integers form an additive randomizer."""
    r = randomizer
    if not 1 <= r.word_bits <= ADDITIVE_WORD_BITS:
        raise ValueError(f"word_bits must lie in 1 … {ADDITIVE_WORD_BITS}, got {r.word_bits}")
    if r.labels < 2 or r.spacing < 1 or r.period >= 1 << 40:
        raise ValueError("at least two labels, and a period below 2^40")
    if len(r.blocks) < 4 or len(r.blocks) % 2:
        raise ValueError("at least two blocks on each side of zero")
    if min(r.blocks) < 1 or sum(r.blocks) != r.words:
        raise ValueError("the weights of the blocks must be at least 1 and fill the word")
    for shape in r.shapes:
        if len(shape) != r.period or min(shape) < 1 or sum(shape) != r.words:
            raise ValueError("the weights of a shape must be at least 1 and fill the word")
    folded = r.reach * r.period
    if not r.period - folded <= r.low <= r.high <= folded:
        raise ValueError("every label must be clamped where the tails are folded")
    if folded >= 1 << 52:
        raise ValueError("the lattice must stay below 2^52 points")
    if not 0 < r.unit < math.inf:
        raise ValueError("a lattice step must have a positive, finite value")
