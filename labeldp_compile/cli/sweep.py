"""``labeldp sweep``: every mechanism over a range of ε, as a table and a picture."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from labeldp_compile.cli.command import command
from labeldp_compile.cli.options import (
    PATH,
    json_option,
    overwrite_option,
    quiet_option,
    test_seed_option,
)
from labeldp_compile.cli.output import complain, observing, show, text_table
from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms import KINDS as MECHANISMS
from labeldp_compile.tools.sweep.sweep import DEFAULT_EPSILONS, Sweep, exact_epsilons, sweep_spec
from labeldp_compile.tools.sweep.table import (
    BEST,
    FRONTIER_HEADER,
    by_epsilon,
    cells,
    frontier_cells,
    frontier_title,
    header,
    missing_by_reason,
    notes,
    remark,
)
from labeldp_compile.whole_file import require_output, write_text


@command(
    "sweep", "labeldp sweep specs/doctor-visits.yaml --epsilon 1,4 --spend-prior -o sweep.html"
)
@click.argument("spec", type=PATH)
@click.option(
    "--epsilon",
    "epsilons",
    metavar="ε,ε,…",
    help=f"Default: {','.join(DEFAULT_EPSILONS)} and that of the spec.",
)
@click.option(
    "--mechanisms",
    metavar="NAME,…",
    shell_complete=lambda ctx, parameter, start: _mechanisms_after(start),
    help="Default: all that apply; rr_top_k:K names its k.",
)
@json_option
@click.option(
    "-o", "--output", type=PATH, help="Also write a page (.html) with the picture and the table."
)
@overwrite_option
@click.option(
    "--bias-frontier", "with_frontier", is_flag=True, help="Add the price of unbiasedness."
)
@click.option("--spend-prior", "spend", is_flag=True, help="Estimate a private prior, once.")
@quiet_option
@test_seed_option
def sweep_command(
    spec: Path,
    epsilons: str | None,
    mechanisms: str | None,
    as_json: bool,
    output: Path | None,
    overwrite: bool,
    with_frontier: bool,
    spend: bool,
    quiet: bool,
    test_seed: int | None,
) -> None:
    """Compare all mechanisms for the label, loss and prior of SPEC.

    Every point is compiled and verified, but only what -o names is written. A private prior is
    estimated once for all points, and only with --spend-prior.
    """
    if output is not None:
        require_output(output, endings=(".html",), overwrite=overwrite)
    with observing("counting labels", quiet=quiet, say=complain) as observer:
        sweep = sweep_spec(
            spec,
            None if epsilons is None else _totals(epsilons),
            None if mechanisms is None else mechanisms.split(","),
            bias_frontier=with_frontier,
            spend_prior=spend,
            test_seed=test_seed,
            observer=observer,
        )
    show(as_json, sweep.to_json, lambda: _in_words(sweep))
    if output is not None:  # last: a full disk must not swallow what a prior was spent on
        # Matplotlib takes half a second to import: only those who want a picture wait for it.
        from labeldp_compile.tools.sweep.plot import sweep_page  # noqa: PLC0415

        write_text(output, sweep_page(sweep))


def _mechanisms_after(start: str) -> list[str]:
    """The lists that a list of mechanisms can become, with one name more."""
    before, comma, last = start.rpartition(",")
    return [before + comma + name for name in MECHANISMS if name.startswith(last)]


def _totals(text: str) -> list[Fraction]:
    try:
        return exact_epsilons(text.split(","))
    except InputError as error:
        raise InputError(f"--epsilon: {error}") from None


def _in_words(sweep: Sweep) -> list[str]:
    spec = sweep.spec
    how = "is spent once for all points, by each run that reads the labels"
    paid = f"; its ε₁ = {float(sweep.spent):g} {how}" if sweep.spent else ""
    lines = [
        f"{spec.name}: {spec.domain.size:,} labels, loss: {spec.loss}, "
        f"goal: {spec.goal}, prior: {sweep.prior_in_words}{paid}"
    ]
    if sweep.insecure:
        lines.append(sweep.insecure)
    rows, marks = [], []
    for epsilon, points in by_epsilon(sweep):
        for point in points:
            rows.append(cells(sweep, point))
            best = f"{BEST} " if point is sweep.best(epsilon) else ""
            marks.append((epsilon, best + remark(sweep, point)))
    table = text_table(header(sweep), rows)
    width = max(map(len, table))
    shown = None
    for text, (epsilon, mark) in zip(table[1:], marks, strict=True):
        if epsilon != shown:
            lines += ["", f"ε = {epsilon:g}", table[0]]
            shown = epsilon
        lines.append(f"{text:<{width}} {mark}".rstrip())
    lines += ["", *notes(sweep)]
    lines += [
        f"not at ε = {epsilon:g}: {', '.join(names)}: {reason}"
        for epsilon, reason, names in missing_by_reason(sweep)
    ]
    lines += [f"left out: {mechanism}: {reason}" for mechanism, reason in sweep.left_out]
    return [*lines, *_frontier(sweep)]


def _frontier(sweep: Sweep) -> list[str]:
    lines = []
    for line in sweep.frontier:
        rows = [frontier_cells(point) for point in line]
        lines += ["", frontier_title(line), *text_table(FRONTIER_HEADER, rows)]
    return lines
