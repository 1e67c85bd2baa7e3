"""``labeldp ledger``: what the private data of a project may pay, and have paid."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import click
from labeldp_verify.rounded import at_least, at_most

from labeldp_compile.cli.command import Group, example
from labeldp_compile.cli.options import decimal_of, json_option
from labeldp_compile.cli.output import clipped, printable, say, show, tell, text_table
from labeldp_compile.errors import InputError
from labeldp_compile.ledger.book import (
    Contents,
    create_ledger,
    is_guarded,
    read_contents,
    read_entries,
    set_budget,
    upgrade_ledger,
)
from labeldp_compile.ledger.entries import HASH, NAME, BrokenChainError, Entry, head_text
from labeldp_compile.ledger.place import place_name

FORMAT_VERSION = "1.0"
_FILE = click.argument("file", type=click.Path(path_type=str))  # two slashes of a URL stay two
_COLUMNS = 40
_COUNTED = ["ε₁ of the private priors of compiles and sweeps whose specs name this ledger"]
_NOT_COUNTED = [
    "ε per label, which a label spends each time that it is randomized (labeldp verify)",
    "ε of training runs on true labels (their privacy.json)",
    "what was compiled, sampled or released without this ledger",
]


@click.group("ledger", cls=Group, epilog=example("labeldp ledger show budget.ledger"))
def ledger_command() -> None:
    """Keep the budget of data sets: a private prior is paid before a label is read.

    A spec names its ledger (privacy: {ledger: FILE}). FILE belongs to its owner alone, who may set
    budgets; whatever is done stays in a chain of hashes. Compilers on several hosts share one in a
    PostgreSQL database: FILE is its URL, postgresql://…
    """


@ledger_command.command("init", epilog=example("labeldp ledger init budget.ledger"))
@_FILE
def init_command(file: str) -> None:
    """Make an empty ledger: FILE, of mode 0600, or tables in the database of a URL."""
    create_ledger(file, tell)
    name = place_name(file)
    tell(f"{name}: an empty ledger; say what may be spent with: labeldp ledger set-budget")


@ledger_command.command(
    "set-budget",
    epilog=example("labeldp ledger set-budget budget.ledger --data-set visits --epsilon 1"),
)
@_FILE
@click.option("--data-set", required=True, metavar="NAME", help="As in the spec's prior.")
@click.option("--epsilon", required=True, metavar="ε", help="For all versions together.")
@click.option("--reason", metavar="TEXT", help="Who decided it, and why; kept in the chain.")
def set_budget_command(file: str, data_set: str, epsilon: str, reason: str | None) -> None:
    """Say what may be spent on a data set in all its versions; it may be raised or lowered."""
    if not NAME.fullmatch(data_set):
        raise InputError(
            "--data-set: expected letters, digits, dots, hyphens and underscores, at most 100"
        )
    if reason is not None and any("\ud800" <= c <= "\udfff" for c in reason):
        raise InputError("--reason: is not valid UTF-8")
    entry = set_budget(file, data_set, _epsilon(epsilon), reason)
    tell(f"{place_name(file)}: entry {entry.number}: {data_set} may spend ε = {epsilon}")


@ledger_command.command("show", epilog=example("labeldp ledger show budget.ledger --json"))
@_FILE
@json_option
def show_command(file: str, as_json: bool) -> None:
    """Show what every data set may spend and has spent on private priors, and all entries.

    ε per label, which each randomized label spends, and training runs are not in a ledger. Exit
    code 1 if an entry holds what no labeldp writes, or spends what was not there.
    """
    contents = read_contents(file)
    show(as_json, lambda: _document(contents), lambda: _in_words(contents))
    _require_written_by_labeldp(file, contents)


@ledger_command.command("head", epilog=example("labeldp ledger head budget.ledger"))
@_FILE
def head_command(file: str) -> None:
    """Print the hash of the last entry, to note where the ledger's owner cannot change it."""
    contents = read_contents(file)
    _require_written_by_labeldp(file, contents)
    say(head_text(contents.entries))


@ledger_command.command(
    "verify", epilog=example("labeldp ledger verify budget.ledger --head $(cat noted-head)")
)
@_FILE
@click.option("--head", metavar="HASH", help="Noted earlier: must still be in the chain.")
def verify_command(file: str, head: str | None) -> None:
    """Check that no entry was altered, and that no budget was ever exceeded.

    Exit code 1 if not. That nothing was cut off at the end only --head can show.
    """
    if head is not None and not HASH.fullmatch(head):
        raise InputError("--head: expected the 64 hexadecimal digits that labeldp ledger head gave")
    entries = read_entries(file, head)
    guarded = "ok     file     it refuses to change, delete, replace or skip an entry"
    unguarded = (
        "note   file     its triggers are an earlier version's, or were taken away: until the "
        "next entry is written, it does not itself refuse all changes"
    )
    unnoted = "not checked: whether later entries were cut off (--head HASH)"
    noted = "ok     head     the noted entry is in the chain: nothing up to it was cut off"
    say(
        f"ok     chain    {len(entries):,} entries, none of them altered or missing",
        "ok     budgets  no data set ever spent more than it was allowed",
        guarded if is_guarded(file) else unguarded,
        unnoted if head is None else noted,
    )


@ledger_command.command(
    "upgrade", epilog=example("labeldp ledger upgrade postgresql://owner@db.example/budgets")
)
@_FILE
def upgrade_command(file: str) -> None:
    """Bring the ledger of an earlier labeldp up to date, as its owner; harmless to repeat.

    Its triggers become the present ones, and it takes your client key for digests of data. That
    trusts the entries that are in it: digests before it are still compared under its own key.
    """
    entry = upgrade_ledger(file, tell)
    taken = "" if entry is None else f"; entry {entry.number} takes your client key"
    tell(f"{place_name(file)}: up to date{taken}")


def _require_written_by_labeldp(file: str, contents: Contents) -> None:
    """Raise BrokenChainError for what no version writes; a later version's kinds may stand."""
    for _, error in contents.problems:
        if isinstance(error, BrokenChainError):
            raise BrokenChainError(f"{place_name(file)}: {error}")


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
        "counted": _COUNTED,
        "not_counted": _NOT_COUNTED,
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


def _without_answer(entry: Entry) -> dict[str, Any]:
    """The facts of an entry; a noisy prior can be long, and stands in the certificate."""
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
    heads = ["data set", "budget ε", "spent on priors", "left"]
    return [
        *(text_table(heads, sums) if sums else ["no budgets"]),
        *(f"problem      {error}" for error in problems.values()),
        *(f"counted      {words}" for words in _COUNTED),
        *(f"not counted  {words}" for words in _NOT_COUNTED),
        "",
        *text_table(["entry", "time", "kind", "what"], rows, left=(1, 2, 3)),
        "",
        f"head {head_text(contents.entries)}",
    ]


def _what(entry: Entry) -> str:
    facts = entry.facts
    if entry.kind == "budget":
        reason = f": {clipped(facts['reason'], _COLUMNS)}" if facts.get("reason") else ""
        return f"{printable(facts['data_set'])} may spend {_short(facts['epsilon'])}{reason}"
    if entry.kind == "spend":
        return (
            f"{facts['data_set']} {facts['data_version']} pays {_short(facts['epsilon'])} for "
            f"{facts['command']} of {clipped(facts['spec'], _COLUMNS)}"
        )
    if entry.kind == "prior":
        return f"noisy prior of {facts['data_set']} {facts['data_version']}, by {facts['spend']}"
    if entry.kind == "key":
        return f"digests of data take the client key {facts['client_key_sha256'][:16]}… from now on"
    return "the beginning"


def _short(epsilon: str) -> str:
    return f"ε = {at_most(Fraction(epsilon))}"
