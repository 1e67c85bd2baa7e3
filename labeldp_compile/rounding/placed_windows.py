"""From base weights and outputs to a window randomizer with prescribed means, in exact integers.

By Claims 12 to 14 of the optimal unbiased randomizers paper (2023), an optimum has two-level
columns whose high entries move forward with the label. That is a window on the extra line, whose
segments have lengths eᵢ = ⌊(r − 1)·bᵢ⌋ with a rational r ≤ e^ε. This alone makes it ε-DP, because
bᵢ + min(eᵢ, X) ≤ r·bᵢ.

Unbiasedness depends on the placement. With the segments in the order of their outputs, the mean of
a row is a non-decreasing, piecewise linear function of its offset. One step of the offset moves it
by at most (v_m − v_1)/2^B. So every target between the means of the first and the last offset is
met within half of that, however roughly the weights were computed.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from heapq import heapify, heappop, heappush
from operator import mul

import numpy as np
from labeldp_verify.analysis import StepFunction, ends_of, exp_lower
from labeldp_verify.forms import (
    MAX_WORD_BITS,
    ExactNumbers,
    Segment,
    WindowRandomizer,
    check_form,
    word_sizes,
)
from numpy.typing import NDArray

from labeldp_compile.rounding.given_outputs import Reach, mixed

_MAX_MOVES = 60


class ShortWordError(ValueError):
    """The rarest outputs need less than one word."""


def place_windows(
    values: Sequence[float],
    weights: Sequence[float],
    targets: Sequence[Fraction],
    epsilon: Fraction,
    word_bits: int | None = None,
) -> WindowRandomizer:
    """The ε-DP window randomizer with E[output | label] = target, to within half a step.

    ``values`` [m] strictly increasing outputs, ``weights`` [m] the low probabilities c > 0 of a
    two-level mechanism (Σ c·(1 + (e^ε − 1)·[high]) = 1 in every row), ``targets`` [k] exact means
    in non-decreasing order. The first and last value are moved outwards, as little as it takes,
    until the first and the last target can be reached. Raises ValueError if they cannot, or if
    the outputs do not fit the word (ShortWordError).
    """
    ratio = exp_lower(epsilon)
    if len(values) == 1:
        raise ValueError("one output has only one mean")
    for bits in word_sizes(word_bits):
        # Rounded up: slightly more base weight keeps the extra line long enough.
        base = [max(1, math.ceil(weight * (1 << bits))) for weight in weights]
        growth = ratio - 1
        lengths = [b * growth.numerator // growth.denominator for b in base]
        window = (1 << bits) - sum(base)
        if window >= 1 and sum(base) + sum(lengths) < 1 << 63:
            break
    else:
        raise ShortWordError(
            f"{len(values)} outputs do not fit a word of {word_bits or MAX_WORD_BITS} bits"
        )
    if sum(lengths) < window or min(lengths) < 1:
        raise ValueError("the weights do not add up to a randomizer at this ε")
    line = _Line(bits, base, lengths, window)
    reaching = _reach(line, [float(v) for v in values], targets[0], targets[-1])
    return _placed(line, reaching, targets)


def place_on_given(
    values: Sequence[float],
    weights: Sequence[float],
    targets: Sequence[Fraction],
    epsilon: Fraction,
    pillars: Sequence[float],
    word_bits: int | None = None,
) -> WindowRandomizer:
    """As ``place_windows``, but every output is one of the values, as it is.

    Weight moves to the pillars (``given_outputs.py``), which are among the values, as little as it
    takes until the first and the last target can be reached.
    """
    reach = Reach.of(targets, epsilon, len(values), word_bits)
    growth, words = exp_lower(epsilon) - 1, 1 << reach.bits
    whole = [max(1, math.ceil(weight * words)) for weight in weights]
    for base in mixed(values, whole, reach, pillars):
        window = words - sum(base)
        # No window is longer than the extra line of an output needs to be.
        lengths = [min(b * growth.numerator // growth.denominator, window) for b in base]
        if window < 1 or min(lengths) < 1 or sum(lengths) < window:
            continue
        line = _Line(reach.bits, base, lengths, window)
        ends = line.mean(values, 0), line.mean(values, line.last_offset)
        if ends[0] <= reach.lowest and ends[1] >= reach.highest:
            return _placed(line, values, targets)
    raise ShortWordError(f"the outputs do not fit a word of {reach.bits} bits")


def _placed(
    line: "_Line", values: Sequence[float], targets: Sequence[Fraction]
) -> WindowRandomizer:
    offsets = line.offsets(values, ExactNumbers.of(targets))
    segments = [Segment(n, i) for i, n in enumerate(line.lengths)]
    extra = _cut_at(segments, max(offsets) + line.window)
    randomizer = WindowRandomizer(
        line.bits, tuple(line.base), extra, tuple(offsets), tuple(float(v) for v in values)
    )
    check_form(randomizer)
    return randomizer


@dataclass(frozen=True)
class _Line:
    """All parts except the outputs: word size, base weights, extra lengths, window."""

    bits: int
    base: list[int]
    lengths: list[int]
    window: int

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """[m + 1] the ends of the segments of the extra line, from 0."""
        return ends_of(self.lengths)

    @property
    def last_offset(self) -> int:
        """The offset at which the window ends at the end of the extra line."""
        return int(self.ends[-1]) - self.window

    def counts(self, offset: int) -> list[int]:
        """[m] how many words lead to each output at an offset."""
        inside = np.minimum(self.ends[1:], offset + self.window)
        inside = np.maximum(inside - np.maximum(self.ends[:-1], offset), 0)
        return [b + more for b, more in zip(self.base, inside.tolist(), strict=True)]

    def mean(self, values: Sequence[float], offset: int) -> Fraction:
        """E[output] at an offset."""
        return ExactNumbers.of(values).weighted(self.counts(offset)) / (1 << self.bits)

    def offsets(self, values: Sequence[float], targets: ExactNumbers) -> list[int]:
        """For each target, the offset with the nearest mean (the lower one of two)."""
        exact = ExactNumbers.of(values)
        outputs = StepFunction(self.ends, exact.numerators.tolist())

        # The mean is linear except where an end of the window meets an end of a segment.
        last = self.last_offset
        bends = np.concatenate([self.ends, self.ends - self.window, [0, last]])
        corners = np.unique(bends[(bends >= 0) & (bends <= last)])
        base = sum(map(mul, self.base, exact.numerators.tolist()))
        # Means and slopes over the denominators of the outputs, of the targets and 2^bits.
        stops = corners + self.window
        inside = outputs.between(corners, stops)
        heights = ((inside + base) * targets.unit).tolist()
        slopes = ((outputs.at(stops) - outputs.at(corners)) * targets.unit).tolist()
        goals = targets.numerators * (exact.unit << self.bits)
        starts, result = corners.tolist(), []
        for goal in goals.tolist():
            j = max(0, bisect_right(heights, goal) - 1)
            gap, slope = goal - heights[j], slopes[j]
            steps = 0
            if gap > 0 and slope > 0:
                steps = -((slope - 2 * gap) // (2 * slope))  # gap/slope − ½, rounded up
            result.append(min(starts[j] + steps, last))
        return result


def _reach(line: _Line, values: list[float], lowest: Fraction, highest: Fraction) -> list[float]:
    """Move the first and the last value outwards until both extreme targets can be reached."""
    last = line.last_offset
    if last <= 0:
        raise ValueError("the weights leave the windows no room to move")
    first_counts, last_counts = line.counts(0), line.counts(last)
    a, b = Fraction(first_counts[0]), Fraction(first_counts[-1])
    c, d = Fraction(last_counts[0]), Fraction(last_counts[-1])
    determinant = a * d - b * c
    moved = list(values)
    for attempt in range(_MAX_MOVES):
        too_high = line.mean(moved, 0) - lowest
        too_low = highest - line.mean(moved, last)
        if too_high <= 0 and too_low <= 0:
            return moved
        if determinant <= 0:
            break
        # Each end is rounded outwards, which moves the other mean in the wrong direction.
        rounding = Fraction(math.ulp(max(abs(moved[0]), abs(moved[-1])))) * max(b, c) * 2**attempt
        up = max(too_high, Fraction(0)) * (1 << line.bits) + rounding
        down = max(too_low, Fraction(0)) * (1 << line.bits) + rounding
        first = Fraction(moved[0]) - (up * d + down * b) / determinant
        final = Fraction(moved[-1]) + (up * c + down * a) / determinant
        moved[0] = math.nextafter(float(first), -math.inf)
        moved[-1] = math.nextafter(float(final), math.inf)
    raise ValueError("the outputs cannot reach the means asked for")


def _cut_at(segments: list[Segment], end: int) -> tuple[Segment, ...]:
    """The segments up to ``end``; no window reaches what comes after it."""
    kept, start = [], 0
    for segment in segments:
        if start < end:
            kept.append(Segment(min(segment.length, end - start), segment.output))
        start += segment.length
    return tuple(kept)


# Merge rarely drawn outputs with a neighbour, so that lookup tables stay small.
#
# A lookup bucket may hold only one segment boundary, so the narrowest segment decides the size of
# the tables. Two neighbouring outputs become one at their weighted mean. Every row keeps its mean
# up to the placement of its window, and by Jensen's inequality the spread shrinks. The cost is that
# windows can be placed less finely.


def merge_rare_outputs(
    values: NDArray[np.float64], weights: NDArray[np.float64], least_share: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Outputs [m'] and weights [m'] in which every weight is at least ``least_share`` of the sum.

    ``values`` [m] increasing, ``weights`` [m] > 0. The rarest output is merged with its nearest
    neighbour in value until none is too rare.
    """
    v, c = [float(x) for x in values], [float(x) for x in weights]
    least = least_share * sum(c)
    after, before = [*range(1, len(c)), -1], list(range(-1, len(c) - 1))  # neighbours, −1: none
    rarest = [(weight, i) for i, weight in enumerate(c) if weight < least]
    heapify(rarest)
    left, gone = len(c), set[int]()
    while rarest and left > 2:
        weight, i = heappop(rarest)
        if i in gone or c[i] != weight:
            continue
        below = v[i] - v[before[i]] if before[i] >= 0 else np.inf
        above = v[after[i]] - v[i] if after[i] >= 0 else np.inf
        i = before[i] if below <= above else i
        j = after[i]
        total = c[i] + c[j]
        v[i], c[i] = (c[i] * v[i] + c[j] * v[j]) / total, total
        after[i] = after[j]
        if after[j] >= 0:
            before[after[j]] = i
        gone.add(j)
        left -= 1
        if total < least:
            heappush(rarest, (total, i))
    kept = [i for i in range(len(c)) if i not in gone]
    return np.array([v[i] for i in kept]), np.array([c[i] for i in kept])


def drop_rare_outputs(
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    least_share: float,
    pillars: dict[float, float],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """As ``merge_rare_outputs``, but every output remains one of the values.

    A rare output is dropped. Its weight goes to both neighbours, so that means are kept and the
    spread grows; an outermost one has only one neighbour. ``pillars`` are the weights of a
    randomizer on two of the values, which stay. If one of these is rare, weight moves to both.
    """
    c = weights.copy()
    least = least_share * float(c.sum())
    places = np.searchsorted(values, list(pillars)).tolist()
    theirs = np.array(list(pillars.values()))
    missing = [
        (least - c[i]) / (weight - c[i])
        for i, weight in zip(places, theirs, strict=True)
        if c[i] < min(least, weight)
    ]
    share = max(missing, default=0.0)
    c *= 1 - share
    c[places] += share * theirs
    kept = list(range(len(c)))
    while True:
        rare = [(c[i], n) for n, i in enumerate(kept) if c[i] < least and i not in places]
        if not rare:
            return values[kept], c[kept]
        n = min(rare)[1]
        i = kept.pop(n)
        below, above = kept[max(n - 1, 0)], kept[min(n, len(kept) - 1)]
        up = (values[i] - values[below]) / (values[above] - values[below]) if above != below else 0
        c[below] += (1 - up) * c[i]
        c[above] += up * c[i]
