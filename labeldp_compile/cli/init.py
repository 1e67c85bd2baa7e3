"""``labeldp init``: a first spec, from the type of a column and the user's answers."""

from __future__ import annotations

import csv
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from labeldp_verify.reading.numerals import read_decimal

from labeldp_compile import mechanisms
from labeldp_compile.cli.number_options import Whole, decimal_of
from labeldp_compile.cli.output import say, tell
from labeldp_compile.cli.text_options import text_options
from labeldp_compile.errors import InputError, SpecError
from labeldp_compile.starter_spec import Answers, DomainAnswers, starter_spec

if TYPE_CHECKING:
    from labeldp_compile.spec import Spec

KINDS = ("integer", "real", "categorical")
LOSSES = ("squared", "absolute", "poisson", "zero_one")
MECHANISMS = ("auto", *sorted(mechanisms.BY_DEFAULT))
GOALS = ("training", "labels")
PRIORS = ("private", "uniform")
MOST_INTEGERS = 1_000  # with more, the optimal randomizer takes long and a file grows large
POINTS = "101"
MIN_POINTS = 2
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")


@click.command(
    "init",
    epilog="\b\nExample:\n"
    "  labeldp init visits.parquet --column visits --epsilon 1 --range 0..20\n"
    "  labeldp init answers.csv --column answer --kind categorical --values yes,no,unsure \\\n"
    "    --default unsure --yes",
)
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--column", required=True, help="The label column.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The spec to write (default: COLUMN.yaml in this directory).",
)
@click.option("--kind", type=click.Choice(KINDS), help="What the labels are.")
@click.option("--range", "ends", metavar="LO..HI", help="The lowest and the highest label.")
@click.option(
    "--points",
    type=Whole(min=MIN_POINTS),
    help=f"Real labels: points of the grid (default: {POINTS}).",
)
@click.option("--values", metavar="A,B,…", help="Categories: all that there are.")
@click.option("--default", metavar="A", help="Categories: where nulls and all others go.")
@click.option("--loss", type=click.Choice(LOSSES), help="What an error costs.")
@click.option("--epsilon", help="The privacy budget ε (default: 1).")
@click.option("--mechanism", type=click.Choice(MECHANISMS), help="Default: auto.")
@click.option(
    "--goal",
    type=click.Choice(GOALS),
    help="What the private labels are for (default: training).",
)
@click.option("--prior", type=click.Choice(PRIORS), help="Default: private, from TABLE.")
@click.option("--rows", type=Whole(min=1), help="CSV: the number of rows, if it is known.")
@click.option(
    "--groups",
    "grouped",
    multiple=True,
    metavar="COLUMN[:EDGE,…]",
    help="A public column whose values are groups with tables of their own, or a number's bands, "
    "as in age:18,25,65 (repeatable: each combination). Its values are read; labels are not.",
)
@text_options
@click.option("--yes", is_flag=True, help="Ask nothing: take the defaults for what is not given.")
def init_command(
    table: Path,
    column: str,
    output: Path | None,
    kind: str | None,
    ends: str | None,
    points: int | None,
    values: str | None,
    default: str | None,
    loss: str | None,
    epsilon: str | None,
    mechanism: str | None,
    goal: str | None,
    prior: str | None,
    rows: int | None,
    grouped: tuple[str, ...],
    delimiter: str | None,
    encoding: str | None,
    yes: bool,
) -> None:
    """Write a commented spec for a column of TABLE.

    No label is read: of a Parquet file the names, types and the number of rows, of a CSV file its
    first line, and of --groups the columns; TABLE may be a folder of such parts. On a terminal the
    command asks for what the options leave open. Prints the path of the spec on stdout.
    """
    # Arrow, numpy and pydantic take half a second to import: --help and completion need none.
    from labeldp_compile.tabular.header import read_header  # noqa: PLC0415
    from labeldp_compile.text_form import TextForm  # noqa: PLC0415
    from labeldp_compile.whole_file import require_output, write_text  # noqa: PLC0415

    name = re.sub(r"[^A-Za-z0-9._-]+", "-", column).strip("-._")[:100] or "labels"
    path = output or Path(f"{name}.yaml")
    require_output(path, way_out="give another name with -o")
    form = TextForm(delimiter, encoding)
    header = read_header(table, column, form)
    ask = _Asker(not yes and sys.stdin.isatty())
    if header.type is not None and ask.interactive:
        tell(f"{column} has the type {header.type}; no label is read")
    chosen, kind = kind, kind or ask("What are the labels?", header.kind, "--kind", KINDS)
    if kind == "categorical":
        _refuse("--range and --points are for numbers", ends, points)
        domain = _categories(values, default, header.kind == "categorical", ask)
    else:
        _refuse("--values and --default are for --kind categorical", values, default)
        domain = _numbers(kind, ends, points, ask, may_round=chosen is None)
    usual = "zero_one" if kind == "categorical" else "squared"
    draft = Answers(name, column, domain, usual, "1", mechanism or "auto", "training", None)
    losses = _fitting(LOSSES, draft, "loss") if ask.interactive else LOSSES
    loss = loss or ask("What does an error cost?", usual, "--loss", losses)
    if epsilon is None:
        epsilon = ask("Privacy budget ε", "1", "--epsilon", check=_check_number)
    _check_number(epsilon)
    goal = goal or ask("What are the private labels for?", "training", "--goal", GOALS)
    draft = replace(draft, loss=loss, goal=goal)
    kinds = _fitting(MECHANISMS, draft, "mechanism") if ask.interactive else MECHANISMS
    mechanism = mechanism or ask("Which mechanism?", "auto", "--mechanism", kinds)
    prior = prior or ask("Which prior?", "private", "--prior", PRIORS)
    if header.rows is not None or prior == "uniform":
        _refuse("--rows is for the private prior of a CSV file", rows)
    data = Path(os.path.relpath(table, path.parent)).as_posix() if prior == "private" else None
    counted = header.rows is not None or rows is not None or prior == "uniform"
    text = starter_spec(
        Answers(name, column, domain, loss, epsilon, mechanism, goal, data, rows, counted, form)
    )
    spec = _valid(text, header.type)
    if grouped:
        from labeldp_compile.cli.init_groups import group_lines  # noqa: PLC0415
        from labeldp_compile.tabular.reader import open_table  # noqa: PLC0415

        reader = open_table(table, column, spec.domain, all_columns=True, form=form)
        text = "\n".join([text, *group_lines(reader, grouped), ""])
        _valid(text, None)
        tell(f"--groups: no label was read, but values of the features {', '.join(grouped)}")
    write_text(path, text)
    first = "read it, change it" if counted else "read it, change it, state its rows"
    tell(f"{path}: {first}, then: labeldp plan {path}")
    say(str(path))


def _fitting(choices: tuple[str, ...], draft: Answers, field: str) -> tuple[str, ...]:
    """The choices with which the answers so far make a spec; all, if none is to blame."""
    from labeldp_compile.spec import parse_spec  # noqa: PLC0415

    fitting = []
    for choice in choices:
        with suppress(SpecError):
            changed: dict[str, Any] = {field: choice}
            parse_spec(starter_spec(replace(draft, **changed)))
            fitting.append(choice)
    return tuple(fitting) or choices


class _Asker:
    """Asks on a terminal; elsewhere takes the default, or says which option is missing."""

    def __init__(self, interactive: bool) -> None:
        self.interactive = interactive

    def __call__(
        self,
        question: str,
        default: str | None,
        option: str,
        choices: tuple[str, ...] = (),
        check: Callable[[str], object] | None = None,
    ) -> str:
        """The answer; on a terminal the question comes again until ``check`` raises nothing."""
        if self.interactive:
            kind = click.Choice(choices) if choices else click.STRING
            while True:
                answer: str = click.prompt(question, default=default, type=kind, err=True)
                try:
                    if check is not None:
                        check(answer)
                except InputError as error:
                    tell(f"Error: {error}")
                else:
                    return answer
        if default is None:
            expected = f": one of {', '.join(choices)}" if choices else ""
            raise InputError(
                f"{option} is missing{expected}; no label is read, so it must be given"
            )
        return default


def _refuse(message: str, *given: object) -> None:
    if any(value is not None for value in given):
        raise InputError(message)


def _numbers(
    kind: str, ends: str | None, points: int | None, ask: _Asker, *, may_round: bool
) -> DomainAnswers:
    question = "Lowest and highest label (LO..HI), from what they mean"
    pair = _ends(ends or ask(question, None, "--range", check=_ends))
    if kind == "integer" and may_round and Decimal(pair[1]) - Decimal(pair[0]) >= MOST_INTEGERS:
        tell(
            f"more than {MOST_INTEGERS:,} integers: they are taken as real numbers and rounded at "
            "random to fewer points, so that their mean is kept; "
            "--kind integer gives each a place of its own"
        )
        kind = "real"
    if kind == "integer":
        _refuse("--points is for --kind real", points)
        return DomainAnswers(kind, pair)
    question = "To how many evenly spaced points are they rounded?"
    asked = _points(str(points) if points else ask(question, POINTS, "--points", check=_points))
    return DomainAnswers(kind, pair, asked)


def _ends(text: str) -> tuple[str, str]:
    low, dots, high = text.partition("..")
    try:
        above = not dots or read_decimal(low) > read_decimal(high)
    except ValueError:
        dots = ""
    if not dots:
        raise InputError(f"--range: expected LO..HI, as in 0..20, got {text!r}")
    if above:
        raise InputError(f"--range: min = {low} is above max = {high}")
    return low, high


def _points(text: str) -> int:
    if not (_WHOLE.fullmatch(text) and len(text) < 20 and int(text) >= MIN_POINTS):
        raise InputError(f"--points: expected a whole number of at least 2, got {text!r}")
    return int(text)


def _check_number(text: str) -> None:
    decimal_of("--epsilon", text)


def _categories(
    values: str | None, default: str | None, is_text: bool, ask: _Asker
) -> DomainAnswers:
    question = "All categories, with commas between them"
    listed = _listed(values or ask(question, None, "--values", check=_listed))

    def check(answer: str) -> None:
        if answer not in listed:
            raise InputError(f"--default: {answer!r} is not one of {', '.join(listed)}")

    question = "Where do nulls and all other values go?"
    default = default or ask(question, None, "--default", check=check)
    check(default)
    if not is_text and all(map(_WHOLE.fullmatch, listed)):
        return DomainAnswers("categorical", values=tuple(map(int, listed)), default=int(default))
    return DomainAnswers("categorical", values=tuple(listed), default=default)


def _listed(text: str) -> list[str]:
    try:
        listed = [part.strip() for part in next(csv.reader([text]), [])]
    except csv.Error as error:
        raise InputError(f"--values: expected A,B,…: {error}") from None
    if not all(listed):
        raise InputError("--values: a category is empty: is there a comma too many?")
    return listed


def _valid(text: str, column_type: Any) -> Spec:
    """The spec; InputError unless it is valid and fits the column."""
    from labeldp_compile.spec import parse_spec  # noqa: PLC0415
    from labeldp_compile.tabular.columns import check_type  # noqa: PLC0415

    try:
        spec = parse_spec(text, "answers")
    except SpecError as error:  # its line is that of a file which does not exist
        reason = re.sub(r"^answers:[0-9]+: ", "", str(error))
        raise InputError(f"these answers make no spec: {reason}") from None
    if column_type is not None:
        check_type(spec.domain, spec.label.names[0], column_type)
    return spec
