"""``labeldp init``: a first spec, from the type of a column and the user's answers."""

from __future__ import annotations

import csv
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml
from labeldp_verify.printable import at_most
from labeldp_verify.strict import DECIMAL, read_decimal

from labeldp_compile import mechanisms
from labeldp_compile.cli.command import NUMBERS_OF_SETS, command, say, tell
from labeldp_compile.cli.options import PATH, Whole, decimal_of, text_options
from labeldp_compile.errors import InputError, SpecError
from labeldp_compile.project import PROJECT_FILE
from labeldp_compile.solve.losses import OF_ONE_COLUMN
from labeldp_compile.tabular.formats import TextForm

if TYPE_CHECKING:
    from labeldp_compile.spec import Spec
    from labeldp_compile.tabular.reader import TableReader


_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*")
_WORDS = ("true", "false", "null")


def starter_spec(**answers: Any) -> str:
    """The commented YAML. It is invalid if the answers are: parse it to check.

    Args:
        answers: the names in ``starter_spec.yaml.jinja``. The ends of a range and ε are texts, as
            typed; ``data`` is relative to the spec.
    """
    # Jinja is loaded only when a spec is written.
    from labeldp_compile.page.document import text_of  # noqa: PLC0415

    template = Path(__file__).with_name("starter_spec.yaml.jinja")
    return text_of(template, {"scalar": scalar}, **answers)


class Literal(str):
    """A number as it was typed."""


def scalar(value: str | int) -> str:
    """A YAML scalar: text stays text."""
    if isinstance(value, int | Literal):
        return str(value)
    if _PLAIN.fullmatch(value) and value not in _WORDS:
        return value
    quoted: str = yaml.safe_dump(value, allow_unicode=True, default_style='"', width=2**31)
    return quoted.strip()


MOST_VALUES = 1_000
_BANDS = re.compile(r"(.+?):((?:[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?,?)+)", re.DOTALL)


def public_groups(table: TableReader, text: str, labels: Sequence[str]) -> dict[str, str]:
    """A column of the spec's ``groups``, from what was typed: NAME, or NAME:18,25,65 for bands.

    Reads the column if no bands are given. Reads none of the ``labels``. Raises InputError.
    """
    from labeldp_compile.tabular.formats import is_among  # noqa: PLC0415  # pyarrow

    bands = _BANDS.fullmatch(text)
    name = text if bands is None else bands[1]
    if is_among(name, labels):  # before it is read
        raise InputError(f"--groups {name}: this is the label, which cannot be its own group")
    table.require_column(name)
    if bands is not None:
        edges = ", ".join(edge for edge in bands[2].split(",") if edge)
        return {"column": name, "how": "bands", "listed": edges}
    return {"column": name, "how": "values", "listed": ", ".join(map(scalar, _values(table, name)))}


def _values(table: TableReader, name: str) -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415
    from labeldp_runtime.columns.arrow import is_text  # noqa: PLC0415

    from labeldp_compile.prior.group_cells import of_one_kind  # noqa: PLC0415

    seen: set[Any] = set()
    for batch in table.columns([name]):
        kind = batch.column(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
            raise InputError(
                f"--groups {name}: has the type {kind}: give bands, as in {name}:18,25,65"
            )
        seen |= set(batch.column(name).unique().to_pylist())
        if len(seen) > MOST_VALUES + 1:
            raise InputError(
                f"--groups {name}: has more than {MOST_VALUES:,} values: give bands of a number, "
                f"as in {name}:18,25,65, or write groups with assign (docs/spec.md)"
            )
    values = sorted({value for value in of_one_kind(list(seen)) if value is not None})
    if not values:
        raise InputError(f"--groups {name}: has no values")
    return values


KINDS = ("integer", "real", "categorical")
MECHANISMS = ("auto", *sorted(mechanisms.BY_DEFAULT))
GOALS = ("training", "labels")
PRIORS = ("private", "uniform")
ANSWERS = ("means", "shares")
MOST_INTEGERS = 1_000  # with more, the optimal randomizer takes long and a file grows large
POINTS = "101"
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_by_column = partial(click.option, multiple=True)


@command(
    "init",
    "labeldp init visits.parquet --column visits --epsilon 1 --range 0..20",
    "labeldp init answers.csv --column answer --values yes,no,unsure --default unsure --yes",
    "labeldp init visits.parquet --columns visits,weeks --range 0..20 --range weeks=0..52 --yes",
)
@click.argument("table", type=PATH)
@click.option("--column", help="The label column.")
@click.option(
    "--columns",
    metavar="A,B,…",
    help="Several label columns: write a folder with a spec for each. For one of them, write "
    "COLUMN=VALUE with --kind, --range, --points, --values, --default, --loss or --epsilon, and "
    "repeat the option.",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    help="The spec to write; its name, too (default: COLUMN.yaml here). With --columns, the folder "
    "to make (default: TABLE-specs here).",
)
@_by_column("--kind", metavar=f"[{'|'.join(KINDS)}]", help="The kind of the labels (CSV).")
@_by_column("--range", metavar="LO..HI", help="The lowest and the highest possible label.")
@_by_column("--points", metavar="N", help=f"Real labels: number of points (default: {POINTS}).")
@_by_column("--values", metavar="A,B,…", help="Categories: the complete list.")
@_by_column("--default", metavar="A", help="Categories: the one for all other values.")
@click.option(
    "--answers",
    type=click.Choice(ANSWERS),
    help="Integers: means (the default), or shares, with histograms and quantiles.",
)
@_by_column(
    "--loss",
    metavar="LOSS",
    help=f"The cost of an error: {', '.join(OF_ONE_COLUMN)}; with numbers of your own, as in "
    "quantile=0.9 or under=3,over=1; or a file of costs, as in matrix=costs.csv.",
)
@_by_column("--epsilon", help="The privacy budget ε (default: 1).")
@click.option(
    "--person-column",
    metavar="NAME",
    help="A public column that names the person of each row: ε is then for all labels of a "
    "person and the prior. The column is read to count the rows of each person.",
)
@click.option(
    "--labels-per-person",
    type=Whole(min=1),
    metavar="L",
    help="With --person-column: the most labels of one person (default: the most rows of one in "
    "TABLE).",
)
@click.option("--mechanism", type=click.Choice(MECHANISMS), help="The mechanism (default: auto).")
@click.option(
    "--goal", type=click.Choice(GOALS), help="The use of the private labels (default: training)."
)
@click.option("--prior", type=click.Choice(PRIORS), help="Default: a private prior from TABLE.")
@click.option("--rows", type=Whole(min=1), help="CSV: the number of rows, if you know it.")
@click.option(
    "--groups",
    "grouped",
    multiple=True,
    metavar="COLUMN[:EDGE,…]",
    help="A public column whose values are groups, each with its own table; or bands of a number, "
    "as in age:18,25,65. Repeat the option: then each combination is a group. Labels are not read.",
)
@text_options
@click.option("--yes", is_flag=True, help="Ask nothing: use the defaults for missing options.")
def init_command(
    table: Path,
    column: str | None,
    columns: str | None,
    output: Path | None,
    rows: int | None,
    grouped: tuple[str, ...],
    person_column: str | None,
    labels_per_person: int | None,
    form: TextForm,
    yes: bool,
    **given: Any,
) -> None:
    """Write a commented spec for a column of TABLE.

    With --columns, write a folder that holds a spec for each column. No label is read. The command
    reads the names, types and number of rows of a Parquet file, the first line of a CSV file, and
    the columns of --groups and --person-column. TABLE may be a folder of such files. On a terminal,
    the command asks for missing options. It prints the path of the spec, or of the folder, on
    stdout.
    """
    # Arrow, numpy and pydantic take half a second to import: --help and completion need none.
    from labeldp_compile import whole_file  # noqa: PLC0415

    if (column is None) == (columns is None):
        raise click.UsageError("give --column, or --columns for a folder of specs")
    several = [] if columns is None else _listed(columns, "--columns")
    labels = [column] if column is not None else several
    own = [{key: _of_column(key, v, one, several) for key, v in given.items()} for one in labels]
    if column is not None:
        path = output or Path(f"{_name(column)}.yaml")
        folder, paths = path.parent, [path]
        whole_file.require_output(path, way_out="give another name with -o")
    else:
        path = folder = output or Path(f"{_name(table.name.partition('.')[0])}-specs")
        paths = [folder / f"{_name(one)}.yaml" for one in labels]
        whole_file.require_folder(path)
        if len({str(one).casefold() for one in paths}) < len(paths):
            raise InputError("--columns: two of the columns would have specs of the same name")
    if any(one.name.casefold() == PROJECT_FILE for one in paths):
        raise InputError(f"{PROJECT_FILE} is the name of the project file: give another with -o")
    person = _person(table, labels, person_column, labels_per_person, form)
    made = whole_file.folder_when_whole(path) if column is None else nullcontext(folder)
    with made as place:
        asks = not yes and sys.stdin.isatty()
        request = _Request(table, labels, folder, place, rows, grouped, form, asks, person)
        specs = [request.write(*parts) for parts in zip(labels, paths, own, strict=True)]
    if column is None:
        total = sum(spec.privacy.epsilon for spec in specs)
        tell(f"these specs spend ε = {total} in total if all of their labels are randomized")
        tell(f"{path}: read the specs, change them, then: labeldp compile {path}")
    say(str(path))


def _name(text: str) -> str:
    """The name of a spec."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:100] or "labels"


def _of_column(option: str, given: Any, label: str, several: Sequence[str]) -> str | None:
    """The value for a label column: that of COLUMN=VALUE, or else of VALUE. Raises UsageError."""
    if not isinstance(given, tuple):  # an option for all columns
        return given
    own, shared = [], []
    for text in given:
        column, equals, value = text.partition("=")
        if equals and column in several:
            own += [value] * (column == label)
        elif equals and several and option != "loss":
            raise click.UsageError(f"--{option}: {column!r} is not in --columns")
        else:
            shared.append(text)
    if max(len(own), len(shared)) > 1:
        raise click.UsageError(f"--{option} is given more than once: give it once")
    return next(iter(own or shared), None)


@dataclass(frozen=True)
class _Request:
    """The part of the command line that all label columns share.

    Attributes:
        labels: all label columns.
        folder: of the specs, in which their paths start.
        place: the same, or the unfinished folder beside it that gets its name.
    """

    table: Path
    labels: list[str]
    folder: Path
    place: Path
    rows: int | None
    grouped: tuple[str, ...]
    form: TextForm
    asks: bool
    person: dict[str, Any] | None

    def write(self, column: str, path: Path, given: dict[str, str | None]) -> Spec:
        """Ask for what is missing of a column, and write its spec. Raises InputError."""
        from labeldp_compile.tabular.reader import open_table, read_header  # noqa: PLC0415
        from labeldp_compile.whole_file import write_text  # noqa: PLC0415

        header = read_header(self.table, column, self.form)
        given["loss"] = given["loss"] and _loss(given["loss"], self.folder)
        ask = _Asker(given, self.place, interactive=self.asks)
        if len(self.labels) > 1:
            tell(f"{column}:")
        if header.type is not None and ask.interactive:
            tell(f"{column} has the type {header.type}; no label is read")
        answers = {
            **{"name": _name(path.stem), "column": column, "epsilon": "1", "goal": "training"},
            **{"groups": [], "person": self.person},
            **{"prior": "uniform", "mechanism": given["mechanism"] or "auto"},
            **_label(ask, header.kind),
        }
        if header.type is None and answers["kind"] != "categorical":
            tell(*self.form.comma_warning())
        _ask_for_shares(ask, answers)
        ask.choice(answers, "loss", "What does an error cost?", OF_ONE_COLUMN)
        answers["epsilon"] = ask("epsilon", "Privacy budget ε", "1", read=_epsilon)
        answers["goal"] = ask("goal", "What are the private labels for?", "training", GOALS)
        ask.choice(answers, "mechanism", "Which mechanism?", MECHANISMS)
        answers["prior"] = ask("prior", "Which prior?", "private", PRIORS)
        answers |= {"form": self.form, "rows": self.rows, "is_counted": header.rows is not None}
        answers["data"] = Path(os.path.relpath(self.table, self.folder)).as_posix()
        is_counted = header.rows is not None or answers["prior"] == "uniform"
        if is_counted:
            _refuse("--rows is only for the private prior of a CSV file", self.rows)
        text = starter_spec(**answers)
        spec = _valid(text, header.type, self.place)
        if spec.named_mechanism.answers == "sets":
            tell(NUMBERS_OF_SETS)
        if (unit := spec.privacy.person) is not None:
            each = at_most(spec.privacy.per_label)
            tell(
                f"ε = {spec.privacy.epsilon} for a person with up to {unit.labels:,} labels, and "
                f"{each} for each label, the prior included"
            )
        if self.grouped:
            reader = open_table(self.table, column, spec.domain, all_columns=True, form=self.form)
            groups = [public_groups(reader, one, self.labels) for one in self.grouped]
            text = starter_spec(**answers | {"groups": groups})
            _valid(text, None, self.place)
            tell(
                f"--groups: read the values of the features {', '.join(self.grouped)}, but no label"
            )
        write_text(self.place / path.name, text)
        if spec.named_mechanism.kind == "optimal_unbiased":
            tell(
                "the private labels support means, and shares, histogram and quantiles only with "
                "some priors. For these, use --answers shares"
            )
        stated = "" if is_counted or self.rows is not None else ", add its number of rows"
        tell(f"{path}: read it, change it{stated}, then: labeldp plan {path}")
        return spec


class _Asker:
    """Asks on a terminal. Elsewhere it takes the default, or says which option is missing."""

    def __init__(self, given: dict[str, str | None], folder: Path, *, interactive: bool) -> None:
        self.given, self.folder, self.interactive = given, folder, interactive

    def __call__(
        self,
        name: str,
        question: str,
        default: str | None = None,
        choices: tuple[str, ...] = (),
        read: Callable[[str], Any] = str,
    ) -> Any:
        """The result of ``read`` for the option or the answer; asks again until it accepts one."""
        answer, kind = self.given[name], click.Choice(choices) if choices else click.STRING
        while answer is None and self.interactive:
            try:
                return read(click.prompt(question, default=default, type=kind, err=True))
            except InputError as error:
                tell(f"Error: {error}")
        answer = default if answer is None else answer
        if answer is None:
            option = next(o for o in click.get_current_context().command.params if o.name == name)
            expected = f"(one of {', '.join(choices)})" if choices else option.metavar
            raise InputError(
                f"please give --{name} {expected}. labeldp does not look at the labels to find it"
            )
        return read(answer)

    def choice(
        self, answers: dict[str, Any], name: str, question: str, choices: tuple[str, ...]
    ) -> None:
        """Put the choice into the answers. Offers those that make a valid spec, or else all."""
        fitting = []
        if self.interactive:
            from labeldp_compile.spec import parse_spec  # noqa: PLC0415

            for choice in choices:
                with suppress(SpecError):
                    text = starter_spec(**{**answers, name: choice})
                    parse_spec(text, directory=self.folder)
                    fitting.append(choice)
        answers[name] = self(name, question, answers[name], tuple(fitting) or choices)

    def refuse(self, reason: str, *names: str) -> None:
        """Raise InputError if one of these options is given."""
        _refuse(reason, *(self.given[name] for name in names))


def _ask_for_shares(ask: _Asker, answers: dict[str, Any]) -> None:
    """Means or shares, of integers without a loss; shares need the 0-1 loss."""
    given = ask.given
    if answers["kind"] != "integer" or given["loss"] is not None:
        ask.refuse("--answers is only for integers, and without --loss", "answers")
        return
    question = "Means, or shares (histograms, quantiles)?"
    if ask("answers", question, "means", ANSWERS) == "shares":
        answers["loss"] = "zero_one"


def _person(
    table: Path, secret: Sequence[str], column: str | None, labels: int | None, form: TextForm
) -> dict[str, Any] | None:
    """The column of persons and the most labels of one, counted if it is not given."""
    if column is None:
        _refuse("--labels-per-person needs --person-column", labels)
        return None
    from labeldp_compile.tabular.formats import is_among  # noqa: PLC0415  # pyarrow

    if is_among(column, secret):  # before it is read
        raise InputError(f"--person-column: {column!r} is the label; persons must be public")
    from labeldp_compile.tabular.persons import PersonCounts  # noqa: PLC0415  # pyarrow

    counts = PersonCounts()
    counts.seed(table, column, form, secret)
    tell(
        f"--person-column: read {column}, but no label: {counts.persons:,} persons; most rows of "
        f"one: {counts.largest:,}"
    )
    if counts.largest > 1 and labels != 1:
        tell("aggregate to one row per person: its label then gets all of ε (docs/persons.md)")
    return {"column": column, "labels": labels or max(counts.largest, 1)}


def _refuse(message: str, *given: object) -> None:
    if any(value is not None for value in given):
        raise InputError(message)


def _label(ask: _Asker, usual: str | None) -> dict[str, Any]:
    """The answers about the domain, and its usual loss."""
    if usual is None:  # a text table, whose columns have no type
        given = ask.given
        usual = "categorical" if given["values"] or given["default"] else None
        usual = "real" if given["points"] else usual
    kind = ask("kind", "What are the labels?", usual, KINDS)
    if kind not in KINDS:
        raise InputError(f"--kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    if kind == "categorical":
        ask.refuse("--range and --points are only for numbers", "range", "points")
        return {"kind": kind, "loss": "zero_one", **_categories(ask, is_text=usual == kind)}
    ask.refuse("--values and --default are only for --kind categorical", "values", "default")
    question = "Lowest and highest possible label, LO..HI (by its meaning, not by the data)"
    low, high = ask("range", question, read=_ends)
    many = Decimal(high) - Decimal(low) >= MOST_INTEGERS
    if kind == "integer" and many and ask.given["kind"] is None:
        tell(
            f"more than {MOST_INTEGERS:,} integers: labels are treated as real numbers and rounded "
            "at random to fewer points, which keeps their mean; --kind integer keeps every integer"
        )
        kind = "real"
    points = None
    if kind == "integer":
        ask.refuse("--points is only for --kind real", "points")
    else:
        question = "Round to how many evenly spaced points?"
        points = ask("points", question, POINTS, read=_points)
    answers = {"kind": kind, "loss": "squared", "ends": (low, high), "points": points}
    return {**answers, "nulls": Literal(_nearest_zero(low, high))}


def _nearest_zero(low: str, high: str) -> str:
    """The label nearest 0."""
    if Decimal(low) > 0:
        return low
    return high if Decimal(high) < 0 else "0"


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
    number = int(text) if _WHOLE.fullmatch(text) and len(text) < 20 else 0
    if number < 2:
        raise InputError(f"--points: expected a whole number of at least 2, got {text!r}")
    return number


def _epsilon(text: str) -> str:
    decimal_of("--epsilon", text)
    return text


def _categories(ask: _Asker, *, is_text: bool) -> dict[str, Any]:
    listed = ask("values", "All categories, separated by commas", read=_listed)

    def one_of_them(answer: str) -> str:
        if answer not in listed:
            raise InputError(f"--default: {answer!r} is not one of {', '.join(listed)}")
        return answer

    default = ask("default", "Category for nulls and all other values", read=one_of_them)
    if not is_text and all(map(_WHOLE.fullmatch, listed)):
        return {"values": list(map(int, listed)), "default": int(default), "nulls": int(default)}
    return {"values": listed, "default": default, "nulls": default}


def _listed(text: str, option: str = "--values") -> list[str]:
    try:
        listed = [part.strip() for part in next(csv.reader([text]), [])]
    except csv.Error as error:
        raise InputError(f"{option}: expected A,B,…: {error}") from None
    if not all(listed):
        raise InputError(f"{option}: a part is empty: remove the extra comma")
    return listed


def _loss(text: str, folder: Path) -> str:
    """The loss in YAML: a name, or a mapping of KEY=VALUE,…; files are relative to the folder."""
    from labeldp_compile.spec.costs import READERS  # noqa: PLC0415  # numpy

    if "=" not in text:
        return scalar(text)
    stated = []
    for key, _, value in (part.partition("=") for part in text.split(",")):
        typed = Literal(value) if DECIMAL.fullmatch(value) else value
        if key in READERS:
            typed = Path(os.path.relpath(value, folder)).as_posix()
        stated.append(f"{scalar(key)}: {scalar(typed)}")
    return f"{{{', '.join(stated)}}}"


def _valid(text: str, column_type: Any, folder: Path) -> Spec:
    """The spec; InputError unless it is valid and fits the column."""
    from labeldp_compile.spec import parse_spec  # noqa: PLC0415
    from labeldp_compile.tabular.columns import check_type  # noqa: PLC0415

    try:
        spec = parse_spec(text, "answers", folder)
    except SpecError as error:  # the message names a line of a file that does not exist
        reason = re.sub(r"^answers:[0-9]+: ", "", str(error))
        raise InputError(f"these answers do not make a valid spec: {reason}") from None
    if column_type is not None:
        check_type(spec.domain, spec.label.names[0], column_type)
    return spec
