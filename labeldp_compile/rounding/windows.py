"""From base weights and outputs to a window randomizer in exact integers: means, or probabilities.

By Claims 12 to 14 of the optimal unbiased randomizers paper (2023), an optimum has two-level
columns whose high entries move forward with the label. That is a window on the extra line, whose
segments have lengths eᵢ = ⌊(r − 1)·bᵢ⌋ with a rational r ≤ e^ε. This alone makes it ε-DP, because
bᵢ + min(eᵢ, X) ≤ r·bᵢ.

Unbiasedness depends on the placement. With the segments in the order of their outputs, the mean of
a row is a non-decreasing, piecewise linear function of its offset. One step of the offset moves it
by at most (v_m − v_1)/2^B. So every target between the means of the first and the last offset is
met within half of that, however roughly the weights were computed.

**Outputs that a spec gives.** Their ends must allow unbiased rows. Only weights may change here.
Two outputs, the *pillars*, alone allow every mean between those of the first and the last label.
Other outputs lose weight to them, as little as it takes, until the first and the last window have
these means. The comparison is exact, so no tolerance of a solver becomes a bias.

**Randomized response** over m outputs. Proof of ε-DP: every output has base weight b and one extra
segment of length X = 2^B − m·b. A window of length X meets a segment in at most X integers. So for
any offsets, the largest ratio of two probabilities of one output is (b + X)/b. With a rational r ≤
e^ε and b = ⌈2^B/(r + m − 1)⌉,

    b + X = 2^B − (m − 1)·b ≤ (r + m − 1)·b − (m − 1)·b = r·b ≤ e^ε·b.            ∎

RR-on-Bins has the same form: several labels may share an output. In RRTop-k (deep learning with
label DP, NeurIPS 2021, Algorithm 1) only the m kept labels have their own output. After their
segments comes a second block of length X, which is divided evenly among all outputs. It is the
window of every other label. No window covers more than X integers of one output, so the proof is
the same.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from heapq import heapify, heappop, heappush
from operator import mul
from typing import Self

import numpy as np
from labeldp_verify.analysis import StepFunction, ends_of, exp_lower
from labeldp_verify.forms import (
    MAX_WORD_BITS,
    ExactNumbers,
    Output,
    Segment,
    WindowRandomizer,
    check_form,
    word_sizes,
)
from numpy.typing import NDArray


def randomized_response(
    values: Sequence[Output],
    output_of_label: Sequence[int],
    epsilon: Fraction,
    word_bits: int | None = None,
) -> WindowRandomizer:
    """ε-DP randomized response: label y answers ``values[output_of_label[y]]`` most often.

    ``values`` [m] are distinct (numbers in increasing order), ``output_of_label`` [k] holds indices
    into them, or m for a label that answers at random; ``epsilon`` ≥ 0 is exact. The word takes as
    many bits (at most 62) as keep the two lines below 2^63, or exactly ``word_bits``. Raises
    ValueError if m outputs do not fit that word.
    """
    m, ratio = len(values), exp_lower(epsilon)
    has_even = max(output_of_label) == m
    for bits in word_sizes(word_bits):
        words = 1 << bits
        base = math.ceil(words / (ratio + m - 1))
        if m == 1:  # a constant: no window, and a ratio of exactly one
            base = words
        window = words - m * base
        if window < 0 or m * base + (m + has_even) * window >= 1 << 63:
            continue
        lengths = [window] * m
        if has_even:
            lengths += [(window + m - 1 - i) // m for i in range(m)]
        randomizer = WindowRandomizer(
            word_bits=bits,
            base=(base,) * m,
            extra=tuple(Segment(n, i % m) for i, n in enumerate(lengths) if n),
            offsets=tuple(int(i) * window for i in output_of_label),
            values=tuple(values),
        )
        check_form(randomizer)
        return randomizer
    raise ValueError(f"{m} outputs do not fit a word of {word_bits or MAX_WORD_BITS} bits")


def rr_top_k(
    values: Sequence[Output], kept: Sequence[int], epsilon: Fraction, word_bits: int | None = None
) -> WindowRandomizer:
    """ε-DP randomized response over the labels ``kept``; every other label answers at random.

    ``values`` [k] is every label as an output (numbers in increasing order), ``kept`` [m] holds
    increasing indices into it. Raises ValueError if m outputs do not fit the word.
    """
    position = {y: i for i, y in enumerate(kept)}
    others = 0 if len(kept) == 1 else len(kept)
    rows = [position.get(y, others) for y in range(len(values))]
    return randomized_response([values[y] for y in kept], rows, epsilon, word_bits)


# Parts of ε: pillars that are enough for less than all of it leave room for rounding.
_PARTS = (Fraction(9, 10), Fraction(999, 1000), Fraction(1))
_GRID_BITS = 30  # a grid's ends are enough for words of this size
_WIDENINGS = 60
MAX_OUTPUTS = 100_000
"""The most outputs of a grid."""


@dataclass(frozen=True)
class Reach:
    """The means that rows must have, and what they need.

    Attributes:
        lowest: the mean of the first label's row.
        highest: the mean of the last label's row, above the lowest.
        epsilon: ε, exact.
        bits: size of the random word.
    """

    lowest: Fraction
    highest: Fraction
    epsilon: Fraction
    bits: int

    @classmethod
    def of(cls, means: Sequence[Fraction], epsilon: Fraction, count: int, bits: int | None) -> Self:
        """Of the rows with these means, for ``count`` outputs in a word that has room for them."""
        return cls(means[0], means[-1], epsilon, bits or MAX_WORD_BITS - count.bit_length())

    def limits(self, share: Fraction = Fraction(1)) -> tuple[Fraction, Fraction]:
        """The ends of the smallest interval that the outputs must reach, at this share of ε.

        If every output is at least a, then E[ŷ − a | y_max] ≤ e^ε·E[ŷ − a | y_min] demands
        a ≤ y_min − (y_max − y_min)/(e^ε − 1), and the same from above.
        """
        beyond = (self.highest - self.lowest) / (exp_lower(share * self.epsilon) - 1)
        return self.lowest - beyond, self.highest + beyond

    def weights(self, low: float | Fraction, high: float | Fraction) -> tuple[int, int] | None:
        """Base weights with which these two outputs alone are enough; None if there are none.

        With P and Q words for the higher output in the first and in the last row, the weights are
        2^B − Q and P. The rows differ by no more than e^ε if Q ≤ r·P and 2^B − P ≤ r·(2^B − Q).
        If there is room, the two means are further apart than they must be.
        """
        first, last, ratio = Fraction(low), Fraction(high), exp_lower(self.epsilon)
        words, width = 1 << self.bits, last - first
        below = ratio * (self.lowest - first) - (self.highest - first)
        above = ratio * (last - self.highest) - (last - self.lowest)
        for room in (max(min(below, above), Fraction(0)) / (ratio + 1) / 2, Fraction(0)):
            few = math.floor(words * (self.lowest - room - first) / width)
            many = math.ceil(words * (self.highest + room - first) / width)
            fits = 1 <= few < many < words
            if fits and many <= ratio * few and words - few <= ratio * (words - many):
                return words - many, few
        return None

    def shares(self, low: float | Fraction, high: float | Fraction) -> list[float]:
        """The shares in words of all words; empty if they are not enough."""
        return [weight / (1 << self.bits) for weight in self.weights(low, high) or ()]

    def exact_sums(self, values: Sequence[float], weights: Sequence[float]) -> list[list[float]]:
        """The weights [m], scaled so that one end and the mean of the other outputs are enough.

        An end that only just reaches far enough leaves no room: then all other outputs have the
        same ratios, and sums that a solver found to within 1e-7 must be exact.
        """
        c, v = [*map(Fraction, weights)], [*map(Fraction, values)]
        found = []
        for first in (1, len(c) - 1):
            parts = slice(first), slice(first, None)
            sums = [sum(c[part]) for part in parts]
            if not all(sums):
                continue
            means = [
                sum(map(mul, c[part], v[part])) / whole
                for part, whole in zip(parts, sums, strict=True)
            ]
            factors = [
                Fraction(share) / whole
                for share, whole in zip(self.shares(*means), sums, strict=False)
            ]
            if factors:
                low, high = factors
                found.append([float(w * (low if i < first else high)) for i, w in enumerate(c)])
        return found

    def all_pillars(self, *several: Sequence[float]) -> list[tuple[float, float]]:
        """Of each of some increasing outputs, pairs near the labels that are enough.

        Pairs that leave more room for rounding come first.
        """
        pairs: dict[tuple[float, float], None] = {}
        for part in _PARTS:
            low, high = self.limits(part)
            for values in several:
                below = [value for value in reversed(values) if Fraction(value) <= low]
                above = [value for value in values if Fraction(value) >= high]
                for i in range(max(len(below), len(above)) if below and above else 0):
                    two = below[min(i, len(below) - 1)], above[min(i, len(above) - 1)]
                    if self.weights(*two) is not None:
                        pairs[two] = None
                        break
        return list(pairs)

    def require(self, values: Sequence[float]) -> tuple[float, float]:
        """The pillars. Raises ValueError, which names two ends that would do, if there are none."""
        pairs = self.all_pillars(values)
        if not pairs:
            low, high = self._short_ends()
            raise ValueError(
                f"no unbiased randomizer at ε = {float(self.epsilon):g} has all outputs in "
                f"[{values[0]:.17g}, {values[-1]:.17g}]: add outputs at or beyond {low} and {high}"
            )
        return pairs[0]

    def _short_ends(self) -> tuple[float, float]:
        """Two ends that are enough, with as few digits as tell them from the limits."""
        low, high = self.limits()
        unit = Fraction(Decimal(f"1e{math.floor(math.log10(float(high - self.highest))) - 3}"))
        for _ in range(_WIDENINGS):
            two = float(math.floor(low / unit) * unit), float(math.ceil(high / unit) * unit)
            if self.weights(*two) is not None:
                break
            unit *= 10
        return two


def even_outputs(labels: Sequence[Fraction], epsilon: Fraction, count: int) -> list[float]:
    """[count] Algorithm 2's grid: even steps between the extremes of debiased RR.

    The ends are slightly further out if an unbiased randomizer needs it (two labels). All is exact
    until the last rounding, so a verifier finds the same numbers.
    """
    exact, epsilon = [Fraction(y) for y in labels], Fraction(epsilon)
    total, k, gain = sum(exact, Fraction(0)), len(exact), exp_lower(epsilon) - 1
    below, above = (total - k * exact[0]) / gain, (k * exact[-1] - total) / gain
    reach = Reach(exact[0], exact[-1], epsilon, _GRID_BITS)
    for i in range(_WIDENINGS):
        low, high = exact[0] - below, exact[-1] + above
        if reach.weights(float(low), float(high)) is not None:
            break
        below, above = below * (1 + Fraction(2**i, 2**40)), above * (1 + Fraction(2**i, 2**40))
    return [float(low + i * (high - low) / (count - 1)) + 0.0 for i in range(count)]


def mixed(
    values: Sequence[float], base: Sequence[int], reach: Reach, pillars: Sequence[float]
) -> Iterator[list[int]]:
    """Base weights of which ever more comes from the pillars alone; all if there are no others."""
    two = reach.weights(*pillars)
    if two is None:
        raise ValueError(f"words of {reach.bits} bits are too short for unbiased rows")
    yield list(base)
    for halvings in range(reach.bits, 0, -1):
        less = [b - (b >> halvings) for b in base]
        for value, weight in zip(pillars, two, strict=True):
            less[values.index(value)] += -(-weight >> halvings)
        yield less
    if len(values) == len(pillars):
        yield list(two)


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

    Weight moves to the pillars , which are among the values, as little as it
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
