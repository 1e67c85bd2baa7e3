"""Facts from the matrix about one label, about one output, and about additive noise."""

import difflib
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, takewhile
from typing import Any

import numpy as np
from labeldp_verify.analysis import analyse, columns, equally_likely, noise_quantiles, value
from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    Category,
    Domain,
    Output,
    Randomizer,
    RealDomain,
    WindowRandomizer,
    are_numbers,
    sets_of,
)
from labeldp_verify.reading.numerals import read_decimal
from labeldp_verify.reading.usefulness import kept_probabilities

from labeldp_compile.errors import InputError


def find_label(domain: Domain, text: str) -> int:
    """The index of a label as it was typed. Raises InputError if it is not in the domain.

    A real number means the nearest point of the grid.
    """
    if isinstance(domain, CategoricalDomain):
        names = [str(category) for category in domain.values]
        if text not in names:
            close = difflib.get_close_matches(text, names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(f"--label {text}: not one of the {len(names):,} categories{hint}")
        return names.index(text)
    try:
        number = float(read_decimal(text))
    except ValueError:
        raise InputError(f"--label {text}: expected a number") from None
    if not domain.min <= number <= domain.max:
        raise InputError(
            f"--label {text}: outside the range of the labels, {domain.min} … {domain.max}"
        )
    if isinstance(domain, RealDomain):
        return int(domain.nearest(np.array([number]))[0])
    if number != int(number):
        raise InputError(f"--label {text}: expected an integer, like all labels of this file")
    return int(number) - domain.min


QUANTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True)
class LabelFacts:
    """One row of the matrix. The moments are None for categories.

    Attributes:
        label: as the spec writes it.
        mean, bias, deviation: E[output], E[output] − label, and the standard deviation.
        unchanged: Pr[output = label], or Pr[the output is a set with the label].
        window: for a window randomizer, its place on the extra line from ``start`` to ``end``, and
            how many ``words`` of it belong to each of the ``outputs``; else None.
    """

    label: Category | float
    mean: float | None
    bias: float | None
    deviation: float | None
    unchanged: float
    window: dict[str, Any] | None


@dataclass(frozen=True)
class OutputFacts:
    """One column of the matrix.

    Attributes:
        value: of the output; for a set, its number.
        members: the labels of the set, or None.
        base: the part of Pr[output] that all labels share (window randomizers), else None.
        least, most: the smallest and largest Pr[output | label] over all labels.
    """

    value: Output
    base: float | None
    least: float
    most: float
    members: list[Category | float] | None = None


@dataclass(frozen=True)
class NoiseFacts:
    """The noise of an additive randomizer before outputs are clamped, in units of the label.

    Attributes:
        step: of the lattice.
        period: range of the labels; one block of the noise.
        blocks: number of blocks on each side of zero, including the folded tail.
        mean_distance: E|noise|, the scale of Laplace noise.
        deviation: √E noise².
        quantiles: (share, the smallest distance that contains this share of the noise).
        folded: Pr[noise in a tail that was folded into the last blocks].
    """

    step: float
    period: float
    blocks: int
    mean_distance: float
    deviation: float
    quantiles: list[tuple[float, float]]
    folded: float


def label_facts(domain: Domain, randomizer: Randomizer, labels: Sequence[int]) -> list[LabelFacts]:
    """The facts about the labels with these indices, from exact sums."""
    exact = domain.labels()
    moments = analyse(randomizer).moments if are_numbers(domain, randomizer) else None
    ends: list[int] = []
    if isinstance(randomizer, WindowRandomizer):
        ends = list(accumulate((segment.length for segment in randomizer.extra), initial=0))
    facts = []
    probabilities = kept_probabilities(domain, randomizer, labels).tolist()
    for y, kept in zip(labels, probabilities, strict=True):
        mean = bias = deviation = None
        if moments is not None:
            first, second = moments[0][y], moments[1][y]
            mean, bias = float(first), float(first - Fraction(exact[y]))
            deviation = math.sqrt(second - first**2)
        window = None
        if isinstance(randomizer, WindowRandomizer):
            window = _window(randomizer, ends, y)
        facts.append(LabelFacts(domain.listed[y], mean, bias, deviation, kept, window))
    return facts


def output_facts(
    domain: Domain, randomizer: Randomizer, outputs: Sequence[int]
) -> list[OutputFacts]:
    """The facts about the outputs with these indices; ranges are over all labels."""
    facts, sets = [], sets_of(randomizer)
    for i, over_labels in zip(outputs, columns(randomizer, outputs), strict=True):
        base = None
        if isinstance(randomizer, WindowRandomizer):
            base = randomizer.base[i] / randomizer.words
        least, most = float(over_labels.min()), float(over_labels.max())
        members = None if sets is None else [domain.listed[y] for y in sets.members(i)]
        facts.append(OutputFacts(value(randomizer, i), base, least, most, members))
    return facts


def noise_facts(randomizer: AdditiveRandomizer) -> NoiseFacts:
    """The facts about the noise; moments are exact until the last step."""
    r, first, second = randomizer, 0, 0
    sums = [
        [sum(weight * i**power for i, weight in enumerate(shape)) for power in (0, 1, 2)]
        for shape in r.shapes
    ]
    for position, weight in enumerate(r.blocks):
        start, sign = (position - r.reach - 1) * r.period, 1 if position > r.reach else -1
        total, mean, square = sums[int(sign > 0)]
        first += weight * sign * (start * total + mean)
        second += weight * (start * start * total + 2 * start * mean + square)
    words = equally_likely(r)
    return NoiseFacts(
        step=r.unit,
        period=r.period * r.unit,
        blocks=r.reach + 1,
        mean_distance=float(Fraction(first, words)) * r.unit,
        deviation=math.sqrt(Fraction(second, words)) * r.unit,
        quantiles=[
            (share, steps * r.unit)
            for share, steps in zip(QUANTILES, noise_quantiles(r, QUANTILES), strict=True)
        ],
        folded=float(Fraction(r.blocks[0] + r.blocks[-1], r.words)),
    )


def _window(r: WindowRandomizer, ends: Sequence[int], label: int) -> dict[str, Any]:
    """A label's window; ``ends`` are those of the segments on the extra line, 0 first."""
    start, end = r.offsets[label], r.offsets[label] + r.window
    first = bisect_right(ends, start) - 1
    segments = zip(r.extra[first:], ends[first:], ends[first + 1 :], strict=False)
    inside = takewhile(lambda segment: segment[1] < end, segments)
    parts = [{"output": s.output, "words": min(b, end) - max(a, start)} for s, a, b in inside]
    return {"start": start, "end": end, "outputs": parts}
