"""The exact forms: window, table and additive randomizers; and sets of classes as outputs."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms.domain import CategoricalDomain, Domain, IntegerDomain, RealDomain

# ---- The window randomizer: the exact form of every two-level mechanism.
#
# Output i owns ``base[i]`` consecutive integers of the base line [0, T), T = Σ base. Behind it lies
# the extra line [T, T + Σ lengths), cut into segments that each belong to one output. With B random
# bits, X = 2^B − T and a uniform word u in [0, 2^B), label y draws
#
#     t = u + (offsets[y] if u >= T else 0)
#
# and answers with the value whose segment contains t. So a label only chooses where its window of X
# integers lies on the extra line, and
#
#     Pr[i | y] = (base[i] + |window(y) ∩ segments of i|) / 2^B,
#
# whose rows sum to one by construction.


Output = float | str | int
MAX_WORD_BITS = 62


@dataclass(frozen=True)
class Segment:
    """``length`` consecutive integers of the extra line that belong to output ``output``."""

    length: int
    output: int


@dataclass(frozen=True)
class WindowRandomizer:
    """The integers of a window randomizer; pure data, checked by ``check_form``.

    Attributes:
        word_bits: B, the number of random bits that one label consumes.
        base: [m] base weights, each ≥ 1, in the order of ``values``.
        extra: [L] segments of the extra line.
        offsets: [k] start of each label's window on the extra line, at least 0; the furthest
            window ends where the extra line ends, so that a file needs to state no length for it.
        values: [m] distinct outputs: float64 numbers in increasing order, or categories.
    """

    word_bits: int
    base: tuple[int, ...]
    extra: tuple[Segment, ...]
    offsets: tuple[int, ...]
    values: tuple[Output, ...]

    form = "window"
    words_per_label = 1

    @property
    def words(self) -> int:
        """2^B, the number of equally likely words."""
        return 1 << self.word_bits

    @property
    def outputs(self) -> int:
        """Number of distinct outputs."""
        return len(self.values)

    @cached_property
    def base_total(self) -> int:
        """T, the length of the base line."""
        return sum(self.base)

    @cached_property
    def window(self) -> int:
        """X = 2^B − T, the length of every label's window."""
        return self.words - self.base_total

    @cached_property
    def extra_total(self) -> int:
        """Σ lengths, the length of the extra line."""
        return sum(segment.length for segment in self.extra)

    def boundaries(self) -> list[int]:
        """[m + L + 1] ends of all segments on the common line, from 0 to T + Σ lengths."""
        lengths = [*self.base, *(segment.length for segment in self.extra)]
        return list(accumulate(lengths, initial=0))

    def segment_outputs(self) -> list[int]:
        """[m + L] the output of each segment, base line first."""
        return [*range(len(self.base)), *(segment.output for segment in self.extra)]

    def to_json(self) -> dict[str, Any]:
        """The integers that decide what the randomizer does, for a digest."""
        return {
            "form": self.form,
            "word_bits": self.word_bits,
            "base": list(self.base),
            "extra": [[segment.length, segment.output] for segment in self.extra],
            "offsets": list(self.offsets),
            "values": [v.hex() if isinstance(v, float) else v for v in self.values],
        }


def word_sizes(word_bits: int | None) -> Sequence[int]:
    """The sizes to try, largest first; only ``word_bits`` where it is given."""
    return range(MAX_WORD_BITS, 0, -1) if word_bits is None else [word_bits]


def check_form(randomizer: WindowRandomizer) -> None:
    """Raise ValueError unless the integers form a window randomizer."""
    r = randomizer
    if not 1 <= r.word_bits <= MAX_WORD_BITS:
        raise ValueError(f"word_bits must lie in 1 … {MAX_WORD_BITS}, got {r.word_bits}")
    if not r.base or min(r.base) < 1 or any(s.length < 1 for s in r.extra):
        raise ValueError("every base weight and every extra segment must be at least 1")
    if r.window < 0:
        raise ValueError("the base line must fit the word")
    if r.base_total + r.extra_total >= 1 << 63:
        raise ValueError("the two lines together must stay below 2^63")
    if not r.offsets or min(r.offsets) < 0 or max(r.offsets) + r.window != r.extra_total:
        raise ValueError("the extra line must end where the furthest window ends")
    if len(r.values) != len(r.base) or any(not 0 <= s.output < len(r.base) for s in r.extra):
        raise ValueError("every segment must belong to an output")


# ---- Outputs that are sets of classes: which classes each of them holds.
#
# Subset selection answers with the number of a block, 0 … m − 1. A certificate writes a block as a
# whole number in hexadecimal, of which bit i is set if class i, the i-th label of the domain, is in
# it: ``"05"`` holds classes 0 and 2 of five to eight.


@dataclass(frozen=True)
class ClassSets:
    """m sets of k classes: bit i of ``blocks[o]`` [m] says whether class i is in output o."""

    classes: int
    blocks: tuple[int, ...]

    @classmethod
    def of(cls, members: NDArray[np.bool_]) -> ClassSets:
        """From membership [m, k]."""
        packed = np.packbits(members, axis=1, bitorder="little")
        blocks = tuple(int.from_bytes(row.tobytes(), "little") for row in packed)
        return cls(members.shape[1], blocks)

    @classmethod
    def from_hex(cls, classes: int, texts: Sequence[str]) -> ClassSets:
        """From what ``to_hex`` gives; ValueError for anything else."""
        read = cls(classes, tuple(int(text, 16) for text in texts))
        if any(block >> classes for block in read.blocks) or read.to_hex() != list(texts):
            raise ValueError("not sets of classes")
        return read

    def to_hex(self) -> list[str]:
        """[m] each block in lower case, of as many digits as the classes need."""
        width = -(-self.classes // 4)
        return [f"{block:0{width}x}" for block in self.blocks]

    @cached_property
    def matrix(self) -> NDArray[np.bool_]:
        """[k, m] whether a class is in an output."""
        width = -(-self.classes // 8)
        packed = b"".join(block.to_bytes(width, "little") for block in self.blocks)
        rows = np.frombuffer(packed, dtype=np.uint8).reshape(len(self.blocks), width)
        bits = np.unpackbits(rows, axis=1, count=self.classes, bitorder="little")
        return np.ascontiguousarray(bits.T.astype(bool))

    @cached_property
    def sizes(self) -> list[int]:
        """[m] the number of classes in each output."""
        return [block.bit_count() for block in self.blocks]

    def members(self, output: int) -> list[int]:
        """The classes in an output, increasing."""
        block = self.blocks[output]
        return [i for i in range(self.classes) if block >> i & 1]


def sets_of(randomizer: Randomizer) -> ClassSets | None:
    """The sets that a randomizer answers with; None if its outputs are labels."""
    return getattr(randomizer, "sets", None)


def are_numbers(domain: Domain, randomizer: Randomizer) -> TypeGuard[IntegerDomain | RealDomain]:
    """Whether private labels are numbers, so that they have a mean and a bias."""
    return not isinstance(domain, CategoricalDomain) and sets_of(randomizer) is None


# ---- The table randomizer: one distribution over the outputs for each label, in whole counts.
#
# The exact form for mechanisms without a structure to use, such as the exponential mechanism. Of
# the 2^B words of label y, ``counts[y][i]`` answer with ``values[i]``.


TABLE_WORD_BITS = 64


@dataclass(frozen=True)
class TableRandomizer:
    """The integers of a table randomizer; pure data, checked by ``check_table``.

    Attributes:
        word_bits: B, the number of random bits that one label consumes.
        counts: [k][m] words of each label that lead to each output, each ≥ 1; rows sum to 2^B.
        values: [m] distinct outputs: float64 numbers in increasing order, or categories.
        sets: the classes of each output, where outputs are sets; ``values`` are then their numbers
            0 … m − 1.
    """

    word_bits: int
    counts: tuple[tuple[int, ...], ...]
    values: tuple[Output, ...]
    sets: ClassSets | None = None

    form = "table"
    words_per_label = 1

    @property
    def words(self) -> int:
        """2^B, the number of equally likely words."""
        return 1 << self.word_bits

    @property
    def outputs(self) -> int:
        """Number of distinct outputs."""
        return len(self.values)

    def to_json(self) -> dict[str, Any]:
        """The integers that decide what the randomizer does, for a digest."""
        return {
            "form": self.form,
            "word_bits": self.word_bits,
            "counts": [list(row) for row in self.counts],
            "values": [v.hex() if isinstance(v, float) else v for v in self.values],
            **({} if self.sets is None else {"sets": self.sets.to_hex()}),
        }


def check_table(randomizer: TableRandomizer) -> None:
    """Raise ValueError unless the integers form a table randomizer."""
    r = randomizer
    if not 1 <= r.word_bits <= TABLE_WORD_BITS:
        raise ValueError(f"word_bits must lie in 1 … {TABLE_WORD_BITS}, got {r.word_bits}")
    if not r.counts or not r.values or any(len(row) != len(r.values) for row in r.counts):
        raise ValueError("every label needs one count for each output")
    if any(min(row) < 1 or sum(row) != r.words for row in r.counts):
        raise ValueError(f"counts must be at least 1 and sum to 2^{r.word_bits} for every label")


# ---- The additive randomizer: one noise distribution for all labels, on an evenly spaced lattice.
#
# Label y is at lattice point y·S (S = ``spacing``), so the labels span D = (k − 1)·S steps, the
# *period*. The noise is n = b·D + i: a first word draws the block b in [−J − 1, J], a second word
# draws i in [0, D) from the shape of the block's side of zero, and
#
#     output = clamp(y·S + n, low, high),      Pr[n = b·D + i] = blocks[b]·shapes[side][i] / 2^(2B).
#
# The two outermost blocks are the folded tails: with noise from them, every label is clamped to
# ``low`` or ``high``. Points one period apart have the same i, so the ratio of their weights is
# that of two blocks. It is exactly e^ε where it is e^ε in the Laplace and staircase distributions.


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


Randomizer = WindowRandomizer | AdditiveRandomizer | TableRandomizer
