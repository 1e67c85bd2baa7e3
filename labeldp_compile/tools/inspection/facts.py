"""What the matrix says of one label, of one output, and of the noise that all labels share."""

from __future__ import annotations

import difflib
import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

from labeldp_verify import DEFAULT_BUDGET, Budget, Report, check_bytes, read_artifact
from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.probabilities import (
    columns,
    equally_likely,
    noise_quantiles,
    value,
)
from labeldp_verify.budget import naming
from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    Domain,
    GroupedWindows,
    IntegerDomain,
    JointDomain,
    Randomizer,
    RealDomain,
    WindowRandomizer,
    are_numbers,
    sets_of,
)
from labeldp_verify.forms.domain import Category
from labeldp_verify.forms.window import Output
from labeldp_verify.numerals import read_decimal, read_whole
from labeldp_verify.usefulness import kept_probabilities
from labeldp_verify.verified import Decoded, DecodedGroups

from labeldp_compile.errors import InputError

_EXACT_IN_FLOAT64 = 2**53  # whole numbers up to here


def decode_any(path: Path, budget: Budget = DEFAULT_BUDGET) -> Decoded | DecodedGroups:
    """The artifact of a file, with one table or with tables by group.

    Raises InputError if the file cannot be read (TooLargeError if verifying it would exceed the
    budget), and VerificationError if a check fails.
    """
    data = read_artifact(path)
    with naming(path):
        return held(check_bytes(data, budget=budget).require())


def held(report: Report) -> Decoded | DecodedGroups:
    """What a file that verifies holds."""
    found = report.decoded or report.grouped
    assert found is not None
    return found


def readable(decoded: Decoded) -> Decoded:
    """The same with the combinations of a joint label by their names, as text categories."""
    domain, randomizer = decoded.domain, decoded.randomizer
    if not isinstance(domain, JointDomain):
        return decoded
    names = [domain.name(number) for number in domain.values]
    if sets_of(randomizer) is None and not isinstance(randomizer, AdditiveRandomizer):
        outputs = tuple(names[int(number)] for number in randomizer.values)
        randomizer = replace(randomizer, values=outputs)
    named = CategoricalDomain(tuple(names), names[int(domain.default)])
    return Decoded(named, randomizer, decoded.certificate, decoded.sha256)


def decode_artifact(path: Path, budget: Budget = DEFAULT_BUDGET) -> Decoded:
    """The only table of a file; raises as ``decode_any``, and InputError for tables by group."""
    return one_table(decode_any(path, budget), path, None)


def one_table(decoded: Decoded | DecodedGroups, path: Path, group: str | None) -> Decoded:
    """The only table, or that of a group; InputError if it is not said which, or in vain."""
    if isinstance(decoded, DecodedGroups):
        if group is None:
            raise InputError(f"{path}: has a table for each group: say which, {_how(decoded)}")
        return decoded.table(find_group(decoded, group))
    if group is not None:
        raise InputError(f"{path}: has one table for all rows: leave out --group")
    return decoded


def find_group(decoded: DecodedGroups, text: str) -> int:
    """The table of a group as it was typed: ``other``, or a value of each column.

    Values of several columns stand with commas between them, ``\\,`` for a comma inside; a number
    stands for its band. Raises InputError for what is not listed.
    """
    groups = decoded.randomizer.groups
    if text == "other":
        return groups.own_tables
    parts = [part.replace("\\,", ",") for part in re.split(r"(?<!\\),", text)]
    if len(groups.columns) == 1:
        parts = [text]
    row = []
    for column, part in zip(groups.columns, parts, strict=False):
        try:
            value = (
                part
                if column.is_text
                else read_whole(part)
                if column.values
                else float(read_decimal(part))
            )
        except ValueError:
            break
        if column.place(value) is None:
            break
        row.append(value)
    if len(row) != len(groups.columns) or len(parts) != len(row):
        raise InputError(f"--group {text}: is not listed; {_how(decoded)}")
    return groups.table(row)


def _how(decoded: DecodedGroups) -> str:
    names = ",".join(column.name.upper() for column in decoded.randomizer.groups.columns)
    return f"as in --group {names}, or --group other for all rows that are not listed"


def answers_with_sets(decoded: Decoded | DecodedGroups) -> bool:
    """Whether private labels are numbers of sets; tables by group never answer so."""
    return isinstance(decoded, Decoded) and sets_of(decoded.randomizer) is not None


def label_name(domain: Domain, index: int) -> str:
    """A label in words."""
    return domain.name(index) if isinstance(domain, JointDomain) else str(label_at(domain, index))


def has_whole_outputs(decoded: Decoded | DecodedGroups) -> list[bool]:
    """Of each private column whether all outputs are whole numbers that float64 and int64 hold."""
    domain, randomizer = decoded.domain, decoded.randomizer
    if answers_with_sets(decoded) or not isinstance(domain, JointDomain):
        return [_is_whole(randomizer)]
    return [isinstance(part, IntegerDomain) for part in domain.parts]


def _is_whole(randomizer: Randomizer | GroupedWindows) -> bool:
    if isinstance(randomizer, GroupedWindows):
        return all(map(_is_whole, randomizer.windows))
    if isinstance(randomizer, AdditiveRandomizer):
        parts = randomizer.origin, randomizer.unit
        reach = max(abs(randomizer.low), abs(randomizer.high)) * abs(parts[1]) + abs(parts[0])
        return all(part.is_integer() for part in parts) and reach <= _EXACT_IN_FLOAT64
    return all(
        not isinstance(value, str) and value == int(value) and abs(value) <= _EXACT_IN_FLOAT64
        for value in randomizer.values
    )


def label_at(domain: Domain, index: int) -> Category | float:
    """The label of this index: a category, an integer, or the float64 of a grid point."""
    if isinstance(domain, CategoricalDomain):
        return domain.values[index]
    if isinstance(domain, IntegerDomain):
        return domain.min + index
    return float(domain.labels()[index])


def find_labels(domain: Domain, asked: Sequence[str]) -> list[int]:
    """The indices of labels as they were typed; InputError if one is no label of the domain.

    A real number stands for the grid point that is nearest to it.
    """
    return [_find(domain, text) for text in asked]


def _find(domain: Domain, text: str) -> int:
    if isinstance(domain, CategoricalDomain):
        names = [str(category) for category in domain.values]
        if text not in names:
            close = difflib.get_close_matches(text, names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(f"--label {text}: is not one of the {len(names):,} categories{hint}")
        return names.index(text)
    try:
        number = float(read_decimal(text))
    except ValueError:
        raise InputError(f"--label {text}: expected a number") from None
    if not domain.min <= number <= domain.max:
        raise InputError(f"--label {text}: the labels lie in {domain.min} … {domain.max}")
    if isinstance(domain, RealDomain):
        return math.floor(domain.position(number) + 0.5)
    if number != int(number):
        raise InputError(f"--label {text}: the labels are integers")
    return int(number) - domain.min


QUANTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True)
class Window:
    """A label's window on the extra line.

    Attributes:
        start, end: its first integer, and the one behind its last.
        outputs: (index of an output, integers of it in the window), in the order of the line.
    """

    start: int
    end: int
    outputs: list[tuple[int, int]]


@dataclass(frozen=True)
class LabelFacts:
    """One row of the matrix. The moments are None for categories.

    Attributes:
        label: as the spec writes it.
        mean, bias, deviation: E[output], E[output] − label, and the standard deviation.
        unchanged: Pr[output = label], or that the output is a set with the label.
        window: of a window randomizer, else None.
    """

    label: Category | float
    mean: float | None
    bias: float | None
    deviation: float | None
    unchanged: float
    window: Window | None


@dataclass(frozen=True)
class OutputFacts:
    """One column of the matrix.

    Attributes:
        value: of the output; of a set its number.
        members: the labels of the set, or None.
        base: Pr[output] that every label has alike (window randomizers), else None.
        least, most: of Pr[output | label] over all labels.
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
        blocks: number of blocks on each side of zero, the folded tail included.
        mean_distance: E|noise|, the scale of Laplace noise.
        deviation: √E noise².
        quantiles: (share, the least distance within which that share of the noise lies).
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
    """The facts of the labels of these indices, from exact sums."""
    exact = domain.labels()
    moments = analyse(randomizer).moments() if are_numbers(domain, randomizer) else None
    lines = _Line(randomizer) if isinstance(randomizer, WindowRandomizer) else None
    facts = []
    probabilities = kept_probabilities(domain, randomizer, labels).tolist()
    for y, kept in zip(labels, probabilities, strict=True):
        mean = bias = deviation = None
        if moments is not None:
            first, second = moments[0](y), moments[1](y)
            mean, bias = float(first), float(first - Fraction(exact[y]))
            deviation = math.sqrt(second - first**2)
        window = None if lines is None else lines.window(y)
        facts.append(LabelFacts(label_at(domain, y), mean, bias, deviation, kept, window))
    return facts


def output_facts(
    domain: Domain, randomizer: Randomizer, outputs: Sequence[int]
) -> list[OutputFacts]:
    """The facts of the outputs of these indices; the range is over all labels."""
    facts, sets = [], sets_of(randomizer)
    for i, over_labels in zip(outputs, columns(randomizer, outputs), strict=True):
        base = None
        if isinstance(randomizer, WindowRandomizer):
            base = randomizer.base[i] / randomizer.words
        least, most = float(over_labels.min()), float(over_labels.max())
        members = None if sets is None else [label_at(domain, y) for y in sets.members(i)]
        facts.append(OutputFacts(value(randomizer, i), base, least, most, members))
    return facts


def noise_facts(randomizer: AdditiveRandomizer) -> NoiseFacts:
    """The facts of the noise; the moments are exact until the last step."""
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


class _Line:
    """The extra line of a window randomizer."""

    def __init__(self, randomizer: WindowRandomizer) -> None:
        self._r = randomizer
        lengths = [segment.length for segment in randomizer.extra]
        self._ends = list(accumulate(lengths, initial=0))

    def window(self, label: int) -> Window:
        start = self._r.offsets[label]
        end = start + self._r.window
        outputs = []
        j = bisect_right(self._ends, start) - 1
        while j < len(self._r.extra) and self._ends[j] < end:
            inside = min(self._ends[j + 1], end) - max(self._ends[j], start)
            outputs.append((self._r.extra[j].output, inside))
            j += 1
        return Window(start, end, outputs)
