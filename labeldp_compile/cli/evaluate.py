"""``labeldp evaluate``: how good models are, from private labels alone."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from labeldp_verify import Budget

from labeldp_compile.cli.command import command, verified
from labeldp_compile.cli.options import (
    PATH,
    budget_option,
    decimal_of,
    group_column_option,
    json_option,
    private_columns_option,
    text_options,
    verbose_option,
)
from labeldp_compile.cli.output import clipped, show, text_table
from labeldp_compile.errors import InputError
from labeldp_compile.text_form import TextForm
from labeldp_compile.tools.evaluate import Evaluation, evaluate_tables

_NAMES, _LINES = 32, 7


@command("evaluate", "labeldp evaluate build/x.onnx predicted.parquet private.parquet")
@click.argument("artifact", type=PATH)
@click.argument("predictions", type=PATH)
@click.argument("private", type=PATH)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="COLUMN",
    help="A column of PREDICTIONS; PREFIX* has one for each label. Repeat it to compare models. "
    "Default: what labeldp predict writes.",
)
@click.option("--metric", "metrics", multiple=True, help="Default: all that fit.")
@private_columns_option
@group_column_option
@click.option("--by", metavar="COLUMN", help="Also evaluate each group of a column of PRIVATE.")
@click.option("--person", metavar="COLUMN", help="The column of PRIVATE that says whose row it is.")
@click.option(
    "--difference",
    metavar="SIZE",
    help="Also say how many rows would settle a difference of this size.",
)
@verbose_option
@json_option
@text_options
@budget_option
def evaluate_command(
    artifact: Path,
    predictions: Path,
    private: Path,
    models: tuple[str, ...],
    metrics: tuple[str, ...],
    columns: tuple[str, ...],
    group_columns: dict[str, str],
    by: str | None,
    person: str | None,
    difference: str | None,
    verbose: bool,
    as_json: bool,
    form: TextForm,
    budget: Budget,
) -> None:
    """Estimate how good models are, from private labels that they were not trained on.

    ARTIFACT made the private column of PRIVATE. PREDICTIONS has the same rows in the same order; it
    may be the same file. Estimates are unbiased for the true labels and spend nothing. They are
    wrong if PREDICTIONS come from a model that saw these private labels. Needs labeldp-learn.

    Exit code 1: ARTIFACT does not verify. Exit code 2: the input is wrong, or it supports no
    estimate.
    """
    size = None if difference is None else decimal_of("--difference", difference)
    if size is not None and size <= 0:
        raise InputError("--difference: must be positive")
    with verified(artifact):
        found = evaluate_tables(
            artifact,
            predictions,
            private,
            models,
            metrics,
            column=columns,
            by=by,
            person=person,
            group_columns=group_columns,
            budget=budget,
            form=form,
        )
    show(as_json, found.to_json, lambda: _in_words(found, size, verbose=verbose))


def _in_words(found: Evaluation, difference: Decimal | None, *, verbose: bool) -> list[str]:
    """A table of metrics, and the conclusion for all rows last."""
    lines = [
        f"{found.rows:,} private labels of {found.artifact}",
        "approximate 95% intervals for the population of these rows; estimates spend nothing",
        "",
    ]
    grouped = any(one.group is not None for one in found.measured)
    shown = found.measured if verbose else found.measured[:_LINES]
    rows = [
        [
            *(
                [clipped("all rows" if m.group is None else str(m.group), _NAMES)]
                if grouped
                else []
            ),
            m.metric,
            clipped(m.model, 2 * _NAMES),
            *(f"{value:.5g}" for value in (m.value, m.low, m.high)),
        ]
        for m in shown
    ]
    header = [*(["group"] if grouped else []), "metric", "model", "estimate", "low", "high"]
    lines += text_table(header, rows, left=range(len(header) - 3))
    if len(shown) < len(found.measured):
        lines.append(f"{len(found.measured) - len(shown):,} more: --verbose or --json shows them")
    if verbose:
        for model, bins in found.calibration.items():
            lines += [
                "",
                f"calibration of {clipped(model, _NAMES)}, from its smallest predictions:",
            ]
            lines += text_table(
                ["predicted", "observed", "low", "high", "lift", "rows"],
                [
                    [
                        *(f"{x:.4g}" for x in (b.predicted, b.observed, b.low, b.high, b.lift)),
                        f"{b.rows:,}",
                    ]
                    for b in bins
                ],
                left=(),
            )
    return [*lines, "", *_conclusion(found, difference)]


def _conclusion(found: Evaluation, difference: Decimal | None) -> list[str]:
    """Of the first metric: the difference of the first two models, or the only model."""
    whole = [m for m in found.measured if m.group is None]
    of_first = [m for m in whole if m.metric == whole[0].metric]
    pairs = [m for m in of_first if " − " in m.model]
    last: Any = pairs[0] if pairs else of_first[0]
    lines = []
    if difference is not None:
        lines.append(
            f"to settle a difference of {difference:g} in {last.metric}: about "
            f"{last.rows_to_settle(float(difference)):,} rows"
        )
    margin = f"{last.value:.5g} ± {last.high - last.value:.2g}"
    if not pairs:
        return [
            *lines,
            f"{last.metric} of {clipped(last.model, _NAMES)}: {margin} ({last.rows:,} rows)",
        ]
    settled = "settled" if last.low > 0 or last.high < 0 else "not settled"
    name = clipped(last.model, 2 * _NAMES)
    return [*lines, f"{last.metric}, {name}: {margin}: {settled} ({last.rows:,} rows)"]
