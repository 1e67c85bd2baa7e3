"""``labeldp ledger``: how much ε may be spent on each data set, and how much was spent."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
from labeldp_verify.budget import Budget
from labeldp_verify.printable import at_least, at_most

from labeldp_compile.cli.command import (
    Group,
    clipped,
    example,
    printable,
    say,
    show,
    tell,
    text_table,
)
from labeldp_compile.cli.options import (
    PATH,
    Whole,
    any_file,
    budget_option,
    decimal_of,
    json_option,
    overwrite_option,
)
from labeldp_compile.errors import InputError
from labeldp_compile.ledger.book import (
    Contents,
    DrawnLabels,
    create_ledger,
    is_guarded,
    read_contents,
    read_entries,
    set_budget,
)
from labeldp_compile.ledger.entries import (
    ANSWERS,
    HASH,
    BrokenChainError,
    Entry,
    head_text,
    require_name,
)
from labeldp_compile.ledger.store import ledger_name
from labeldp_compile.whole_file import require_output

FORMAT_VERSION = "1.0"
_COLUMNS = 40
_COUNTED = [
    "ε₁ of the private priors of compiles and sweeps whose specs name this ledger, and ε of the "
    "metrics that labeldp evaluate booked in it"
]
_DRAWN = [
    "ε of the private labels that labeldp randomize --ledger booked: of all columns of a row, and "
    "of all labels of a person if every artifact's unit is a person. A policy limits it (labeldp "
    "check), and no budget"
]
_PRIORS_ONLY = [
    "ε per label, which a label spends each time that it is randomized (labeldp verify)"
]
_NOT_COUNTED = [
    "ε of training runs on true labels (their privacy.json)",
    "what was compiled, sampled or released without this ledger",
]


@click.group("ledger", cls=Group, epilog=example("labeldp ledger show budget.ledger"))
def ledger_command() -> None:
    """Track privacy budgets per data set.

    A spec names its ledger (privacy: {ledger: FILE}). The ε of a private prior is recorded in the
    ledger before a label is read, and so is that of labeldp evaluate --release. Only the owner of
    FILE can use it and set budgets, and every entry stays in a chain of hashes. Compilers on
    several hosts can share a ledger in a PostgreSQL database: FILE is then its URL, postgresql://…
    """


def _command(name: str, line: str) -> Callable[[Callable[..., None]], click.Command]:
    """Decorator that makes a function of FILE a command of the group; ``line`` is its example."""

    def add(function: Callable[..., None]) -> click.Command:
        with_file = click.argument("file", type=click.Path(path_type=str))  # "//" of a URL stays
        return ledger_command.command(name, epilog=example(line))(with_file(function))

    return add


@_command("init", "labeldp ledger init budget.ledger")
def init_command(file: str) -> None:
    """Create an empty ledger: FILE with mode 0600, or tables in the database of a URL."""
    create_ledger(file, tell)
    name = ledger_name(file)
    tell(f"{name}: an empty ledger; set a budget with: labeldp ledger set-budget")


@_command("set-budget", "labeldp ledger set-budget budget.ledger --data-set visits --epsilon 1")
@click.option("--data-set", required=True, metavar="NAME", help="data_set in the spec's prior.")
@click.option(
    "--epsilon",
    required=True,
    metavar="ε",
    help="Budget of priors and metrics, all versions together.",
)
@click.option("--reason", metavar="TEXT", help="The reason and the decider; kept in the chain.")
def set_budget_command(file: str, data_set: str, epsilon: str, reason: str | None) -> None:
    """Set the budget of a data set, for all its versions. It can be raised or lowered."""
    require_name("--data-set", data_set)
    if reason is not None and any("\ud800" <= c <= "\udfff" for c in reason):
        raise InputError("--reason: is not valid UTF-8")
    entry = set_budget(file, data_set, _epsilon(epsilon), reason)
    tell(
        f"{ledger_name(file)}: entry {entry.number}: priors and metrics of {data_set} may spend "
        f"ε = {epsilon}"
    )


@_command("show", "labeldp ledger show budget.ledger --json")
@json_option
def show_command(file: str, as_json: bool) -> None:
    """Show each data set's budget, its spending on private priors and metrics, and all entries.

    Totals for a row and for a person add the private labels that randomize --ledger booked. The
    ledger does not count other randomized labels, or training runs. Exit code 1 if labeldp cannot
    have written an entry, or if one spends more than was left.
    """
    contents = read_contents(file)
    show(as_json, lambda: _document(contents), lambda: _in_words(contents))
    _require_written_by_labeldp(file, contents)


@_command("head", "labeldp ledger head budget.ledger")
def head_command(file: str) -> None:
    """Print the hash of the last entry. Keep it where the ledger's owner cannot change it."""
    contents = read_contents(file)
    _require_written_by_labeldp(file, contents)
    say(head_text(contents.entries))


@_command("verify", "labeldp ledger verify budget.ledger --head $(cat noted-head)")
@click.option("--head", metavar="HASH", help="A hash noted earlier: it must be in the chain.")
def verify_command(file: str, head: str | None) -> None:
    """Check that no entry was altered, and that no budget was ever exceeded.

    Exit code 1 if a check fails. Only --head can show that no entries were cut off at the end.
    """
    if head is not None and not HASH.fullmatch(head):
        raise InputError("--head: expected the 64 hexadecimal digits of labeldp ledger head")
    entries = read_entries(file, head)
    guarded = "ok     file     it refuses to change, delete, replace or skip an entry"
    unguarded = (
        "note   file     its triggers were changed or removed: until the next entry is written, "
        "the file does not refuse all changes"
    )
    unnoted = "not checked: whether later entries were cut off (--head HASH)"
    noted = "ok     head     the noted entry is in the chain: nothing up to it was cut off"
    say(
        f"ok     chain    {len(entries):,} entries, none of them altered or missing",
        "ok     budgets  no data set ever spent more than it was allowed",
        guarded if is_guarded(file) else unguarded,
        unnoted if head is None else noted,
    )


@_command("export", "labeldp ledger export budget.ledger --csv entries.csv")
@click.option(
    "--csv",
    type=PATH,
    help="Table to write (.csv). Text that a spreadsheet would run "
    "as a formula gets an apostrophe in front.",
)
@click.option("--parquet", type=PATH, help="The same table as .parquet.")
@overwrite_option
def export_command(file: str, csv: Path | None, parquet: Path | None, overwrite: bool) -> None:
    """Write all entries as one table, with the ε, the time and the reason of each.

    Noisy priors and digests of data are left out.
    """
    import pyarrow as pa  # noqa: PLC0415  # which takes a third of a second

    from labeldp_compile.tabular.csv_sink import in_batches, write_new_table  # noqa: PLC0415

    outputs = [(csv, ".csv"), (parquet, ".parquet")]
    if csv is None and parquet is None:
        raise click.UsageError("give --csv FILE, --parquet FILE, or both")
    for output, ending in outputs:
        require_output(output, Path(file), endings=(ending,), overwrite=overwrite)
    contents = read_contents(file)
    _require_written_by_labeldp(file, contents)
    kinds = {name: pa.int64() if name in _WHOLE else pa.string() for name in _EXPORTED}
    schema = pa.schema(list(kinds.items()))
    for output, _ in outputs:
        if output is not None:
            written = write_new_table(output, schema, in_batches(schema, _exported(contents)))
            tell(f"{output}: {written:,} entries")


@ledger_command.command(
    "total", epilog=example("labeldp ledger total build/visits.onnx:9 build/rating.onnx:1")
)
@click.argument("files", nargs=-1, required=True, metavar="FILE[:L]...", shell_complete=any_file)
@click.option(
    "--labels-per-user",
    "labels",
    type=Whole(1),
    help="Labels of one user in each FILE that gives no number (FILE:3 gives 3). Default: the "
    "number in the certificate.",
)
@click.option("--delta", default="1e-6", show_default=True, metavar="δ", help="1e-12 to below 1.")
@json_option
@budget_option
def total_command(
    files: tuple[str, ...], labels: int | None, delta: str, as_json: bool, budget: Budget
) -> None:
    """Report a user's total ε across artifacts; this reads no ledger.

    Every FILE is verified first; exit code 1 if one does not verify. Randomizing a label a second
    time counts as one more label.
    """
    from labeldp_compile.cli.ledger_total import print_total  # noqa: PLC0415  # numpy

    print_total(files, labels, delta, as_json=as_json, budget=budget)


def _require_written_by_labeldp(file: str, contents: Contents) -> None:
    """Raise BrokenChainError for an entry that no version writes; kinds of later ones may occur."""
    for _, error in contents.problems:
        if isinstance(error, BrokenChainError):
            raise BrokenChainError(f"{ledger_name(file)}: {error}")


def _epsilon(text: str) -> Fraction:
    number = decimal_of("--epsilon", text)
    if number < 0:
        raise InputError(f"--epsilon: expected a number of at least 0, got {text!r}")
    return Fraction(number)


def _document(contents: Contents) -> dict[str, Any]:
    problems = dict(contents.problems)
    return {
        "format_version": FORMAT_VERSION,
        "head": head_text(contents.entries),
        "counted": _counted(contents)[0],
        "not_counted": _counted(contents)[1],
        "priors_only": not contents.drawn,
        "data_sets": {
            name: {
                "budget": float(account.budget),
                "spent": float(account.spent),
                "left": float(account.left),
                "versions": {version: float(e) for version, e in account.versions.items()},
                "exact": {"budget": str(account.budget), "spent": str(account.spent)},
            }
            for name, account in contents.accounts.items()
        },
        "totals": {name: _total(contents, name) for name in _names(contents)},
        "problems": [
            {"entry": number, "problem": str(error)} for number, error in contents.problems
        ],
        "entries": [
            {
                "number": e.number,
                "kind": e.kind,
                "hash": e.hash,
                **({} if e.number in problems else _without_answer(e)),
            }
            for e in contents.entries
        ],
    }


def _names(contents: Contents) -> list[str]:
    """The data sets that have a budget, or of which labels were drawn."""
    return list(dict.fromkeys([*contents.accounts, *contents.drawn]))


def _counted(contents: Contents) -> tuple[list[str], list[str]]:
    """The meaning of the numbers, and what they do not count."""
    if contents.drawn:
        return [*_COUNTED, *_DRAWN], _NOT_COUNTED
    return _COUNTED, [*_PRIORS_ONLY, *_NOT_COUNTED]


def _total(contents: Contents, name: str) -> dict[str, Any]:
    drawn, total = contents.drawn.get(name), contents.totals(name)
    exact = {"row": total.row, "person": total.person}
    return {
        "rows_drawn": 0 if drawn is None else drawn.rows,
        "labels_of_a_row": 0.0 if drawn is None else float(drawn.row),
        **{unit: None if epsilon is None else float(epsilon) for unit, epsilon in exact.items()},
        "exact": {u: None if epsilon is None else str(epsilon) for u, epsilon in exact.items()},
    }


def _without_answer(entry: Entry) -> dict[str, Any]:
    """The facts of an entry without the noisy prior: it can be long, and the certificate has it."""
    return {key: value for key, value in entry.facts.items() if key != "answer"}


def _in_words(contents: Contents) -> list[str]:
    sums = [
        [printable(name), at_least(a.budget), at_most(a.spent), at_least(a.left)]
        for name, a in contents.accounts.items()
    ]
    problems = dict(contents.problems)
    rows = [
        [str(e.number), "", "?", "not understood"]
        if e.number in problems
        else [str(e.number), e.facts["time"], e.kind, _what(e)]
        for e in contents.entries
    ]
    heads = ["data set", "budget ε", "spent", "left"]
    counted, not_counted = _counted(contents)
    return [
        *(text_table(heads, sums) if sums else ["no budgets"]),
        *_totals(contents),
        *(f"problem      {error}" for error in problems.values()),
        *(f"counted      {words}" for words in counted),
        *(f"not counted  {words}" for words in not_counted),
        "",
        *text_table(["entry", "time", "kind", "what"], rows, left=(1, 2, 3)),
        "",
        f"head {head_text(contents.entries)}",
    ]


def _totals(contents: Contents) -> list[str]:
    """The ε that labels have spent, too; or that the sums are of priors only."""
    if not contents.drawn:
        return ["priors only: no private labels are booked (labeldp randomize --ledger)"]
    rows = []
    for name in _names(contents):
        drawn, total = contents.drawn.get(name, DrawnLabels()), contents.totals(name)
        person = "not bounded" if total.person is None else at_most(total.person)
        labels = [f"{drawn.rows:,}", at_most(drawn.row)]
        rows.append([printable(name), *labels, at_most(total.row), person])
    heads = ["data set", "labels drawn", "ε of a row", "with priors", "of a person"]
    return ["", *text_table(heads, rows), ""]


def _what(entry: Entry) -> str:
    facts = entry.facts
    if entry.kind == "budget":
        reason = f": {clipped(facts['reason'], _COLUMNS)}" if facts.get("reason") else ""
        return f"{printable(facts['data_set'])} may spend {_short(facts['epsilon'])}{reason}"
    if entry.kind == "spend":
        return (
            f"{facts['data_set']} {facts['data_version']} spends {_short(facts['epsilon'])} for "
            f"{facts['command']} of {clipped(facts['spec'], _COLUMNS)}"
        )
    if entry.kind in ANSWERS:
        answer = "noisy prior of" if entry.kind == "prior" else "metrics on"
        return f"{answer} {facts['data_set']} {facts['data_version']}, by {facts['spend']}"
    if entry.kind == "draw":
        note = f": {clipped(facts['note'], _COLUMNS)}" if facts["note"] else ""
        return (
            f"{facts['data_set']}: {facts['rows']:,} labels of {clipped(facts['column'], _COLUMNS)}"
            f" in {clipped(facts['part'], _COLUMNS)}, {_short(facts['epsilon'])} of a "
            f"{facts['unit']}{note}"
        )
    if entry.kind == "key":
        return f"digests of data use the client key {facts['client_key_sha256'][:16]}… from now on"
    return "the beginning"


def _short(epsilon: str) -> str:
    return f"ε = {at_most(Fraction(epsilon))}"


_WHOLE = ("entry", "rows", "persons")
_EXPORTED = (
    *("entry", "time", "kind", "data_set", "data_version", "command", "column", "unit", "epsilon"),
    *("epsilon_label", "artifact_sha256", "key", "context", "folder", "part", "digest", "note"),
    *("reason", "rows", "persons", "version", "spec", "hash"),
)
"""Columns of the table; ε is exact, as "p/q", and what an entry does not state is null."""


def _exported(contents: Contents) -> Iterator[tuple[object, ...]]:
    """A row for each entry, of those that are understood."""
    problems = dict(contents.problems)
    for entry in contents.entries:
        if entry.number not in problems:
            own = {"entry": entry.number, "kind": entry.kind, "hash": entry.hash}
            facts = {name: own.get(name, entry.facts.get(name)) for name in _EXPORTED}
            if facts["version"] is not None:
                facts["version"] = str(facts["version"])
            yield tuple(facts.values())
