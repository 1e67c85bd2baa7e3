"""A report in the terminal: what a verified artifact does to each label, its groups and prior."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from labeldp_verify import Budget, VerificationError
from labeldp_verify.analysis import likely_outputs, matrix, value
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.claims import Prior, PrivatePriorClaims
from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    Category,
    Domain,
    Output,
    RealDomain,
    WindowRandomizer,
    are_numbers,
    columns_of,
    sets_of,
)
from labeldp_verify.opening import open_artifact, readable, table_of
from labeldp_verify.printable import Marked, at_most, probability
from labeldp_verify.usefulness.estimates import sample
from labeldp_verify.usefulness.shortcomings import relevant

from labeldp_compile.cli.command import (
    can_show,
    clipped,
    fact,
    padded,
    say_json,
    show,
    tell,
    text_table,
    verified,
    width,
)
from labeldp_compile.errors import InputError
from labeldp_compile.prior.discrete_laplace import NOISE, deviation
from labeldp_compile.report.facts import (
    FORMAT_VERSION,
    SHOWN_NOISE,
    find_label,
    groups_json,
    heat_map,
    inspection_json,
    key_figures,
    label_facts,
    noise_facts,
    output_facts,
    overview,
)
from labeldp_compile.whole_file import require_output

SHADES = " ░▒▓█"
ASCII_SHADES = " .:*#"
_LABEL_COLUMNS = 14
_LEAST_ROOM, _WIDEST_CELL = 8, 6


def terminal_heat_map(
    decoded: Table, labels: Sequence[int], names: Sequence[str], columns: int, shades: str
) -> list[str]:
    """The heat map of the labels of these indices, in lines of at most ``columns`` columns.

    Below a line for each label come the ends of the axis. Shades follow the square root, so that
    small probabilities can be told from none. Each of ``shades`` fills one column, the faintest
    first.
    """
    names = [clipped(name, _LABEL_COLUMNS) for name in names]
    margin = max(map(width, names), default=0)
    room = max(columns - margin - 3, _LEAST_ROOM)
    heat = heat_map(decoded, labels, room - 1)  # outputs on a lattice may have one cell more
    ends = f"{heat.output_axis[0]:.6g}", f"{heat.output_axis[1]:.6g}"
    if not are_numbers(decoded.domain, decoded.randomizer):
        ends = str(heat.outputs[0]), str(heat.outputs[1])
    shares = heat.shares.T
    cell = min(max(room // shares.shape[1], 1), _WIDEST_CELL)
    most = float(shares.max()) or 1.0
    steps = np.rint(np.sqrt(shares / most) * (len(shades) - 1)).astype(int)
    lines = [
        f"{padded(name, margin)} │{''.join(shades[step] * cell for step in line)}│"
        for name, line in zip(names, steps, strict=True)
    ]
    indent = " " * (margin + 2)
    lines.append(indent + _axis(ends, shares.shape[1] * cell))
    each = "" if heat.cell_height is None else f", those within {heat.cell_height:.4g} together"
    scale = f"0 {shades} {most:.3g}"
    lines.append(f"{indent}columns: the axis of outputs{each}; shades: {scale}")
    return lines


def _axis(ends: tuple[str, str], columns: int) -> str:
    """One end on the left, the other on the right, as far as both fit."""
    first, last = clipped(ends[0], columns), clipped(ends[1], columns)
    if width(first) + width(last) + 1 > columns:
        return f"{first} … {last}"
    return first + padded(last, columns - width(first))


if TYPE_CHECKING:
    import pyarrow as pa

TABLE_LABELS, TABLE_OUTPUTS = 12, 8
SHOWN_LABELS, SHOWN_OUTPUTS = 13, 13
MAX_PRINTED = 1_000_000
MAX_DRAWN = 1_000_000
_NAME_COLUMNS = 24
_LISTED_MEMBERS = 4


def print_report(
    file: Path,
    *,
    asked: tuple[str, ...],
    group: str | None,
    whole: bool,
    verbose: bool,
    as_json: bool,
    table: Path | None,
    weights: Path | None,
    overwrite: bool,
    budget: Budget,
) -> None:
    """Verify FILE, print its matrix and the use of its labels, and write the tables asked for.

    Of a file with a table for each group, all groups are listed, unless one is asked for. Raises
    DoesNotHoldError if FILE does not verify, InputError if it cannot be read.
    """
    for path in (table, weights):
        require_output(path, file, endings=(".parquet", ".csv"), overwrite=overwrite)
    with verified(file, ", and is not shown"):
        try:
            artifact = open_artifact(file, budget)
        except VerificationError as error:
            if as_json:
                failed = {"format_version": FORMAT_VERSION, "ok": False, "failed": str(error)}
                say_json(failed)
            raise
    if table is not None and artifact.certificate.sets is None:
        raise InputError(f"{file}: its private labels are not sets of labels")
    if weights is not None:
        from labeldp_compile.estimates.aggregates import weights_of  # noqa: PLC0415
        from labeldp_compile.tabular.csv_sink import write_new_table  # noqa: PLC0415  # pyarrow

        rows = write_new_table(weights, *weights_of(artifact, file))
        tell(f"{weights}: {rows:,} rows, one per output and estimate")
    if artifact.groups.columns and group is None and not asked and not whole:
        show(as_json, lambda: groups_json(artifact), lambda: _all_groups(artifact))
        return
    decoded = table_of(artifact, file, group)
    named = readable(decoded)
    labels = [find_label(named.domain, text) for text in asked]
    if table is not None:
        from labeldp_compile.tabular.csv_sink import write_new_table  # noqa: PLC0415  # pyarrow

        rows = write_new_table(table, *_sets_of(decoded))
        tell(f"{table}: {rows:,} rows, one per label and set")
    show(
        as_json,
        lambda: inspection_json(named, labels),
        lambda: _in_words(named, labels, whole, verbose),
    )


def _all_groups(decoded: Artifact) -> list[str]:
    certificate = decoded.certificate
    columns = ", ".join(column.name for column in decoded.groups.columns)
    return [
        f"{certificate.name}: {certificate.mechanism}, {certificate.labels:,} labels, "
        f"{decoded.groups.tables:,} {'tables' if decoded.groups.own_tables else 'table'} by "
        f"{columns}; verified",
        "",
        *group_table(decoded),
        "",
        *_warnings(decoded),
        "--group shows one of them, for example --group other",
        f"ε of a label is at most {at_most(certificate.privacy.epsilon_label_bound, 12)} in every "
        f"group; the noisy label loss is {certificate.utility.noisy_label_loss:.6g} "
        f"({certificate.utility.loss}), weighted by rows",
    ]


def _in_words(decoded: Table, asked: list[int], whole: bool, verbose: bool) -> list[str]:
    r, k, certificate = decoded.randomizer, decoded.domain.size, decoded.certificate
    lines = [
        f"{certificate.name}: {certificate.mechanism}, {k:,} labels, {r.outputs:,} outputs, "
        f"{r.words_per_label * r.word_bits} random bits per label; verified",
        "",
        *_matrix(decoded, asked, whole),
        "",
    ]
    if verbose:
        bars = prior_bars(decoded, sys.stdout)
        lines += [*_outputs(decoded), "", *bars, *[""][: len(bars)]]
    if verbose or asked:
        lines += [*_labels(decoded, asked or sample(k, SHOWN_LABELS)), ""]
    if verbose and isinstance(r, AdditiveRandomizer):
        lines += [*_noise(r), ""]
    if verbose:
        figures = (
            f"  {one.words:<36} {one.value:,} ({'proved' if one.proved else 'declared'})"
            for one in key_figures(decoded)
        )
        lines += ["key figures:", *figures, ""]
    lines.append("use of the private labels:")
    lines += [fact(*figure) for figure in decoded.figures(verbose=verbose)]
    lines += _warnings(decoded)
    if not verbose:
        lines.append("more: --verbose shows outputs, labels and prior; --json has every number")
    bound = at_most(certificate.privacy.epsilon_label_bound, 12)
    return [*lines, f"ε of a label is at most {bound}"]


def _warnings(decoded: Artifact | Table) -> list[Marked]:
    shortcomings = relevant(decoded.shortcomings, decoded.certificate.goal)
    return [Marked(f"warning: {one.text}", "warning") for one in shortcomings]


def _matrix(decoded: Table, asked: list[int], whole: bool) -> list[str]:
    r, k = decoded.randomizer, decoded.domain.size
    rows = asked or list(range(k))
    if whole and len(rows) * r.outputs > MAX_PRINTED:
        raise InputError(
            f"--matrix: {len(rows):,} labels × {r.outputs:,} outputs are too many to print; "
            "choose some labels with --label"
        )
    if whole or (len(rows) <= TABLE_LABELS and r.outputs <= TABLE_OUTPUTS):
        columns = [["label", *_names(decoded, rows)]]
        for i, over_labels in enumerate(matrix(r, rows).T.tolist()):
            shown = [_probability(p) for p in over_labels]
            columns.append([_name(value(r, i)), *shown])
        return _table("Pr[output | label], one row per label", columns)
    width, height = shutil.get_terminal_size((80, 30))
    rows = asked or sample(k, max(height - 8, 12))
    which = "" if len(rows) == k or asked else f" ({len(rows)} of {k:,} labels)"
    first, last = likely_outputs(r, SHOWN_NOISE)
    if last - first >= MAX_DRAWN:
        return [f"Pr[output | label]: {r.outputs:,} outputs are too many to draw"]
    hidden = (first, last) != (0, r.outputs - 1)
    share = f"; the outputs hold {SHOWN_NOISE:.1%} of the noise" if hidden else ""
    shades = SHADES if can_show(SHADES, sys.stdout) else ASCII_SHADES
    names = _names(decoded, rows)
    drawn = terminal_heat_map(decoded, rows, names, width, shades)
    return [f"Pr[output | label], one row per label{which}{share}", *drawn]


def _outputs(decoded: Table) -> list[str]:
    r = decoded.randomizer
    indices = sample(r.outputs, SHOWN_OUTPUTS)
    facts = output_facts(decoded.domain, r, indices)
    columns = [["output", *(_name(one.value) for one in facts)]]
    if isinstance(r, WindowRandomizer):
        columns.append(["for every label", *(probability(one.base or 0, 6) for one in facts)])
    columns.append(["least", *(probability(one.least, 6) for one in facts)])
    columns.append(["most", *(probability(one.most, 6) for one in facts)])
    if sets_of(r) is not None:
        columns.append(["the set", *(_members(one.members or []) for one in facts)])
    title = f"Outputs{_some(len(indices), r.outputs)}: probability, over all labels"
    return _table(title, columns, left=(0, 3) if sets_of(r) is not None else (0,))


def _members(members: Sequence[Category | float]) -> str:
    names = [_name(label) for label in members[:_LISTED_MEMBERS]]
    more = len(members) - len(names)
    return ", ".join(names) + (f", and {more:,} more" if more else "")


def _labels(decoded: Table, shown: list[int]) -> list[str]:
    facts = label_facts(decoded.domain, decoded.randomizer, shown)
    sets, what = sets_of(decoded.randomizer) is not None, "how often the output is the label"
    columns = [["label", *_names(decoded, shown)]]
    if facts[0].mean is not None:
        what = "moments of the output"
        columns.append(["mean", *(f"{one.mean:.6g}" for one in facts)])
        columns.append(["bias", *(f"{one.bias:.3g}" for one in facts)])
        columns.append(["sd", *(f"{one.deviation:.6g}" for one in facts)])
    columns.append(
        ["in the set" if sets else "unchanged", *(probability(one.unchanged, 6) for one in facts)]
    )
    if sets:
        what = "how often the output is a set that contains the label"
    title = f"Labels{_some(len(shown), decoded.domain.size)}: {what}"
    if decoded.bias_in_range is not None and isinstance(decoded.domain, RealDomain):
        title += (
            ", at the points of the grid; the largest bias of all labels in the range is at most "
            f"{at_most(decoded.bias_in_range, 3)}"
        )
    return _table(title, columns)


def _noise(randomizer: AdditiveRandomizer) -> list[str]:
    facts = noise_facts(randomizer)
    return [
        "Noise, before outputs are clamped",
        f"  lattice step     {facts.step:.6g}",
        f"  range of labels  {facts.period:.6g}   one block of the noise",
        f"  blocks           {facts.blocks:,} on each side of zero",
        f"  mean |noise|     {facts.mean_distance:.6g}",
        f"  sd               {facts.deviation:.6g}",
        *(f"  |noise| ≤ {limit:<10.6g} with probability {q:.4g}" for q, limit in facts.quantiles),
        f"  folded tails     {facts.folded:.3g}   probability of the two outermost blocks",
        f"  outputs          {randomizer.value(randomizer.low):.6g} … "
        f"{randomizer.value(randomizer.high):.6g}   where they are clamped",
    ]


def _probability(share: float) -> str:
    """An entry of the matrix; small ones with an exponent."""
    return probability(share, 6, "f") if share >= 1e-4 else f"{share:.2e}"


def _table(title: str, columns: list[list[str]], left: Sequence[int] = (0,)) -> list[str]:
    header, *rows = zip(*columns, strict=True)
    return [title, *text_table(header, rows, left=left)]


def _some(shown: int, count: int) -> str:
    return "" if shown == count else f" ({shown:,} of {count:,})"


def _names(decoded: Table, labels: Sequence[int]) -> list[str]:
    return [_name(decoded.domain.listed[y]) for y in labels]


def _name(item: Output) -> str:
    if isinstance(item, float):
        return f"{item:.0f}" if item.is_integer() and abs(item) < 1e12 else f"{item:.6g}"
    return clipped(str(item), _NAME_COLUMNS)


def _sets_of(decoded: Table) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """A table with a row for each label in each set, to be joined with private labels.

    The columns are ``set`` and ``label``, or ``set`` and the columns of a label with several.
    """
    import pyarrow as pa  # noqa: PLC0415

    sets, domain = sets_of(decoded.randomizer), decoded.domain
    pairs: list[tuple[Any, int]] = [(domain.listed[y], y) for y in range(domain.size)]
    if sets is not None:  # otherwise each set is one label
        pairs = [(o, y) for o in range(len(sets.blocks)) for y in sets.members(o)]
    rows = domain.places_of(np.array([y for _, y in pairs], dtype=np.int64))
    names = decoded.certificate.label_columns if len(rows) > 1 else ["label"]
    labels = [
        pa.array(list(part.listed)).take(pa.array(at))
        for part, at in zip(columns_of(domain), rows, strict=True)
    ]
    numbers = pa.array([name for name, _ in pairs])
    batch = pa.RecordBatch.from_arrays([numbers, *labels], ["set", *names])
    return batch.schema, [batch]


# Lines on all groups, and on the prior, which compile prints, too.


SHOWN_GROUPS = 60
_GROUP_COLUMNS = 44


def group_table(decoded: Artifact, shown: int = SHOWN_GROUPS) -> list[str]:
    """A line for each table. Of many tables, those with most rows, and that of all other rows."""
    facts = overview(decoded)
    numeric = facts[0].bias_in_range is not None
    rows = facts
    if len(facts) > shown + 1:  # a line that says so is as long as one more group
        by_rows = sorted(facts[:-1], key=lambda one: (-one.rows, one.table))
        rows = [*by_rows[: shown - 1], facts[-1]]
    header = ["group", "rows", "outputs", "ε of a label", "loss", *(["bias"] if numeric else [])]
    lines = text_table(
        header,
        [
            [
                clipped(one.name, _GROUP_COLUMNS),
                f"{one.rows:,}",
                f"{one.outputs:,}",
                f"≤ {at_most(one.epsilon_bound)}",
                f"{one.loss:.6g}",
                *([] if one.bias_in_range is None else [at_most(one.bias_in_range, 3)]),
            ]
            for one in rows
        ],
    )
    if len(rows) < len(facts):
        lines.append(f"{len(facts) - len(rows):,} more groups, each with fewer rows")
    return lines


MOST_BARS = 12
_BAR_COLUMNS = 30
_ALMOST_ALL = 0.99
_BLOCK = "█"


def prior_bars(decoded: Table, stream: TextIO) -> list[str]:
    """Lines of a chart of the certificate's prior; no lines if it is uniform."""
    prior = decoded.certificate.prior
    if prior.kind == "uniform" or not any(prior.weights):
        return []
    names, shares = _bars(decoded.domain, prior.weights)
    names = [clipped(name, _NAME_COLUMNS) for name in names]
    columns, most = max(map(width, names)), max(shares)
    block = _BLOCK if can_show(_BLOCK, stream) else "#"
    return [
        f"{_bars_title(prior)}:",
        *(
            f"  {padded(name, columns)}  {probability(share, 1, '%'):>6}  "
            f"{block * round(_BAR_COLUMNS * share / most)}"
            for name, share in zip(names, shares, strict=True)
        ),
    ]


def prior_hints(decoded: Table) -> list[str]:
    """A line if nearly all labels are the same: most often the spec does not fit the data."""
    domain, weights = decoded.domain, decoded.certificate.prior.weights
    total, largest = sum(weights), max(range(len(weights)), key=weights.__getitem__)
    if decoded.certificate.prior.kind == "uniform" or weights[largest] < _ALMOST_ALL * total:
        return []
    label = clipped(str(domain.listed[largest]), _NAME_COLUMNS)
    is_default = domain.default is not None and domain.labels()[largest] == domain.default
    which = "the default for unknown values" if is_default else "one label"
    asked = (
        "check that the categories are spelled as in the data"
        if isinstance(domain, CategoricalDomain)
        else "check the column and the range of its labels"
    )
    share = probability(weights[largest] / total, 1, "%")
    return [f"hint: {share} of the prior is on {label}, {which}: {asked}"]


def _bars_title(prior: Prior) -> str:
    """Where the shares come from, and how much noise they have."""
    if not isinstance(prior, PrivatePriorClaims):
        return "the prior, as declared"
    title = "the noisy prior, as declared"
    if prior.mechanism != NOISE or not prior.rows:
        return title
    rows = deviation(prior.scale)
    share = f"{rows / prior.rows:.2%} of all {prior.rows:,}"
    return f"{title}; each count got noise with an sd of {rows:.3g} rows, {share}"


def _bars(domain: Domain, weights: Sequence[int]) -> tuple[list[str], list[float]]:
    """Categories, the most likely first; numbers in order, with neighbours joined."""
    total, k = sum(weights), domain.size
    if isinstance(domain, CategoricalDomain):
        order = sorted(range(k), key=lambda i: -weights[i])
        shown = order if k <= MOST_BARS else order[: MOST_BARS - 1]
        names = [str(domain.values[i]) for i in shown]
        shares = [weights[i] / total for i in shown]
        if len(shown) < k:
            names.append(f"{k - len(shown):,} others")
            shares.append(max(1 - sum(shares), 0.0))
        return names, shares
    edges = [round(i * k / min(k, MOST_BARS)) for i in range(min(k, MOST_BARS) + 1)]
    runs = list(pairwise(edges))
    shares = [sum(weights[first:last]) / total for first, last in runs]
    return [_run(domain, first, last - 1) for first, last in runs], shares


def _run(domain: Domain, first: int, last: int) -> str:
    ends = [f"{domain.listed[index]:g}" for index in (first, last)]
    return ends[0] if first == last else f"{ends[0]} … {ends[1]}"
