"""``labeldp estimate``: mean, shares and quantiles of the true labels behind private ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import click
import numpy as np
from labeldp_verify import Budget
from labeldp_verify.console.colour import Marked
from labeldp_verify.rounded import at_most, percent_at_most

from labeldp_compile.cli.command import command, verified
from labeldp_compile.cli.options import (
    PATH,
    budget_option,
    group_column_option,
    json_option,
    overwrite_option,
    private_columns_option,
    quiet_option,
    text_options,
    verbose_option,
)
from labeldp_compile.cli.output import clipped, row_progress, show, tell, text_table
from labeldp_compile.text_form import TextForm
from labeldp_compile.tools.estimate.aggregates import Aggregates, estimate_table
from labeldp_compile.tools.estimate.estimate import ColumnEstimates, Estimation, GroupEstimates
from labeldp_compile.tools.estimate.intervals import MIN_ROWS, Estimates, Target
from labeldp_compile.whole_file import require_output, write_text

_PROJECTED = "projected: the nearest shares of at least 0 that sum to 1; they have no interval"
_MAIN_GROUPS, _MAIN_SHARES, _MAIN_COLUMNS = 4, 5, 3
_SHOWN_LABELS, _SHOWN_GROUPS, _SHOWN_SHARES = 60, 60, 240
_NAME_COLUMNS = 32
_WHOSE = {
    "rows": "the true labels of these rows",
    "population": "the population that these rows were drawn from",
}


@command("estimate", "labeldp estimate build/x.onnx private.parquet --column y --by region")
@click.argument("file", type=PATH)
@click.argument("table", type=PATH)
@private_columns_option
@group_column_option
@click.option(
    "--by",
    metavar="COLUMN",
    help="Also estimate each group of rows that share a value of this column.",
)
@click.option(
    "--target",
    type=click.Choice(list(_WHOSE)),
    default="rows",
    show_default=True,
    help="What the intervals are about: these rows, or the population they were drawn from.",
)
@verbose_option
@json_option
@click.option("--plot", type=PATH, help="Also draw the estimates (.svg).")
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
    verbose: bool,
    as_json: bool,
    plot: Path | None,
    overwrite: bool,
    quiet: bool,
    form: TextForm,
    budget: Budget,
) -> None:
    """Estimate mean, histogram and quantiles of the true labels behind private ones.

    FILE is the artifact that made the private column of TABLE (Parquet, CSV or a folder of parts).
    FILE is verified first. A TABLE that notes another artifact is refused. Estimates spend nothing.

    Without --verbose, the output is a summary of at most 15 lines. Exit code 1: FILE does not
    verify. Exit code 2: the input is wrong, or it supports no estimate.
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
    tell(*(Marked(f"warning: {line}", "warning") for line in found.warnings))
    title = (
        f"{table}, {', '.join(found.columns)}: {groups[0].rows:,} private labels of "
        f"{estimation.table.certificate.name}"
    )
    show(as_json, found.to_json, lambda: _in_words(title, found, verbose=verbose))
    if plot is not None:
        # Matplotlib takes half a second to import.
        from labeldp_compile.tools.estimate.plot import estimates_svg  # noqa: PLC0415

        write_text(plot, estimates_svg(estimation, groups, title))


def _in_words(title: str, found: Aggregates, *, verbose: bool) -> list[str]:
    """Details if they are asked for, then the conclusion: shares, and the mean if there is one."""
    estimation, groups = found.estimation, found.groups
    conditions = f"approximate 95% intervals for {_WHOSE[found.target]}; estimates spend nothing"
    small = sum(group.rows < MIN_ROWS for group in groups)
    if small:
        conditions += f"; {small:,} with fewer than {MIN_ROWS} rows: too few rows for an interval"
    refused = []
    for reason in dict.fromkeys(estimation.refused.values()):
        names = [name for name, why in estimation.refused.items() if why == reason]
        refused.append(f"no {' and no '.join(names)}: {reason}")
    lines = [title, conditions, *refused, ""]
    if verbose:
        lines += [*_groups(estimation, groups, _SHOWN_GROUPS), "", *_details(estimation, groups)]
        return lines + _conclusion(", ".join(found.columns), estimation, groups[0])
    if groups[0].mean is not None:
        lines += [*_groups(estimation, groups, _MAIN_GROUPS), ""]
    if groups[0].mean is not None or groups[0].columns:
        groups = groups[:1]
    lines.append("more: --verbose shows every share and group; --json has all digits")
    for group in [*groups[1:_MAIN_GROUPS], groups[0]]:
        name = ", ".join(found.columns)
        if group is not groups[0]:
            name += f" in group {_group(group.name)}"
        lines += _conclusion(name, estimation, group)
    return lines


def _conclusion(name: str, estimation: Estimation, group: GroupEstimates) -> list[str]:
    """The largest shares, and the mean: of the label, or of each of its first columns."""
    if group.histogram is None:
        assert group.mean is not None
        return [f"mean of {name}: {_plus_minus(group.mean, 0)} ({group.rows:,} rows)"]
    parts: list[tuple[str, list[str], GroupEstimates | ColumnEstimates]] = [
        (column.name, list(map(str, column.labels)), column)
        for column in group.columns[:_MAIN_COLUMNS]
    ]
    lines = []
    for each, labels, of in parts or [(name, estimation.class_names(), group)]:
        lines.append(f"shares of {each}: {_main_shares(labels, of)} ({group.rows:,} rows)")
        if of.mean is not None:
            lines.append(f"mean of {each}: {_plus_minus(of.mean, 0)} ({group.rows:,} rows)")
    return lines


def _main_shares(labels: list[str], found: GroupEstimates | ColumnEstimates) -> str:
    """The largest shares, each with its margin of error."""
    assert found.histogram is not None and found.projected is not None
    largest = np.argsort(-found.projected, kind="stable")[:_MAIN_SHARES].tolist()
    parts = [
        f"{clipped(labels[i], _NAME_COLUMNS)}: {_plus_minus(found.histogram, i, percent=True)}"
        for i in largest
    ]
    more = len(labels) - len(parts)
    return ", ".join(parts) + (f", {more:,} more" if more else "")


def _plus_minus(found: Estimates, index: int, *, percent: bool = False) -> str:
    """An estimate and its 95% margin of error, which is the longer side of the interval."""
    value, low, high = (float(a[index]) for a in (found.value, found.low, found.high))
    shown = f"{value:.1%}" if percent else f"{value:.4g}"
    if math.isnan(low):
        return shown
    margin = max(high - value, value - low)
    return f"{shown} ± {percent_at_most(margin) if percent else at_most(margin, 2)}"


def _groups(estimation: Estimation, found: list[GroupEstimates], most: int) -> list[str]:
    first = found[0]
    shares = [f"{q.share:.0%}" for q in first.quantiles or []]
    header = ["group", "rows", *(["mean", "low", "high"] if first.mean else []), *shares]
    names = estimation.class_names() if shares else []
    rows = []
    for group in found[:most]:
        cells = [_group(group.name), f"{group.rows:,}"]
        if group.mean is not None:
            cells += _interval(group.mean.at(0))
        for q in group.quantiles or []:
            low, high = q.interval or (q.estimate, q.estimate)
            ends = names[low].split(" … ")[0], names[high].split(" … ")[-1]
            about = "about " if q.interval is None else ""
            cells.append(about + " … ".join(dict.fromkeys(ends)))
        rows.append(cells)
    lines = text_table(header, rows)
    if len(found) > most:
        lines.append(f"{len(found) - most:,} more groups: --json has them")
    return lines


def _details(estimation: Estimation, found: list[GroupEstimates]) -> list[str]:
    """The shares and means of every column, and the shares of all labels or combinations."""
    lines: list[str] = []
    for place, first in enumerate(found[0].columns):
        columns = [(group.name, group.columns[place]) for group in found]
        numbers = first.mean is not None
        lines += _shares(
            first.name, list(map(str, first.labels)), columns[: 1 if numbers else None]
        )
        for name, column in columns[1:_SHOWN_GROUPS]:
            if column.mean is not None:
                estimate, low, high = _interval(column.mean.at(0))
                lines.append(f"mean of {first.name}, {_group(name)}: {estimate} ({low} … {high})")
        lines.append("")
    total = found[0]
    if total.histogram is not None:
        # The shares of each group only where a group has nothing else.
        alone = total.mean is not None or total.quantiles or total.columns
        groups = [(group.name, group) for group in (found[:1] if alone else found)]
        lines += [*_shares("label", estimation.class_names(), groups), _PROJECTED, ""]
    return lines


def _shares(
    title: str,
    labels: list[str],
    blocks: Sequence[tuple[Any, GroupEstimates | ColumnEstimates]],
) -> list[str]:
    """A line for each label of each block (group, estimates)."""
    grouped, shown = len(blocks) > 1, labels[:_SHOWN_LABELS]
    fitting = blocks[: -(-_SHOWN_SHARES // len(shown))]
    rows = []
    for group, found in fitting:
        assert found.histogram is not None and found.projected is not None
        for i, label in enumerate(shown):
            ends = [*_interval(found.histogram.at(i)), f"{found.projected[i]:.6f}"]
            rows.append(
                [*([_group(group)] if grouped else []), clipped(label, _NAME_COLUMNS), *ends]
            )
    header = [*(["group"] if grouped else []), title, "share", "low", "high", "projected"]
    lines = text_table(header, rows, left=(0, 1) if grouped else (0,))
    if len(shown) < len(labels):
        more = len(labels) - len(shown)
        lines.append(f"{more:,} more labels{' of each group' if grouped else ''}: --json has them")
    if len(fitting) < len(blocks):
        more = len(blocks) - len(fitting)
        lines.append(f"the shares of {more:,} more groups: --json has them")
    return lines


def _group(name: Any) -> str:
    return "null" if name is None else clipped(str(name), _NAME_COLUMNS)


def _interval(entry: dict[str, Any]) -> list[str]:
    ends = ["–" if entry[end] is None else f"{entry[end]:.6g}" for end in ("low", "high")]
    return [f"{entry['estimate']:.6g}", *ends]
