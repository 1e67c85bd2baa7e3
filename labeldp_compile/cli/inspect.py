"""``labeldp inspect``: what a verified artifact does to each label."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import click
from labeldp_verify import Budget, VerificationError
from labeldp_verify.analysis import likely_outputs, matrix, value
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.console.colour import shows_colour
from labeldp_verify.forms import AdditiveRandomizer, RealDomain, WindowRandomizer, sets_of
from labeldp_verify.opening import open_artifact, readable, table_of
from labeldp_verify.reading.usefulness import sample
from labeldp_verify.rounded import at_most

from labeldp_compile.cli.command import command, verified
from labeldp_compile.cli.group_table import group_table
from labeldp_compile.cli.heat_map import ASCII_SHADES, COLOURED, SHADES, terminal_heat_map
from labeldp_compile.cli.options import (
    PATH,
    budget_option,
    group_option,
    json_option,
    overwrite_option,
)
from labeldp_compile.cli.output import can_show, clipped, say_json, show, tell, text_table
from labeldp_compile.cli.prior_bars import prior_bars
from labeldp_compile.errors import InputError
from labeldp_compile.tools.inspection.document import FORMAT_VERSION, groups_json, inspection_json
from labeldp_compile.tools.inspection.facts import (
    LabelFacts,
    OutputFacts,
    find_labels,
    label_facts,
    noise_facts,
    output_facts,
)
from labeldp_compile.tools.inspection.heat_map import SHOWN_NOISE
from labeldp_compile.whole_file import replaced_when_whole, require_output

TABLE_LABELS, TABLE_OUTPUTS = 12, 8
SHOWN_LABELS, SHOWN_OUTPUTS = 13, 13
MAX_PRINTED = 1_000_000
MAX_DRAWN = 1_000_000
_NAME_COLUMNS = 24
_LISTED_OUTPUTS = 3
_LISTED_MEMBERS = 4


@command("inspect", "labeldp inspect build/doctor-visits.onnx --label 0 --label 5")
@click.argument("file", type=PATH)
@click.option("--label", "asked", multiple=True, metavar="Y", help="Show this label (repeatable).")
@group_option
@click.option("--matrix", "whole", is_flag=True, help="Print the whole matrix, whatever its size.")
@json_option
@click.option(
    "--sets",
    "table",
    type=PATH,
    metavar="TABLE",
    help="Write which labels are in which set (.parquet, .csv): set and label, or its columns.",
)
@overwrite_option
@budget_option
def inspect_command(
    file: Path,
    asked: tuple[str, ...],
    group: str | None,
    whole: bool,
    as_json: bool,
    table: Path | None,
    overwrite: bool,
    budget: Budget,
) -> None:
    """Show the matrix Pr[output | label] of an artifact, its outputs and its labels.

    FILE is verified first. Exit code 1 if it does not verify, 2 if it cannot be read. With a table
    for each group, all of them are listed, and --group shows one.
    """
    if table is not None:
        from labeldp_compile.tools.inspection import set_table  # noqa: PLC0415  # pyarrow

        require_output(table, endings=set_table.ENDINGS, overwrite=overwrite)
    with verified(file, ", and is not shown"):
        try:
            found = open_artifact(file, budget)
        except VerificationError as error:
            if as_json:
                failed = {"format_version": FORMAT_VERSION, "ok": False, "failed": str(error)}
                say_json(failed)
            raise
    if table is not None:
        set_table.require_sets(found, file)
    if found.groups.columns and group is None and not asked and not whole:
        show(as_json, lambda: groups_json(found), lambda: _all_groups(found))
        return
    decoded = table_of(found, file, group)
    named = readable(decoded)
    labels = find_labels(named.domain, asked)
    if table is not None:
        with replaced_when_whole(table) as part:
            rows = set_table.write_sets(decoded, table, part)
        tell(f"{table}: {rows:,} rows, one for each label in each set")
    show(
        as_json,
        lambda: inspection_json(named, labels),
        lambda: _in_words(named, labels, whole),
    )


def _all_groups(decoded: Artifact) -> list[str]:
    certificate = decoded.certificate
    columns = ", ".join(column.name for column in decoded.groups.columns)
    return [
        f"{certificate.name}: {certificate.mechanism}, window randomizers by group: "
        f"{certificate.labels:,} labels, {decoded.groups.tables:,} tables by "
        f"{columns}; verified",
        f"ε of a label at most {at_most(certificate.privacy.epsilon_label_bound, 12)} in every "
        f"group; noisy label loss {certificate.utility.noisy_label_loss:.6g} "
        f"({certificate.utility.loss}), weighted with the rows",
        *(f"warning: {found.text}" for found in decoded.shortcomings),
        "",
        *group_table(decoded),
        "",
        "--group shows one of them, as in --group other",
    ]


def _in_words(decoded: Table, asked: list[int], whole: bool) -> list[str]:
    r, k = decoded.randomizer, decoded.domain.size
    shown = asked or sample(k, SHOWN_LABELS)
    bits = f"{r.words_per_label} × {r.word_bits}" if r.words_per_label > 1 else f"{r.word_bits}"
    form = f"{'an' if r.form == 'additive' else 'a'} {r.form} randomizer"
    lines = [
        f"{decoded.certificate.name}: {decoded.certificate.mechanism}, {form}: "
        f"{k:,} labels, {r.outputs:,} outputs, words of {bits} bits; verified",
        "",
        *prior_bars(decoded, sys.stdout),
        "use of the private labels:",
        *decoded.use_in_words(),
        *(f"warning: {found.text}" for found in decoded.shortcomings),
        "",
        *_matrix(decoded, asked, whole),
        "",
        *_outputs(decoded),
        "",
        *_labels(decoded, shown),
    ]
    if isinstance(r, WindowRandomizer):
        lines += ["", *_windows(decoded, shown)]
    if isinstance(r, AdditiveRandomizer):
        lines += ["", *_noise(r)]
    return lines


def _matrix(decoded: Table, asked: list[int], whole: bool) -> list[str]:
    r, k = decoded.randomizer, decoded.domain.size
    rows = asked or list(range(k))
    if whole and len(rows) * r.outputs > MAX_PRINTED:
        raise InputError(
            f"--matrix: {len(rows):,} labels × {r.outputs:,} outputs are too many to print; "
            "choose some labels with --label"
        )
    if whole or (len(rows) <= TABLE_LABELS and r.outputs <= TABLE_OUTPUTS):
        header = ["label", *(_name(value(r, i)) for i in range(r.outputs))]
        numbers = matrix(r, rows).tolist()
        table = [
            [
                _name(decoded.domain.listed[y]),
                *(f"{p:.6f}" if p >= 1e-4 else f"{p:.2e}" for p in row),
            ]
            for y, row in zip(rows, numbers, strict=True)
        ]
        return ["Pr[output | label], a row a label", *text_table(header, table)]
    columns, lines = shutil.get_terminal_size((80, 30))
    rows = asked or sample(k, max(lines - 8, 12))
    which = "" if len(rows) == k or asked else f" ({len(rows)} of {k:,} labels)"
    first, last = likely_outputs(r, SHOWN_NOISE)
    if last - first >= MAX_DRAWN:
        return [f"Pr[output | label]: {r.outputs:,} outputs are too many to draw"]
    hidden = (first, last) != (0, r.outputs - 1)
    share = f"; outputs with {SHOWN_NOISE:.1%} of the noise" if hidden else ""
    shades: Sequence[str] = SHADES if can_show(SHADES, sys.stdout) else ASCII_SHADES
    if shows_colour(sys.stdout):
        shades = COLOURED
    names = [_name(decoded.domain.listed[y]) for y in rows]
    drawn = terminal_heat_map(decoded, rows, names, columns=columns, shades=shades)
    return [f"Pr[output | label], a row a label{which}{share}", *drawn]


def _outputs(decoded: Table) -> list[str]:
    r = decoded.randomizer
    indices = sample(r.outputs, SHOWN_OUTPUTS)
    rows = [
        [
            _name(facts.value),
            *([] if facts.base is None else [f"{facts.base:.6g}"]),
            f"{facts.least:.6g}",
            f"{facts.most:.6g}",
            *_members(facts),
        ]
        for facts in output_facts(decoded.domain, r, indices)
    ]
    base = ["for every label"] if isinstance(r, WindowRandomizer) else []
    sets = [] if sets_of(r) is None else ["the set"]
    title = f"Outputs{_some(len(indices), r.outputs)}: probability, over all labels"
    header = ["output", *base, "least", "most", *sets]
    return [title, *text_table(header, rows, left=(0, 3) if sets else (0,))]


def _members(facts: OutputFacts) -> list[str]:
    if facts.members is None:
        return []
    names = [_name(label) for label in facts.members[:_LISTED_MEMBERS]]
    more = len(facts.members) - len(names)
    return [", ".join(names) + (f", and {more:,} more" if more else "")]


def _labels(decoded: Table, shown: list[int]) -> list[str]:
    facts = label_facts(decoded.domain, decoded.randomizer, shown)
    numeric = facts[0].mean is not None
    kept, what = "unchanged", "how often the output is it"
    if sets_of(decoded.randomizer) is not None:
        kept, what = "in the set", "how often the output is a set with it"
    elif numeric:
        what = "moments of the output"
    header = ["label", *(["mean", "bias", "sd"] if numeric else []), kept]
    rows = [[_name(row.label), *_moments(row), f"{row.unchanged:.6g}"] for row in facts]
    title = f"Labels{_some(len(shown), decoded.domain.size)}: {what}"
    if decoded.bias_in_range is not None and isinstance(decoded.domain, RealDomain):
        title += (
            f", at the points of the grid; the largest bias of all labels in the range is at most "
            f"{at_most(decoded.bias_in_range, 3)}"
        )
    return [title, *text_table(header, rows)]


def _moments(facts: LabelFacts) -> list[str]:
    if facts.mean is None or facts.bias is None or facts.deviation is None:
        return []
    return [f"{facts.mean:.6g}", f"{facts.bias:.3g}", f"{facts.deviation:.6g}"]


def _windows(decoded: Table, shown: list[int]) -> list[str]:
    r = decoded.randomizer
    assert isinstance(r, WindowRandomizer)
    if not r.window:
        return ["Windows: none; every label has the same probabilities"]
    rows = []
    for facts in label_facts(decoded.domain, r, shown):
        window = facts.window
        assert window is not None
        parts = [
            f"{_name(r.values[part.output])} ({float(Fraction(part.words, r.window)):.1%})"
            for part in window.outputs
        ]
        if len(parts) > 2 * _LISTED_OUTPUTS - 1:
            left_out = len(parts) - 2
            parts = [parts[0], f"{left_out:,} more", parts[-1]]
        ends = [f"{float(Fraction(end, r.extra_total)):.4%}" for end in (window.start, window.end)]
        rows.append([_name(facts.label), *ends, ", ".join(parts)])
    title = (
        f"Windows{_some(len(shown), decoded.domain.size)}: where a label's "
        f"{r.window / r.words:.4%} of the words go, on the extra line"
    )
    return [title, *text_table(["label", "start", "end", "outputs"], rows, left=(0, 3))]


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


def _some(shown: int, count: int) -> str:
    return "" if shown == count else f" ({shown:,} of {count:,})"


def _name(item: Sequence[str] | str | float | Fraction) -> str:
    if isinstance(item, float):
        return f"{item:.0f}" if item.is_integer() and abs(item) < 1e12 else f"{item:.6g}"
    return clipped(str(item), _NAME_COLUMNS)
