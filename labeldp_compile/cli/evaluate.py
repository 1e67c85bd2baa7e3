"""``labeldp evaluate``: how good models are, from private labels, or from true ones for an ε."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
from labeldp_learn.toolkit import ALL_ROWS
from labeldp_verify import Budget
from labeldp_verify.printable import Marked, at_least, at_most

from labeldp_compile.cli.command import clipped, command, show, tell, text_table, verified
from labeldp_compile.cli.options import (
    PATH,
    budget_option,
    decimal_of,
    group_column_option,
    json_option,
    private_columns_option,
    require_form,
    text_options,
    verbose_option,
)
from labeldp_compile.errors import InputError
from labeldp_compile.estimates.counts import texts_of
from labeldp_compile.evaluate import Evaluation, Released, evaluate_tables, release_tables
from labeldp_compile.evaluate.release import CONDITION, LedgerPlace
from labeldp_compile.ledger.entries import require_name
from labeldp_compile.tabular.formats import TextForm
from labeldp_compile.tabular.provenance import NOT_SHOWN

_NAMES, _LINES = 32, 7
_RELEASE, _ESTIMATES = "a --release", "estimates from private labels"
# Names of the options of each form of an evaluation.
_FORMS = {
    _RELEASE: ("ledger", "data_set", "data_version", "least"),
    _ESTIMATES: ("by", "difference", "group_columns", "unnoted"),
}


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
    "Default: prediction, or probability_LABEL for each label, as labeldp predict writes.",
)
@click.option("--metric", "metrics", multiple=True, help="Default: all that fit.")
@private_columns_option
@group_column_option
@click.option("--by", metavar="COLUMN", help="Also evaluate each group of a column of PRIVATE.")
@click.option(
    "--person",
    metavar="COLUMN",
    help="The column of PRIVATE that says whose row it is; no row may be without a person.",
)
@click.option(
    "--difference",
    metavar="SIZE",
    help="Also say how many rows would settle a difference of this size.",
)
@click.option(
    "--release",
    metavar="EPSILON",
    help="PRIVATE holds true labels, and EPSILON is spent once on noisy metrics of all models. "
    "ARTIFACT may then be a spec (.yaml).",
)
@click.option(
    "--unnoted",
    is_flag=True,
    help="Take private labels of which no note says that ARTIFACT made them, as of a CSV file.",
)
@click.option("--ledger", metavar="FILE", help="--release: the budget ledger that books EPSILON.")
@click.option("--data-set", metavar="NAME", help="--ledger: the data set whose budget it is.")
@click.option("--data-version", metavar="NAME", help="--ledger: the version of these labels.")
@click.option(
    "--least-probability",
    "least",
    metavar="P",
    default="0.001",
    show_default=True,
    help="--release: smaller probabilities count as P in the log loss.",
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
    release: str | None,
    unnoted: bool,
    ledger: str | None,
    data_set: str | None,
    data_version: str | None,
    least: str,
    verbose: bool,
    as_json: bool,
    form: TextForm,
    budget: Budget,
) -> None:
    """Estimate how good models are, from private labels that they were not trained on.

    ARTIFACT made the private column of PRIVATE; without a note that says so, give --unnoted.
    PREDICTIONS has the same rows in the same order; it may be the same file. Estimates are unbiased
    for the true labels and spend nothing. They are wrong if PREDICTIONS come from a model that saw
    these private labels.

    With --release, the owner of the true labels evaluates: PRIVATE holds true labels, and noisy
    means over its rows are released for an ε. A --ledger books it, and gives the same answer again
    without spending.

    Exit code 1: ARTIFACT does not verify, or it would go over budget. Exit code 2: the input is
    wrong, or it supports no estimate.
    """
    require_form(_ESTIMATES if release is None else _RELEASE, _FORMS)
    place = _place(ledger, data_set, data_version)
    if release is not None:
        with verified(artifact):
            released = release_tables(
                artifact,
                predictions,
                private,
                models,
                metrics,
                epsilon=Fraction(_within("--release", release, None)),
                least=float(_within("--least-probability", least, Decimal(1))),
                column=columns,
                person=person,
                place=place,
                budget=budget,
                form=form,
                say=tell,
            )
        show(as_json, released.to_json, lambda: _released(released, verbose=verbose))
        return
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
            unnoted=unnoted,
        )
    tell(*(Marked(f"warning: {line}", "warning") for line in found.warnings))
    show(as_json, found.to_json, lambda: _in_words(found, size, verbose=verbose))


def _place(
    ledger: str | None, data_set: str | None, data_version: str | None
) -> LedgerPlace | None:
    """Where a release is booked. Raises InputError for options without the others."""
    if ledger is None and data_set is None and data_version is None:
        return None
    if ledger is None or data_set is None or data_version is None:
        raise InputError("--ledger, --data-set and --data-version belong together: give all three")
    require_name("--data-set", data_set)
    require_name("--data-version", data_version)
    return LedgerPlace(ledger, data_set, data_version)


def _within(option: str, text: str, below: Decimal | None) -> Decimal:
    """A number above 0, and below another one if there is one. Raises InputError."""
    number = decimal_of(option, text)
    if number <= 0 or (below is not None and (number >= below or not float(number))):
        end = "" if below is None else f" and below {below}"
        raise InputError(f"{option}: must be above 0{end}")
    return number


def _released(found: Released, *, verbose: bool) -> list[str]:
    """A table of metrics, what was spent and on which condition, and the first metric last."""
    whose = "each label" if found.unit == "label" else "all labels of a person"
    booked = "booked in no ledger: another run spends it again"
    if found.ledger is not None:
        booked = f"booked in {found.ledger}"
    lines = [
        f"{found.rows:,} true labels of {found.name}: ε = {at_most(found.epsilon)} for {whose} "
        f"({booked})",
        "95% intervals for these rows, from the size of the noise; losses are at most their bound",
        "",
        *_metrics(found.measured, verbose=verbose, last="bound"),
        "",
        f"condition: {CONDITION}",
    ]
    last = _first(found.measured)
    name = clipped(last.model, 2 * _NAMES)
    return [*lines, f"{last.metric} of {name}: {_plus_minus(last)} (these rows)"]


def _metrics(measured: Sequence[Any], *, verbose: bool, last: str | None = None) -> list[str]:
    """A table of the metrics, or of the first ones; ``last`` is one more number of each."""
    shown = measured if verbose else measured[:_LINES]
    numbers = ["estimate", "low", "high", *([last] if last else [])]
    heads, rows = ["metric", "model", *numbers], []
    for m in shown:
        digits, more = _digits(m), [f"{getattr(m, last):.5g}"] if last else []
        ends = at_least(m.low, digits), at_most(m.high, digits)
        name = clipped(m.model, 2 * _NAMES)
        rows.append([m.metric, name, f"{m.value:.{digits}g}", *ends, *more])
    if any(getattr(one, "group", None) is not None for one in measured):
        heads.insert(0, "group")
        for m, row in zip(shown, rows, strict=True):
            group = ALL_ROWS if m.group is None else texts_of((m.group,))[0]
            row.insert(0, clipped(group, _NAMES))
    lines = text_table(heads, rows, left=range(len(heads) - len(numbers)))
    if len(shown) < len(measured):
        lines.append(f"{len(measured) - len(shown):,} more: --verbose or --json shows them")
    return lines


def _first(measured: Sequence[Any]) -> Any:
    """Of the first metric: the difference of the first two models, or the only model."""
    of_first = [m for m in measured if m.metric == measured[0].metric]
    return next((m for m in of_first if " − " in m.model), of_first[0])


def _in_words(found: Evaluation, difference: Decimal | None, *, verbose: bool) -> list[str]:
    """A table of metrics, and the conclusion for all rows last."""
    left = f"; {found.left_out:,} rows without one are left out" if found.left_out else ""
    lines = [
        f"{found.rows:,} private labels of {found.artifact}{left}",
        "approximate 95% intervals for the population of these rows; estimates spend nothing",
        "",
        *_metrics(found.measured, verbose=verbose),
    ]
    for model, bins in found.calibration.items() if verbose else ():
        name = clipped(model, _NAMES)
        lines += ["", f"calibration of {name}, from its smallest predictions:"]
        numbers = ["predicted", "observed", "low", "high", "lift"]
        rows = [[*(f"{getattr(b, n):.4g}" for n in numbers), f"{b.rows:,}"] for b in bins]
        lines += text_table([*numbers, "rows"], rows, left=())
    lines += ["", *_conclusion(found, difference)]
    if not found.noted:
        lines[-1] += f" ({NOT_SHOWN})"
    return lines


def _conclusion(found: Evaluation, difference: Decimal | None) -> list[str]:
    """Of the first metric, and the rows that settle a difference."""
    last = _first([m for m in found.measured if m.group is None])
    lines = []
    if difference is not None:
        rows = "not known: these rows are too few for an interval"
        if math.isfinite(last.error):
            rows = f"about {last.rows_to_settle(float(difference)):,} rows"
        lines.append(f"to settle a difference of {difference:g} in {last.metric}: {rows}")
    what, rows = _plus_minus(last), f"({last.rows:,} rows)"
    if " − " not in last.model:
        return [*lines, f"{last.metric} of {clipped(last.model, _NAMES)}: {what} {rows}"]
    zero = "without" if last.low > 0 or last.high < 0 else "with"
    name = clipped(last.model, 2 * _NAMES)
    return [*lines, f"{last.metric}, {name}: {what}, a 95% interval {zero} 0 {rows}"]


def _plus_minus(measured: Any) -> str:
    """A metric and its margin of error, which is the longer side of the interval."""
    shown = f"{measured.value:.{_digits(measured)}g}"
    margin = max(measured.high - float(shown), float(shown) - measured.low)
    return f"{shown} ± {at_most(margin, 2)}"


def _digits(measured: Any) -> int:
    """How many significant digits a metric has in words: its interval must not vanish in them."""
    if not math.isfinite(measured.high - measured.low):
        return 5
    size = max(abs(measured.low), abs(measured.high))
    wide = (measured.high - measured.low) / size if size else 1.0
    return min(max(5, 2 - math.floor(math.log10(wide))), 15) if wide > 0 else 15
