"""Facts from the matrix about one label, about one output, and about additive noise."""

import difflib
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from labeldp_verify.analysis import (
    Floats,
    analyse,
    columns,
    equally_likely,
    likely_outputs,
    matrix,
    noise_quantiles,
    range_sums,
    row,
    value,
)
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.claims import field_lists
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
from labeldp_verify.opening import find_table, table_of
from labeldp_verify.strict import read_decimal
from labeldp_verify.usefulness.estimates import kept_probabilities, sample
from numpy.typing import NDArray

from labeldp_compile.errors import InputError


@dataclass(frozen=True)
class TableFacts:
    """One table, as the certificate states it.

    Attributes:
        table: its number.
        name: of its group.
        rows: public number of rows that the prior counted.
        outputs: how many.
        epsilon_bound: proved upper bound on its ε.
        loss: noisy label loss under its own prior.
        largest_bias: of the mean output, for real labels at the points of the grid; None for
            categories.
        bias_in_range: the largest bias for all labels in the range.
    """

    table: int
    name: str
    rows: int
    outputs: int
    epsilon_bound: float
    loss: float
    largest_bias: float | None
    bias_in_range: float | None


def overview(decoded: Artifact) -> list[TableFacts]:
    """All tables; the last one is for all other rows."""
    return [
        TableFacts(
            table=i,
            name=decoded.groups.name(i),
            rows=table.size,
            outputs=table.outputs,
            epsilon_bound=table.epsilon_label_bound,
            loss=table.utility.noisy_label_loss,
            largest_bias=table.utility.largest_bias,
            bias_in_range=decoded.table(i).bias_in_range,
        )
        for i, table in enumerate(decoded.certificate.tables)
    ]


def shown_table(artifact: Artifact, path: Path, group: str | None) -> int:
    """The number of the table to show: that of a group as it was typed, or the one with most rows.

    Raises InputError for a group that is not listed, or if the artifact has no groups.
    """
    if group is None:
        sizes = [table.size for table in artifact.certificate.tables]
        return sizes.index(max(sizes))
    table_of(artifact, path, group)
    return find_table(artifact.groups, group)


class KeyFigure(NamedTuple):
    """One figure of a table that the page, the terminal and the JSON of a report show.

    Attributes:
        words: what it is.
        value: None where the table has none.
        field: of the certificate that states it; "" if it follows from the integers alone.
        key: in the JSON of a report; "" if it is in the JSON of ``verify`` only.
        proved: whether the integers prove it; otherwise it is declared.
    """

    words: str
    value: float | None
    field: str = ""
    key: str = ""
    proved: bool = True


def key_figures(decoded: Table) -> list[KeyFigure]:
    """The figures that this table has. A new one is a line here."""
    stated, of_sets = decoded.certificate, decoded.certificate.sets
    privacy, use = stated.privacy, stated.utility
    noise, least = (None, None) if of_sets is None else (of_sets.noise, of_sets.least_noise)
    grid = " at the points of the grid" if decoded.domain.kind == RealDomain.kind else ""
    bound = privacy.epsilon_label_bound
    figures = [
        KeyFigure("ε of a label: budget", privacy.epsilon_label, "privacy.epsilon_label"),
        KeyFigure(
            "ε of a label: at most", bound, "privacy.epsilon_label_bound", "epsilon_label_bound"
        ),
        KeyFigure("ε of the prior", privacy.epsilon_prior, "privacy.epsilon_prior"),
        KeyFigure("ε in total", privacy.epsilon_total, "privacy.epsilon_total"),
        KeyFigure("noisy label loss", use.noisy_label_loss, "utility.noisy_label_loss"),
        KeyFigure("its lower bound", use.loss_lower_bound, "utility.loss_lower_bound"),
        KeyFigure("noise of shares", noise, "sets.noise"),
        KeyFigure("the least possible", least, "sets.least_noise"),
        KeyFigure(f"largest bias{grid}", use.largest_bias, "utility.largest_bias"),
        KeyFigure("number of labels", stated.labels, "labels", "number_of_labels"),
        KeyFigure("number of outputs", stated.outputs, "outputs", "number_of_outputs"),
    ]
    proved = {"", *field_lists(stated).proved}
    return [it._replace(proved=it.field in proved) for it in figures if it.value is not None]


COLUMNS = 160
CELLS = 80
SHOWN_NOISE = 0.999
_EVEN = 1e-6  # outputs are on a lattice if their distances differ by less than this, relatively


@dataclass(frozen=True)
class HeatMap:
    """Shares of each label that fall into each of the equally high cells of outputs.

    Attributes:
        shares: [cells, labels]; a column is a label, and sums to 1 if no tail is left out.
        labels: [labels] their indices.
        output_axis: the ends of the axis of outputs; of categories, places in their order.
        outputs: the first and the last output that is shown.
        cell_height: in units of the label (categories: in places); None if no cell holds two
            outputs.
        tails: whether the far tails of additive noise are left out.
    """

    shares: Floats
    labels: Sequence[int]
    output_axis: tuple[float, float]
    outputs: tuple[Output, Output]
    cell_height: float | None
    tails: bool


def heat_map(decoded: Table, labels: Sequence[int] | None = None, most: int = CELLS) -> HeatMap:
    """At most ``most`` cells, of these labels or of at most ``COLUMNS`` evenly spaced ones.

    Outputs on a lattice may have one cell more.
    """
    domain, r = decoded.domain, decoded.randomizer
    if labels is None:
        columns = min(domain.size, COLUMNS)
        labels = [(2 * j + 1) * domain.size // (2 * columns) for j in range(columns)]
    first, last = likely_outputs(r, SHOWN_NOISE)
    if isinstance(r, AdditiveRandomizer):
        low = float(value(r, first)) - r.unit / 2
        starts, edges = _neighbours(first, last + 1, low, r.unit, most)
    elif not are_numbers(domain, r):
        starts, edges = _neighbours(0, r.outputs, -0.5, 1.0, most)
    else:
        values = np.array(r.values, dtype=np.float64)
        step = (domain.max - domain.min) / (domain.size - 1)
        edges = cell_edges(values, (domain.min, domain.max), step, most)
        starts = np.searchsorted(values, edges)
    return HeatMap(
        shares=range_sums(r, labels, starts).T,
        labels=labels,
        output_axis=(float(edges[0]), float(edges[-1])),
        outputs=(value(r, first), value(r, last)),
        cell_height=float(edges[1] - edges[0]) if int(np.diff(starts).max()) > 1 else None,
        tails=(first, last) != (0, r.outputs - 1),
    )


def _neighbours(
    first: int, end: int, low: float, unit: float, most: int
) -> tuple[NDArray[np.int64], Floats]:
    """Boundaries and edges of runs of neighbouring outputs.

    The last run may have fewer outputs; its cell is as high as the others.
    """
    together = -(-(end - first) // most)
    boundaries = first + together * np.arange(-(-(end - first) // together) + 1)
    edges: Floats = low + together * unit * np.arange(len(boundaries), dtype=np.float64)
    return np.minimum(boundaries, end), edges


def cell_edges(
    values: Floats, labels: tuple[float, float], step: float, most: int = CELLS
) -> Floats:
    """Edges [cells + 1] of equally high cells that hold all outputs and span all labels.

    Evenly spaced outputs are in the middle of their cells.

    Args:
        values: [m] outputs, increasing.
        labels: the smallest and the largest label.
        step: between neighbouring labels.
        most: cells at most; outputs on a lattice may have one more.
    """
    low, high = min(values[0], labels[0]), max(values[-1], labels[1])
    gaps = np.diff(values)
    spacing = float(gaps.mean()) if len(gaps) else math.inf
    even = len(gaps) > 0 and float(np.ptp(gaps)) <= _EVEN * spacing
    if even and spacing <= max(step * (1 + _EVEN), (high - low) / most):
        together = -(-(round((high - low) / spacing) + 1) // most)
        width = spacing * together
        low = values[0] - spacing * math.ceil((values[0] - low) / spacing - _EVEN) - spacing / 2
        return np.asarray(low + width * np.arange(math.ceil((high - low) / width - _EVEN) + 1))
    width = (high - low) / (most - 1)
    return np.asarray(low - width / 2 + width * np.arange(most + 1))


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


FORMAT_VERSION = "1.0"
MAX_EXACT = 20_000  # probabilities as "p/q"
MAX_NUMBERS = 200_000  # probabilities of any kind: about 10 MB
MAX_LISTED = 1_000  # labels or outputs that are listed


def inspection_json(decoded: Table, asked: Sequence[int] = ()) -> dict[str, Any]:
    """``{format_version, ok, name, …, matrix, outputs, labels, noise}``, keys in this order.

    ``asked`` are the indices of the labels to show; by default all, or a sample with both ends if
    there are too many. Probabilities are "p/q" for up to ``MAX_EXACT`` entries, and float64 beyond.
    """
    r, domain, certificate = decoded.randomizer, decoded.domain, decoded.certificate
    rows = list(asked) or sample(domain.size, max(MAX_NUMBERS // r.outputs, 2))
    shown = list(asked) or sample(domain.size, MAX_LISTED)
    noise = noise_facts(r) if isinstance(r, AdditiveRandomizer) else None
    return {
        "format_version": FORMAT_VERSION,
        "ok": True,
        "name": certificate.name,
        "mechanism": certificate.mechanism,
        "form": r.form,
        **{figure.key: figure.value for figure in key_figures(decoded) if figure.key},
        "equally_likely_words": str(equally_likely(r)),
        "bias_in_range": decoded.bias_in_range,
        "usefulness": decoded.use_to_json(),
        "warnings": [asdict(part) for part in decoded.shortcomings],
        "matrix": _matrix(decoded, rows),
        "outputs": [
            {k: v for k, v in asdict(facts).items() if v is not None or k != "members"}
            for facts in output_facts(domain, r, sample(r.outputs, MAX_LISTED))
        ],
        "labels": [asdict(facts) for facts in label_facts(domain, r, shown)],
        "noise": None if noise is None else asdict(noise),
    }


def groups_json(decoded: Artifact) -> dict[str, Any]:
    """``{format_version, ok, name, mechanism, …, groups}``: the main figures of each table."""
    certificate = decoded.certificate
    return {
        "format_version": FORMAT_VERSION,
        "ok": True,
        "name": certificate.name,
        "mechanism": certificate.mechanism,
        "form": certificate.form,
        "number_of_labels": certificate.labels,
        "number_of_outputs": certificate.outputs,
        "columns": [column.name for column in decoded.groups.columns],
        "epsilon_label_bound": certificate.privacy.epsilon_label_bound,
        "noisy_label_loss": certificate.utility.noisy_label_loss,
        "warnings": [asdict(part) for part in decoded.shortcomings],
        "groups": [asdict(facts) for facts in overview(decoded)],
    }


def _matrix(decoded: Table, rows: list[int]) -> dict[str, Any]:
    r, domain = decoded.randomizer, decoded.domain
    labels = [domain.listed[y] for y in rows]
    note = None if len(rows) == domain.size else "not all labels"
    if len(rows) * r.outputs > 2 * MAX_NUMBERS:
        return {"exact": False, "note": "too large to list", "labels": [], "rows": []}
    if len(rows) * r.outputs <= MAX_EXACT:
        words = equally_likely(r)
        exact = [[str(Fraction(count, words)) for count in row(r, y)] for y in rows]
        return {"exact": True, "note": note, "labels": labels, "rows": exact}
    note = "float64, correct to a few units in the last place" + (f"; {note}" if note else "")
    floats = matrix(r, rows).tolist()
    return {"exact": False, "note": note, "labels": labels, "rows": floats}
