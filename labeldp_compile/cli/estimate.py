"""``labeldp estimate``: mean, shares and quantiles of the true labels behind private ones."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import click
import numpy as np
from labeldp_learn.toolkit import (
    ALL_ROWS,
    MIN_ROWS,
    ColumnEstimates,
    Estimates,
    Estimation,
    GroupEstimates,
    Target,
)
from labeldp_verify import Budget
from labeldp_verify.claims import nulls_counted_as
from labeldp_verify.opening import open_artifact
from labeldp_verify.printable import Marked, at_most, percent_at_most

from labeldp_compile.cli.command import (
    clipped,
    command,
    row_progress,
    show,
    tell,
    text_table,
    verified,
)
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
from labeldp_compile.estimates.aggregates import (
    Aggregates,
    estimate_tables,
    require_free_names,
    rows_of,
    schema_of,
)
from labeldp_compile.estimates.counts import texts_of
from labeldp_compile.tabular.csv_sink import in_batches, write_new_table
from labeldp_compile.tabular.formats import TextForm
from labeldp_compile.whole_file import require_output

_PROJECTED = "projected: the nearest shares of at least 0 that sum to 1; they have no interval"
_NOTHING = "nothing is known"
_SUMMARY = 15  # lines
_MAIN_GROUPS, _MAIN_SHARES, _MAIN_COLUMNS, _GROUP_SHARES = 5, 5, 3, 3
_SHOWN_LABELS, _SHOWN_GROUPS, _SHOWN_SHARES = 60, 60, 240
_NAME_COLUMNS = 32
_WHOSE = {
    "rows": "the true labels of these rows",
    "population": "the population that these rows were drawn from",
}


@command(
    "estimate",
    "labeldp estimate build/x.onnx private.parquet --column y --by region --by month",
    "labeldp estimate may.onnx may.parquet june.onnx june.parquet --csv both.csv",
)
@click.argument("file", type=PATH)
@click.argument("table", type=PATH)
@click.argument("more", nargs=-1, type=PATH, metavar="[FILE TABLE]...")
@private_columns_option
@group_column_option
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="Also estimate each group of rows that share a value of this column. Repeat it for the "
    "combinations of several columns.",
)
@click.option(
    "--target",
    type=click.Choice(list(_WHOSE)),
    default="rows",
    show_default=True,
    help="The intervals are about these rows, or the population they were drawn from.",
)
@click.option(
    "--simultaneous",
    is_flag=True,
    help="Make all intervals hold at once, at 95% together; they are wider (Bonferroni).",
)
@verbose_option
@json_option
@click.option(
    "--csv",
    type=PATH,
    help="Also write all estimates as one long table (.csv). Text that a spreadsheet would run as "
    "a formula gets an apostrophe in front.",
)
@click.option("--parquet", type=PATH, help="The same table as .parquet.")
@overwrite_option
@quiet_option
@text_options
@budget_option
def estimate_command(
    file: Path,
    table: Path,
    more: tuple[Path, ...],
    columns: tuple[str, ...],
    group_columns: dict[str, str],
    by: tuple[str, ...],
    target: str,
    simultaneous: bool,
    verbose: bool,
    as_json: bool,
    csv: Path | None,
    parquet: Path | None,
    overwrite: bool,
    quiet: bool,
    form: TextForm,
    budget: Budget,
) -> None:
    """Estimate mean, histogram and quantiles of the true labels behind private ones.

    FILE is the artifact that made the private column of TABLE (Parquet, CSV or a folder of parts).
    FILE is verified first. A TABLE that notes another artifact is refused. Estimates spend nothing.

    Several artifacts with a TABLE each are estimated together; no row may be in two tables. A
    folder that is the TABLE of several artifacts is divided by the notes of its parts.

    Without --verbose, the output is a summary of at most 15 lines. Exit code 1: FILE does not
    verify. Exit code 2: the input is wrong, or it supports no estimate.
    """
    if len(more) % 2:
        raise click.UsageError(f"{more[-1]}: an artifact needs its own TABLE after it")
    files, tables = (file, *more[::2]), (table, *more[1::2])
    outputs = (csv, ".csv"), (parquet, ".parquet")
    for output, ending in outputs:
        require_output(output, *files, *tables, endings=(ending,), overwrite=overwrite)
    if csv or parquet:
        require_free_names(by)
    decoded = []
    for one in files:
        with verified(one):
            decoded.append(open_artifact(one, budget))
    found = estimate_tables(
        decoded,
        list(zip(files, tables, strict=True)),
        columns,
        by=by,
        group_columns=group_columns,
        target=cast(Target, target),
        simultaneous=simultaneous,
        form=form,
        progress=partial(row_progress, quiet=quiet),
    )
    estimation, groups = found.estimation, found.groups
    tell(*(Marked(f"warning: {line}", "warning") for line in found.warnings))
    names = dict.fromkeys(artifact.certificate.name for artifact in estimation.artifacts)
    title = (
        f"{_some(dict.fromkeys(map(str, tables)))}, {', '.join(found.columns)}: "
        f"{groups[0].rows:,} private labels of {_some(names)}"
    )
    show(as_json, found.to_json, lambda: _in_words(title, found, verbose=verbose))
    for path in (csv, parquet):
        if path is not None:
            schema = schema_of(found)
            rows = write_new_table(path, schema, in_batches(schema, rows_of(found)))
            if not quiet:
                tell(f"{path}: {rows:,} rows")


def _some(names: Iterable[str]) -> str:
    """Names in a row; of many, only the first ones."""
    first, *others = names
    return first if not others else f"{first} and {len(others):,} more"


def _in_words(title: str, found: Aggregates, *, verbose: bool) -> list[str]:
    """Details if they are asked for, then the conclusion: shares, and the mean if there is one."""
    estimation, groups = found.estimation, found.groups
    conditions = f"approximate 95% intervals for {_WHOSE[found.target]}; estimates spend nothing"
    if together := found.confidence.together:
        conditions += f"; all {together:,} intervals hold at once (Bonferroni)"
    rules = dict.fromkeys(nulls_counted_as(one.label) for one in estimation.artifacts)
    conditions += "; " + " or ".join(rules)
    small = sum(group.rows < MIN_ROWS for group in groups)
    if small:
        what = "" if groups[0].rows < MIN_ROWS else f"{small:,} group{'s' * (small > 1)} with "
        conditions += f"; {what}fewer than {MIN_ROWS} rows: too few rows for an interval"
    refused = []
    for reason in dict.fromkeys(estimation.refused.values()):
        names = [name for name, why in estimation.refused.items() if why == reason]
        what = "this artifact supports means only"
        if "histogram" not in names:
            what = f"no {' and no '.join(names)}"
        refused.append(f"{what}: {reason}")
    lines = [title, conditions, *refused, ""]
    conclusion = _conclusion(", ".join(found.columns), estimation, groups[0])
    if verbose:
        details = _details(estimation, groups, list(found.by))
        return [*lines, *_groups(found, _SHOWN_GROUPS), "", *details, *conclusion]
    if groups[0].mean is not None or len(groups) > 1:
        # With a header, a line for the groups that are left out, an empty one, and the hint.
        most = min(_SUMMARY - len(lines) - len(conclusion) - 4, _MAIN_GROUPS)
        lines += [*_groups(found, max(most, 1)), ""]
    lines.append("more: --verbose shows every share and group; --json has all digits")
    return lines + conclusion


def _conclusion(name: str, estimation: Estimation, group: GroupEstimates) -> list[str]:
    """The largest shares, and the mean: of the label, or of each of its first columns."""
    whole: Sequence[Any] = estimation.table.domain.listed
    if group.histogram is None:
        assert group.mean is not None
        return [f"mean of {name}: {_mean(group.mean, whole)} ({group.rows:,} rows)"]
    parts: list[tuple[str, list[str], GroupEstimates | ColumnEstimates]] = [
        (column.name, list(map(str, column.labels)), column)
        for column in group.columns[:_MAIN_COLUMNS]
    ]
    lines = []
    for each, labels, of in parts or [(name, estimation.class_names(), group)]:
        lines.append(f"shares of {each}: {_main_shares(labels, of)} ({group.rows:,} rows)")
        if of.mean is not None:
            ends = of.labels if isinstance(of, ColumnEstimates) else whole
            lines.append(f"mean of {each}: {_mean(of.mean, ends)} ({group.rows:,} rows)")
    return lines


def _main_shares(
    labels: list[str], found: GroupEstimates | ColumnEstimates, most: int = _MAIN_SHARES
) -> str:
    """The largest shares, each with its margin of error."""
    assert found.histogram is not None and found.projected is not None
    shares = found.histogram
    if (shares.high - shares.low >= 1).all():
        return f"{_NOTHING}: every 95% interval is wider than 0% … 100%"
    largest = np.argsort(-found.projected, kind="stable")[:most].tolist()
    parts = [f"{clipped(labels[i], _NAME_COLUMNS)}: {_plus_minus(shares, i, 1)}" for i in largest]
    more = len(labels) - len(parts)
    return ", ".join(parts) + (f", {more:,} more" if more else "")


def _mean(found: Estimates, labels: Sequence[Any]) -> str:
    """The mean of numbers that are among these labels, in increasing order."""
    return _plus_minus(found, 0, float(labels[-1]) - float(labels[0]), percent=False)


def _plus_minus(found: Estimates, index: int, span: float, *, percent: bool = True) -> str:
    """An estimate and its 95% margin of error, which is the longer side of the interval.

    An interval as wide as the ``span`` of all possible values says nothing.
    """
    value, low, high = (float(a[index]) for a in (found.value, found.low, found.high))
    shown = f"{value:.1%}" if percent else f"{value:.4g}"
    if math.isnan(low):
        return shown
    reach = max(high - value, value - low)
    margin = percent_at_most(reach) if percent else at_most(reach, 2)
    return f"{_NOTHING} (± {margin})" if high - low >= span else f"{shown} ± {margin}"


def _groups(of: Aggregates, most: int) -> list[str]:
    """A line for each group; if there are several, with the largest shares of each."""
    found, by = of.groups, list(of.by) or ["group"]
    first, lists_shares = found[0], len(found) > 1 and found[0].histogram is not None
    quantiles = [f"{q.share:.0%}" for q in first.quantiles or []]
    header = [*_header(by), "rows", *(["mean", "low", "high"] if first.mean else []), *quantiles]
    names = of.estimation.class_names()
    rows = []
    most += len(found) == most + 1  # a line that says so is as long
    for group in found[:most]:
        cells = [*_cell(group, len(by)), f"{group.rows:,}"]
        if group.mean is not None:
            cells += _interval(group.mean.at(0))
        for q in group.quantiles or []:
            low, high = q.interval or (q.estimate, q.estimate)
            ends = names[low].split(" … ")[0], names[high].split(" … ")[-1]
            about = "about " if q.interval is None else ""
            cells.append(about + " … ".join(dict.fromkeys(ends)))
        if lists_shares:
            cells.append(_main_shares(names, group, _GROUP_SHARES))
        rows.append(cells)
    left = list(range(len(by)))
    if lists_shares:
        left.append(len(header))
        header.append("largest shares")
    lines = text_table(header, rows, left=left)
    if len(found) > most:
        lines.append(f"{len(found) - most:,} more groups: --json has them")
    return lines


def _details(estimation: Estimation, found: list[GroupEstimates], by: list[str]) -> list[str]:
    """The shares and means of every column, and the shares of all labels or combinations."""
    lines: list[str] = []
    for place, first in enumerate(found[0].columns):
        columns = [(group, group.columns[place]) for group in found]
        numbers = first.mean is not None
        lines += _shares(
            first.name, list(map(str, first.labels)), columns[: 1 if numbers else None], by
        )
        for group, column in columns[1:_SHOWN_GROUPS]:
            if column.mean is not None:
                estimate, low, high = _interval(column.mean.at(0))
                name = ", ".join(_cell(group, len(by)))
                lines.append(f"mean of {first.name}, {name}: {estimate} ({low} … {high})")
        lines.append("")
    total = found[0]
    if total.histogram is not None:
        # The shares of each group only where a group has nothing else.
        alone = total.mean is not None or total.quantiles or total.columns
        groups = [(group, group) for group in (found[:1] if alone else found)]
        lines += [*_shares("label", estimation.class_names(), groups, by), _PROJECTED, ""]
    return lines


def _shares(
    title: str,
    labels: list[str],
    blocks: Sequence[tuple[GroupEstimates, GroupEstimates | ColumnEstimates]],
    by: list[str],
) -> list[str]:
    """A line for each label of each block (group, estimates)."""
    grouped, shown = by if len(blocks) > 1 else [], labels[:_SHOWN_LABELS]
    fitting = blocks[: -(-_SHOWN_SHARES // len(shown))]
    rows = []
    for group, found in fitting:
        assert found.histogram is not None and found.projected is not None
        for i, label in enumerate(shown):
            ends = [*_interval(found.histogram.at(i)), f"{found.projected[i]:.6f}"]
            rows.append([*_cell(group, len(grouped)), clipped(label, _NAME_COLUMNS), *ends])
    header = [*_header([*grouped, title]), "share", "low", "high", "projected"]
    lines = text_table(header, rows, left=range(len(grouped) + 1))
    if len(shown) < len(labels):
        more = len(labels) - len(shown)
        lines.append(f"{more:,} more labels{' of each group' if grouped else ''}: --json has them")
    if len(fitting) < len(blocks):
        more = len(blocks) - len(fitting)
        groups = "groups" if more > 1 else "group"
        lines.append(f"the shares of {more:,} more {groups}: --json has them")
    return lines


def _header(names: Iterable[str]) -> list[str]:
    return [clipped(name, _NAME_COLUMNS) for name in names]


def _cell(group: GroupEstimates, columns: int) -> list[str]:
    """The cells of a group in as many columns of a table; only the first is of all rows."""
    values = [clipped(text, _NAME_COLUMNS) for text in texts_of(group.cell)]
    return (values or [ALL_ROWS, *[""] * columns])[:columns]


def _interval(entry: dict[str, Any]) -> list[str]:
    ends = ["–" if entry[end] is None else f"{entry[end]:.6g}" for end in ("low", "high")]
    return [f"{entry['estimate']:.6g}", *ends]
