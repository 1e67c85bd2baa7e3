"""``labeldp estimate``: what private labels say of the true ones, in aggregate."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, cast

import click
from labeldp_verify import Budget

from labeldp_compile.cli.command import command, verified
from labeldp_compile.cli.options import (
    PATH,
    budget_option,
    group_column_option,
    json_option,
    overwrite_option,
    quiet_option,
    text_options,
)
from labeldp_compile.cli.output import clipped, row_progress, show, tell, text_table
from labeldp_compile.text_form import TextForm
from labeldp_compile.tools.estimate.aggregates import estimate_table
from labeldp_compile.tools.estimate.document import class_name
from labeldp_compile.tools.estimate.estimate import ColumnEstimates, Estimation, GroupEstimates
from labeldp_compile.tools.estimate.intervals import MIN_ROWS, Target
from labeldp_compile.whole_file import require_output, write_text

_PROJECTED = "projected: the nearest shares of at least 0 that sum to 1; they have no interval"
_SHOWN_LABELS, _SHOWN_GROUPS, _SHOWN_SHARES = 60, 60, 240
_NAME_COLUMNS = 32
_WHOSE = {
    "rows": "the true labels of these rows",
    "population": "the population that these rows were drawn from",
}


@command("estimate", "labeldp estimate build/x.onnx private.parquet --column y --by region")
@click.argument("file", type=PATH)
@click.argument("table", type=PATH)
@click.option(
    "--column",
    "columns",
    multiple=True,
    help="The private column (default: the label column of the spec); of a joint label once for "
    "each.",
)
@group_column_option
@click.option("--by", metavar="COLUMN", help="Also for each group of rows with one value here.")
@click.option(
    "--target",
    type=click.Choice(list(_WHOSE)),
    default="rows",
    show_default=True,
    help="Whose labels the intervals are about.",
)
@json_option
@click.option("--plot", type=PATH, help="Also write a picture (.svg).")
@overwrite_option
@quiet_option
@text_options
@budget_option
def estimate_command(
    file: Path,
    table: Path,
    columns: tuple[str, ...],
    group_columns: dict[str, str],
    by: str | None,
    target: str,
    as_json: bool,
    plot: Path | None,
    overwrite: bool,
    quiet: bool,
    form: TextForm,
    budget: Budget,
) -> None:
    """Estimate histogram, mean and quantiles of true labels from private ones.

    FILE is the artifact that randomized the column of TABLE (Parquet, CSV or a folder of parts),
    and is verified first; a table that says another one did is refused. This is post-processing:
    it spends nothing. Exit code 1 if FILE does not verify, 2 if the input is wrong or supports no
    estimate.
    """
    if plot is not None:
        require_output(plot, endings=(".svg",), overwrite=overwrite)
    with verified(file):
        found = estimate_table(
            file,
            table,
            columns,
            by=by,
            group_columns=group_columns,
            target=cast(Target, target),
            budget=budget,
            form=form,
            progress=partial(row_progress, quiet=quiet),
        )
    estimation, groups = found.estimation, found.groups
    tell(*(f"warning: {line}" for line in found.warnings))
    title = (
        f"{table}, {', '.join(found.columns)}: {groups[0].rows:,} private labels of "
        f"{estimation.table.certificate.name}"
    )
    show(as_json, found.to_json, lambda: [title, *_in_words(estimation, groups, target)])
    if plot is not None:
        # Matplotlib takes half a second to import.
        from labeldp_compile.tools.estimate.plot import estimates_svg  # noqa: PLC0415

        write_text(plot, estimates_svg(estimation, groups, title))


def _in_words(estimation: Estimation, found: list[GroupEstimates], target: str) -> list[str]:
    lines = [f"estimates and approximate 95% intervals for {_WHOSE[target]}; nothing is spent"]
    lines += [f"no {name}: {reason}" for name, reason in estimation.refused.items()]
    lines += ["", *_groups(estimation, found)]
    for place in range(len(found[0].columns)):
        lines += ["", *_column([(group.name, group.columns[place]) for group in found])]
    if found[0].histogram is not None:
        lines += ["", *_histogram(estimation, found), _PROJECTED]
    small = sum(group.rows < MIN_ROWS for group in found)
    if small:
        lines.append(f"{small:,} with fewer than {MIN_ROWS} rows: too few rows for an interval")
    return lines


def _groups(estimation: Estimation, found: list[GroupEstimates]) -> list[str]:
    first = found[0]
    shares = [f"{q.share:.0%}" for q in first.quantiles or []]
    header = ["group", "rows", *(["mean", "low", "high"] if first.mean else []), *shares]
    rows = []
    for group in found[:_SHOWN_GROUPS]:
        cells = [_group(group.name), f"{group.rows:,}"]
        if group.mean is not None:
            cells += _interval(group.mean.at(0))
        for q in group.quantiles or []:
            ends = q.interval or (q.estimate, q.estimate)
            shown = " … ".join(dict.fromkeys(_ends(estimation, *ends)))
            cells.append(f"about {shown}" if q.interval is None else shown)
        rows.append(cells)
    lines = text_table(header, rows)
    if len(found) > _SHOWN_GROUPS:
        lines.append(f"{len(found) - _SHOWN_GROUPS:,} more groups: --json has them")
    return lines


def _ends(estimation: Estimation, low: int, high: int) -> tuple[str, str]:
    first = class_name(estimation.table, estimation.classes, low).split(" … ")[0]
    return first, class_name(estimation.table, estimation.classes, high).split(" … ")[-1]


def _histogram(estimation: Estimation, found: list[GroupEstimates]) -> list[str]:
    """The shares of all rows; of each group, too, where there is nothing else to tell of it."""
    total = found[0]
    assert total.histogram is not None and total.projected is not None
    classes = estimation.classes
    names = [class_name(estimation.table, classes, i) for i in range(classes.count)]
    told = total.mean is not None or total.quantiles
    groups = found[:1] if told or total.columns else found
    return _shares(
        "label", [(g.name, names, g.histogram, g.projected) for g in groups if g.histogram]
    )


def _column(found: list[tuple[Any, ColumnEstimates]]) -> list[str]:
    """The shares of one column of a joint label, or the means of its groups."""
    first = found[0][1]
    blocks = [(name, list(map(str, c.labels)), c.histogram, c.projected) for name, c in found]
    lines = _shares(first.name, blocks if first.mean is None else blocks[:1])
    for name, column in found[:_SHOWN_GROUPS]:
        if column.mean is not None:
            estimate, low, high = _interval(column.mean.at(0))
            of = "" if len(found) == 1 else f", {_group(name)}"
            lines.append(f"mean of {column.name}{of}: {estimate} ({low} … {high})")
    return lines


def _shares(title: str, blocks: list[tuple[Any, list[str], Any, Any]]) -> list[str]:
    """A line for each label of each block (group, labels, estimates, projected shares)."""
    grouped, left_out = len(blocks) > 1, 0
    rows: list[list[str]] = []
    for name, labels, estimates, projected in blocks:
        if len(rows) >= _SHOWN_SHARES:
            left_out += 1
            continue
        rows += [
            [
                *([_group(name)] if grouped else []),
                clipped(label, _NAME_COLUMNS),
                *_interval(estimates.at(i)),
                f"{projected[i]:.6f}",
            ]
            for i, label in enumerate(labels[:_SHOWN_LABELS])
        ]
    header = [*(["group"] if grouped else []), title, "share", "low", "high", "projected"]
    lines = text_table(header, rows, left=(0, 1) if grouped else (0,))
    more = len(blocks[0][1]) - _SHOWN_LABELS
    if more > 0:
        lines.append(f"{more:,} more labels{' of each group' * grouped}: --json has them")
    if left_out:
        lines.append(f"the shares of {left_out:,} more groups: --json has them")
    return lines


def _group(name: Any) -> str:
    return "null" if name is None else clipped(str(name), _NAME_COLUMNS)


def _interval(entry: dict[str, Any]) -> list[str]:
    ends = ["–" if entry[end] is None else f"{entry[end]:.6g}" for end in ("low", "high")]
    return [f"{entry['estimate']:.6g}", *ends]
