"""Small randomizers of every form, from integers, and the plainest reading of them."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

from labeldp_verify.forms import (
    AdditiveRandomizer,
    ClassSets,
    GroupedWindows,
    Groups,
    Randomizer,
    TableRandomizer,
    WindowRandomizer,
)
from labeldp_verify.forms.exact_numbers import exp_lower
from labeldp_verify.forms.randomizers import Segment, check_form, word_sizes

VALUES = (-3.5, 0.25, 1.0, 7.0)


def composition(generator: random.Random, total: int, parts: int) -> tuple[int, ...]:
    """Random integers ≥ 1 with the sum ``total``, small ones and large ones."""
    cuts = {0, total}
    while len(cuts) <= parts:
        reach = 1 << generator.randrange(total.bit_length())
        cut = generator.randrange(1, min(reach, total - 1) + 1) if total > 1 else 1
        cuts.add(generator.choice([cut, total - cut]))
    ends = sorted(cuts)
    weights = [b - a for a, b in pairwise(ends)]
    generator.shuffle(weights)
    return tuple(weights)


def near_constant(generator: random.Random, total: int, parts: int) -> tuple[int, ...]:
    """Integers that differ by little from one another, so that ε is moderate."""
    mean = total // parts
    weights = [mean - generator.randrange(mean // 4 + 1) for _ in range(parts)]
    for i in range(total - sum(weights)):
        if i > 4 * parts:  # the rest at once
            weights[generator.randrange(parts)] += total - sum(weights)
            break
        weights[generator.randrange(parts)] += 1
    return tuple(weights)


def response(
    values: Sequence[Any],
    output_of_label: Sequence[int],
    epsilon: Fraction | int,
    word_bits: int | None = None,
) -> WindowRandomizer:
    """Randomized response over ``values`` [m]; label i of [k] keeps ``output_of_label[i]``.

    Every output has b = ⌈2^B/(e^ε + m − 1)⌉ words of every label, its own label's the rest.
    """
    m, ratio = len(values), exp_lower(Fraction(epsilon))
    for bits in word_sizes(word_bits):
        base = (1 << bits) if m == 1 else math.ceil((1 << bits) / (ratio + m - 1))
        window = (1 << bits) - m * base
        if window < 0 or (m > 1 and m * (base + window) >= 1 << 63):
            continue
        own = tuple(Segment(window, i) for i in range(m)) if window else ()
        offsets = tuple(int(i) * window for i in output_of_label)
        randomizer = WindowRandomizer(bits, (base,) * m, own, offsets, tuple(values))
        check_form(randomizer)
        return randomizer
    raise ValueError("the outputs do not fit the word")


def top_k(
    values: Sequence[Any],
    kept: Sequence[int],
    epsilon: Fraction | int,
    word_bits: int | None = None,
) -> WindowRandomizer:
    """Randomized response over the labels ``kept`` [m] of ``values`` [k]; others answer evenly."""
    m, ratio, place = len(kept), exp_lower(Fraction(epsilon)), {y: i for i, y in enumerate(kept)}
    for bits in word_sizes(word_bits):
        base = math.ceil((1 << bits) / (ratio + m - 1))
        window = (1 << bits) - m * base
        if window < 0 or m * base + (m + 1) * window >= 1 << 63:
            continue
        share, rest = divmod(window, m)
        even = [Segment(share + (i < rest), i) for i in range(m) if share + (i < rest)]
        randomizer = WindowRandomizer(
            word_bits=bits,
            base=(base,) * m,
            extra=(*(Segment(window, i) for i in range(m)), *even),
            offsets=tuple(place.get(y, m) * window for y in range(len(values))),
            values=tuple(values[y] for y in kept),
        )
        check_form(randomizer)
        return randomizer
    raise ValueError("the outputs do not fit the word")


def pairs_of_four(word_bits: int = 24) -> TableRandomizer:
    """Four classes and their six pairs: a pair with the class e^0.69 times as often."""
    pairs = [sum(1 << i for i in pair) for pair in combinations(range(4), 2)]
    words = 1 << word_bits
    low = -(-words // 9)
    high = (words - 3 * low) // 3
    counts = [[high if pair >> y & 1 else low for pair in pairs] for y in range(4)]
    for row in counts:
        row[0] += words - 3 * (low + high)
    return TableRandomizer(
        word_bits, tuple(map(tuple, counts)), tuple(range(6)), ClassSets(4, tuple(pairs))
    )


def random_table(
    generator: random.Random,
    labels: int,
    values: tuple[Any, ...],
    word_bits: int,
    row: Any = near_constant,
) -> TableRandomizer:
    counts = tuple(row(generator, 1 << word_bits, len(values)) for _ in range(labels))
    return TableRandomizer(word_bits, counts, values)


def random_additive(
    generator: random.Random,
    labels: int,
    spacing: int,
    reach: int,
    word_bits: int,
    origin: float = 0.0,
    unit: float = 1.0,
    row: Any = near_constant,
) -> AdditiveRandomizer:
    """Noise with random weights, with the tightest clamps half of the time."""
    period = (labels - 1) * spacing
    least, most = period - reach * period, reach * period
    low, high = sorted((generator.randint(least, most), generator.randint(least, most)))
    if generator.random() < 0.5:
        low, high = least, most
    words = 1 << word_bits
    return AdditiveRandomizer(
        word_bits=word_bits,
        labels=labels,
        spacing=spacing,
        blocks=row(generator, words, 2 * reach + 2),
        shapes=(row(generator, words, period), row(generator, words, period)),
        low=low,
        high=high,
        origin=origin,
        unit=unit,
    )


def laplace_like(
    labels: int,
    spacing: int,
    reach: int,
    word_bits: int = 64,
    origin: float = 0.0,
    unit: float = 1.0,
) -> AdditiveRandomizer:
    """Decreasing noise with a third of the weight a period further: what the compiler makes."""
    D, total = (labels - 1) * spacing, 1 << word_bits
    decay = [3**b for b in range(reach - 1, -1, -1)]
    step = total // (2 * sum(decay) + 1)  # beyond the last block: 1/3 + 1/9 + … = 1/2
    inner = [step * d for d in decay]
    tail = total // 2 - sum(inner)
    shape = [(2 * D - i) * total // (D * (3 * D + 1) // 2) for i in range(D)]
    shape[0] += total - sum(shape)
    return AdditiveRandomizer(
        word_bits=word_bits,
        labels=labels,
        spacing=spacing,
        blocks=(tail, *reversed(inner), *inner, tail),
        shapes=(tuple(reversed(shape)), tuple(shape)),
        low=D - reach * D,
        high=reach * D,
        origin=origin,
        unit=unit,
    )


def uneven(word_bits: int = 10) -> WindowRandomizer:
    """Uneven base, an output with two segments, one with none, windows that cut anywhere."""
    scale = 2**word_bits // 1024
    return WindowRandomizer(
        word_bits=word_bits,
        base=tuple(scale * length for length in (200, 150, 300, 101)),
        extra=tuple(Segment(scale * n, i) for n, i in ((90, 0), (120, 2), (50, 0), (160, 1))),
        offsets=tuple(scale * s for s in (0, 37, 101, 147)),
        values=VALUES,
    )


def some_windows(word_bits: int = 10) -> tuple[WindowRandomizer, ...]:
    """Four labels: uneven windows, randomized response, a constant, and two bins."""
    return (
        uneven(word_bits),
        response([float(y) for y in range(10, 14)], range(4), 2, word_bits),
        response([11.5], [0] * 4, 2, word_bits),
        response([10.5, 12.5], [0, 0, 1, 1], 1, word_bits),
    )


def grouped(values: Sequence[Any] = (7, -2, 2**40), word_bits: int = 10) -> GroupedWindows:
    """Three groups of ``some_windows``, and its last one for all others."""
    return GroupedWindows(Groups.of(tuple(values), "g"), some_windows(word_bits))


def replaced(record: Any, **changes: Any) -> Any:
    """A copy of a frozen record with other fields."""
    fields = {name: getattr(record, name) for name in record.__dataclass_fields__}
    return type(record)(**{**fields, **changes})


def plain_counts(randomizer: WindowRandomizer, row: int) -> Counter[Any]:
    """How many words of a row lead to each output: word by word, as the definition says."""
    line = [i for i, weight in enumerate(randomizer.base) for _ in range(weight)]
    line += [segment.output for segment in randomizer.extra for _ in range(segment.length)]
    T, offset = sum(randomizer.base), randomizer.offsets[row]
    outputs = (line[u + offset] if u >= T else line[u] for u in range(2**randomizer.word_bits))
    return Counter(randomizer.values[i] for i in outputs)


def noise(r: AdditiveRandomizer) -> dict[int, int]:
    """Each noise value and its weight in units of 2^(−2B), as the definition says."""
    first = -(len(r.blocks) // 2)
    return {
        (first + j) * r.period + i: weight * r.shapes[first + j >= 0][i]
        for j, weight in enumerate(r.blocks)
        for i in range(r.period)
    }


def plain_distribution(randomizer: Randomizer, row: int) -> dict[Any, Fraction]:
    """The probability of each output of a row: its value, or its lattice point if additive."""
    if isinstance(randomizer, TableRandomizer):
        pairs = zip(randomizer.values, randomizer.counts[row], strict=True)
        return {value: Fraction(count, randomizer.words) for value, count in pairs}
    assert isinstance(randomizer, AdditiveRandomizer)
    r, total = randomizer, Counter[int]()
    for n, weight in noise(r).items():
        total[min(max(row * r.spacing + n, r.low), r.high)] += weight
    return {point: Fraction(weight, r.words**2) for point, weight in total.items()}


def plain_ratio(randomizer: Randomizer, labels: int) -> Fraction:
    """The largest ratio of an output's probabilities."""
    rows = [plain_distribution(randomizer, row) for row in range(labels)]
    outputs = set().union(*rows)
    return max(max(p[v] for p in rows) / min(p[v] for p in rows) for v in outputs)


def plain_mean(distribution: dict[Any, Fraction], f: Any) -> Fraction:
    return sum((p * f(v) for v, p in distribution.items()), Fraction(0))
