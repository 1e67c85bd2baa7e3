"""``labeldp sweep``: every mechanism at several ε, or at the smallest ε that meets targets."""

from fractions import Fraction
from pathlib import Path

import click
from labeldp_verify.console.colour import Marked

from labeldp_compile.cli.command import command
from labeldp_compile.cli.options import (
    PATH,
    Whole,
    json_option,
    overwrite_option,
    quiet_option,
    refuse_options,
    test_seed_option,
    verbose_option,
)
from labeldp_compile.cli.output import complain, observing, show, text_table
from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms import KINDS as MECHANISMS
from labeldp_compile.sweeps.sweep import DEFAULT_EPSILONS, Sweep, exact_epsilons, sweep_spec
from labeldp_compile.sweeps.table import (
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

_SCREEN = 16  # points that a screen has room for


_WITHOUT_TARGETS = ("epsilons", "mechanisms", "output", "with_frontier", "spend", "test_seed")


@command(
    "sweep",
    "labeldp sweep specs/doctor-visits.yaml --epsilon 1,4 --spend-prior -o sweep.html",
    "labeldp sweep specs/doctor-visits.yaml --target mean-error=0.5 --rows 20190",
    "labeldp sweep specs/health-rating.yaml --target max-belief=0.2@0.01",
)
@click.argument("spec", type=PATH)
@click.option(
    "--epsilon",
    "epsilons",
    metavar="ε,ε,…",
    help="Values of ε to compare, of a label, or of a person if that is the spec's unit. Default: "
    f"{','.join(DEFAULT_EPSILONS)} and the spec's own.",
)
@click.option(
    "--mechanisms",
    metavar="NAME,…",
    shell_complete=lambda ctx, parameter, start: _mechanisms_after(start),
    help="The mechanisms to compare; rr_top_k:5 has k = 5. Default: all that fit the label and "
    "the loss.",
)
@verbose_option
@json_option
@click.option(
    "-o", "--output", type=PATH, help="Also write a page (.html) with a picture and all tables."
)
@overwrite_option
@click.option(
    "--bias-frontier",
    "with_frontier",
    is_flag=True,
    help="Also show how much loss unbiasedness costs.",
)
@click.option(
    "--spend-prior", "spend", is_flag=True, help="Spend ε₁ on a private prior, once for all points."
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME=VALUE",
    help="Find the smallest ε that meets this target; may be repeated. mean-error=E (numbers) and "
    "share-error=E (categories): the 95% margin of error of a mean or share over --rows rows. "
    "label-error=E: the error of one private label, assuming the prior (root mean square, or the "
    "probability of another label). max-belief=B@S: an observer who was S sure of a label can "
    "become at most B sure; alone, it gives the largest such ε.",
)
@click.option(
    "--rows", type=Whole(), metavar="N", help="For --target: rows of the mean or the shares."
)
@quiet_option
@test_seed_option
@click.pass_context
def sweep_command(
    ctx: click.Context,
    /,
    spec: Path,
    epsilons: str | None,
    mechanisms: str | None,
    verbose: bool,
    as_json: bool,
    output: Path | None,
    overwrite: bool,
    with_frontier: bool,
    spend: bool,
    targets: tuple[str, ...],
    rows: int | None,
    quiet: bool,
    test_seed: int | None,
) -> None:
    """Compare all mechanisms for the label, loss and prior of SPEC.

    Every point is compiled and verified. Only the file of -o is written. A private prior is
    estimated once for all points, and only with --spend-prior.

    With --target, find the smallest ε, and the mechanism, that make private labels good enough. No
    label is read: a private prior is treated as uniform. A margin of error holds for all labels in
    the range. Exit code 1: no ε up to 20 meets the targets.
    """
    if targets:
        from labeldp_compile.cli.sweep_targets import print_choice  # noqa: PLC0415

        refuse_options(ctx, _WITHOUT_TARGETS, "is for a sweep without --target")
        print_choice(spec, targets, rows, verbose=verbose, as_json=as_json, quiet=quiet)
        return
    refuse_options(ctx, ("rows",), "needs --target")
    require_output(output, spec, endings=(".html",), overwrite=overwrite)
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
    show(as_json, sweep.to_json, lambda: _in_words(sweep, verbose=verbose))
    if output is not None:  # last: a full disk must not lose a result that ε was spent on
        # Matplotlib takes half a second to import.
        from labeldp_compile.sweeps.plot import sweep_page  # noqa: PLC0415

        write_text(output, sweep_page(sweep))


def _mechanisms_after(start: str) -> list[str]:
    """Completions of a list of mechanisms: the list with one name more."""
    before, comma, last = start.rpartition(",")
    return [before + comma + name for name in MECHANISMS if name.startswith(last)]


def _totals(text: str) -> list[Fraction]:
    try:
        return exact_epsilons(text.split(","))
    except InputError as error:
        raise InputError(f"--epsilon: {error}") from None


def _in_words(sweep: Sweep, *, verbose: bool) -> list[str]:
    """The tables as far as they fit a screen, and last the best mechanism of each ε."""
    spec = sweep.spec
    spent = ""
    if sweep.spent:
        of_unit = float(spec.privacy.labels_of_unit * sweep.spent)
        spent = (
            f"; its ε₁ = {of_unit:g} is spent once for all points, by each run that "
            "reads the labels"
        )
    lines = [
        f"{spec.name}: {spec.domain.size:,} labels, loss: {spec.loss}, "
        f"goal: {spec.goal}, prior: {sweep.prior_in_words}{spent}"
    ]
    if sweep.insecure:
        lines.append(Marked(sweep.insecure, "warning"))
    is_whole = verbose or len(sweep.points) <= _SCREEN
    lines += [*(_tables(sweep) if is_whole else []), "", *notes(sweep)]
    absent = [
        *(
            f"not compiled at {sweep.in_words(epsilon)}: {', '.join(names)}: {reason}"
            for epsilon, reason, names in missing_by_reason(sweep)
        ),
        *(f"left out: {mechanism}: {reason}" for mechanism, reason in sweep.left_out),
    ]
    if is_whole:
        lines += absent
    else:
        lines.append(
            f"more: --verbose shows all {len(sweep.points):,} points"
            + (" and what could not be compiled" if absent else "")
        )
    return [*lines, *_frontier(sweep), "", *_best(sweep)]


def _tables(sweep: Sweep) -> list[str]:
    """All points, a table for each ε."""
    rows, marks = [], []
    for epsilon, points in by_epsilon(sweep):
        for point in points:
            rows.append(cells(sweep, point))
            best = f"{BEST} " if point is sweep.best(epsilon) else ""
            marks.append((epsilon, best + remark(sweep, point)))
    table = text_table(header(sweep), rows)
    width = max(map(len, table))
    lines, shown = [], None
    for text, (epsilon, mark) in zip(table[1:], marks, strict=True):
        if epsilon != shown:
            lines += ["", sweep.in_words(epsilon), table[0]]
            shown = epsilon
        lines.append(f"{text:<{width}} {mark}".rstrip())
    return lines


def _best(sweep: Sweep) -> list[str]:
    """The best mechanism of each ε, or that there is none."""
    best = [(epsilon, sweep.best(epsilon)) for epsilon, _ in by_epsilon(sweep)]
    if len(best) == 1:
        epsilon, point = best[0]
        found = "no mechanism is useful" if point is None else point.mechanism
        return [f"best for {sweep.spec.goal} at {sweep.in_words(epsilon)}: {found}"]
    none = ["no mechanism is useful", *["–"] * (len(header(sweep)) - 1)]
    of_person, unit = sweep.of_person, ["ε of a person"] if sweep.of_person else []
    rows = [
        [
            f"{epsilon:g}",
            *([f"{of_person[epsilon]:g}"] if unit else []),
            *(none if point is None else cells(sweep, point)),
        ]
        for epsilon, point in best
    ]
    heading = ["ε of a label" if unit else "ε", *unit, *header(sweep)]
    table = text_table(heading, rows, left=(1 + len(unit),))
    return [f"best for {sweep.spec.goal}:", *table]


def _frontier(sweep: Sweep) -> list[str]:
    lines = []
    for line in sweep.frontier:
        rows = [frontier_cells(point) for point in line]
        lines += ["", frontier_title(line), *text_table(FRONTIER_HEADER, rows)]
    return lines
