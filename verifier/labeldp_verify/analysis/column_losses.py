"""The losses of a label's columns: what each column's private label is off by, on average.

The columns of a combination are private together, so the loss of column j is that of its marginal:
under the prior π, with o_j the place of column j in an output o,

    L_j = Σ_y π_y Σ_o Pr[o | y] · ℓ_j(o_j, y_j).

Labels with the same window have the same outputs. So the labels' weights and the outputs' counts
are first summed by place, and the loss of two such sums takes one pass over the places. Windows
with one label and one segment, as randomized response has them, are taken one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, compress, pairwise

import numpy as np

from labeldp_verify.analysis.analysis import Loss, TooMuchWorkError, integers_of
from labeldp_verify.budget import charge
from labeldp_verify.forms import (
    CategoricalDomain,
    Domain,
    JointDomain,
    Randomizer,
    WindowRandomizer,
)
from labeldp_verify.forms.joint import Part

MAX_STEPS = 30_000_000
_STEP = 2e-6  # seconds of a segment in a window, or of a label, for each column
COLUMN_LOSSES: tuple[Loss, ...] = ("squared", "absolute", "zero_one")
_FEW = 4  # pairs of a label and an output, which are as fast one by one
Sums = Mapping[int, int]  # by place
Amounts = Sequence[tuple[int, int]]  # (number of a combination, its amount)


@dataclass(frozen=True)
class ColumnLoss:
    """The loss of one column, and its public weight in the loss of the whole label."""

    loss: Loss
    weight: Fraction


def column_losses(
    domain: Domain,
    randomizer: Randomizer,
    losses: Sequence[Loss],
    weights: Sequence[int],
) -> list[Fraction]:
    """[c] E ℓ_j of each column, y drawn in proportion to ``weights`` [k] (integers ≥ 0); exact.

    Raises ValueError for a loss that a column has not, or outputs that are no combinations.
    """
    if not isinstance(domain, JointDomain) or not isinstance(randomizer, WindowRandomizer):
        raise ValueError("only window randomizers of several columns have losses by column")
    for part, loss in zip(domain.parts, losses, strict=True):
        if loss not in COLUMN_LOSSES or (
            isinstance(part, CategoricalDomain) and loss != "zero_one"
        ):
            raise ValueError(f"a column of this kind has no {loss} loss")
    columns = [_Column.of(part, loss) for part, loss in zip(domain.parts, losses, strict=True)]
    totals, few = [0] * len(columns), []
    for labels, outputs in _alike(domain, randomizer, weights):
        if len(labels) * len(outputs) <= _FEW:
            few += [(v, o, weight * count) for v, weight in labels for o, count in outputs]
            continue
        by_column = zip(_by_place(domain, labels), _by_place(domain, outputs), strict=True)
        for j, (seen, drawn) in enumerate(by_column):
            totals[j] += _cross(columns[j], seen, drawn)
    for j, total in enumerate(_one_by_one(domain, columns, few)):
        totals[j] += total
    whole = randomizer.words * sum(weights)
    pairs = zip(totals, columns, strict=True)
    return [Fraction(total, whole * column.scale) for total, column in pairs]


@dataclass(frozen=True)
class _Column:
    """A column's loss on integers: its labels times a unit (none of categories), and by what the
    sums below must be divided."""

    loss: Loss
    numbers: list[int]
    scale: int

    @classmethod
    def of(cls, part: Part, loss: Loss) -> _Column:
        if loss == "zero_one":
            return cls(loss, [], 1)
        assert not isinstance(part, CategoricalDomain)
        numbers, unit = integers_of(part.labels())
        return cls(loss, numbers, 2 * unit**2 if loss == "squared" else unit)


def _alike(
    domain: JointDomain, randomizer: WindowRandomizer, weights: Sequence[int]
) -> Iterator[tuple[Amounts, Amounts]]:
    """(label, weight) of labels, and (output, count) of outputs that they share: first those of
    the base line, which all labels share, then those of each window."""
    rows: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for row, (offset, weight) in enumerate(zip(randomizer.offsets, weights, strict=True)):
        if weight:
            rows[offset].append((row, weight))
    ends = list(accumulate((s.length for s in randomizer.extra), initial=0))
    inside = {}
    for offset in rows if randomizer.window else ():
        first = bisect_right(ends, offset) - 1
        inside[offset] = range(first, bisect_right(ends, offset + randomizer.window - 1))
    steps = sum(map(len, inside.values()))
    if steps > MAX_STEPS:
        raise TooMuchWorkError("the windows cover too many segments")
    work = len(domain.parts) * (steps + len(randomizer.offsets) + len(randomizer.base))
    charge(f"the columns of {len(randomizer.offsets):,} labels", seconds=work * _STEP)
    values = [int(v) for v in randomizer.values]
    every = [(row, weight) for row, weight in enumerate(weights) if weight]
    yield every, list(zip(values, randomizer.base, strict=True))
    for offset, segments in inside.items():
        end = offset + randomizer.window
        yield (
            rows[offset],
            [
                (values[randomizer.extra[s].output], min(ends[s + 1], end) - max(ends[s], offset))
                for s in segments
            ],
        )


def _by_place(domain: JointDomain, amounts: Amounts) -> list[Sums]:
    """The amounts of combinations, summed by their places in each column."""
    found: list[Sums] = []
    for places in domain.places_of(np.array([number for number, _ in amounts], dtype=np.int64)):
        sums: dict[int, int] = defaultdict(int)
        for place, (_, amount) in zip(places.tolist(), amounts, strict=True):
            sums[place] += amount
        found.append(sums)
    return found


def _one_by_one(
    domain: JointDomain, columns: Sequence[_Column], pairs: Sequence[tuple[int, int, int]]
) -> Iterator[int]:
    """Of each column Σ amount · loss over (label, output, amount), times its scale."""
    labels, outputs = (
        domain.places_of(np.array([pair[i] for pair in pairs], dtype=np.int64)) for i in (0, 1)
    )
    amounts = [amount for _, _, amount in pairs]
    for column, at, drawn in zip(columns, labels, outputs, strict=True):
        if column.loss == "zero_one":
            yield sum(compress(amounts, (at != drawn).tolist()))
            continue
        n = column.numbers
        apart = (abs(n[o] - n[v]) for v, o in zip(at.tolist(), drawn.tolist(), strict=True))
        power = 2 if column.loss == "squared" else 1
        yield sum(amount * d**power for amount, d in zip(amounts, apart, strict=True))


def _moments(numbers: Sequence[int], sums: Sums) -> list[int]:
    return [
        sum(amount * numbers[place] ** power for place, amount in sums.items())
        for power in (0, 1, 2)
    ]


def _cross(column: _Column, labels: Sums, outputs: Sums) -> int:
    """Σ over places v and o of labels[v]·outputs[o]·ℓ(o, v), times the column's scale."""
    if column.loss == "zero_one":
        same = sum(amount * outputs.get(place, 0) for place, amount in labels.items())
        return sum(labels.values()) * sum(outputs.values()) - same
    numbers = column.numbers
    count, mean, square = _moments(numbers, labels)
    seen, first, second = _moments(numbers, outputs)
    if column.loss == "squared":
        return square * seen - 2 * mean * first + count * second
    # Between two neighbouring places every label below is as far from every output above.
    total = below_labels = below_outputs = 0
    places = sorted({*labels, *outputs})
    for place, following in pairwise(places):
        below_labels += labels.get(place, 0)
        below_outputs += outputs.get(place, 0)
        crossed = below_labels * (seen - below_outputs) + below_outputs * (count - below_labels)
        total += crossed * (numbers[following] - numbers[place])
    return total
