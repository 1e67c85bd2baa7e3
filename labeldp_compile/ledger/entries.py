"""The entries of a ledger: what each kind holds, and how each names the one before by its hash.

No entry can be altered without altering all later ones. A hash shows that an entry is as it was
written, but not who wrote it. So a ledger with an entry that is not understood is refused (a kind
that a later version added could be a spend), and so is a prior, or a release, for which no ε was
spent.

An answer is recalled for the same question: a ``Question`` has all that decides a noisy histogram,
apart from the data.
"""

import hashlib
import hmac
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from labeldp_verify.graph import canonical_json

from labeldp_compile.errors import InputError
from labeldp_compile.tabular.formats import PLAIN, TextForm

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
HASH = re.compile(r"[0-9a-f]{64}")
START = "0" * 64
_PAID_FOR = ("data_set", "data_version", "question_sha256")

# The JSON of each field, as a regular expression that PostgreSQL understands, too.
_HASH, _NAME, _TEXT, _OBJECT = f'^"{HASH.pattern}"$', f'^"{NAME.pattern}"$', '^"', "^[{]"
_TIME = '^"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"$'
_WHOLE = "^(0|[1-9][0-9]{0,17})$"
_EPSILON = '^"[0-9]{1,300}(/[1-9][0-9]{0,999})?"$'
FIELDS: dict[str, dict[str, str]] = {
    "ledger": {
        "client_key_sha256": _HASH,
        "format_version": _NAME,
        "key_sha256": _HASH,
        "time": _TIME,
    },
    "budget": {"data_set": _NAME, "epsilon": _EPSILON, "time": _TIME},
    "spend": {
        "command": _NAME,
        "data_set": _NAME,
        "data_version": _NAME,
        "epsilon": _EPSILON,
        "question_sha256": _HASH,
        "spec": _TEXT,
        "spec_sha256": _HASH,
        "time": _TIME,
    },
    "prior": (
        _answer := {
            "answer": _OBJECT,
            "column": _TEXT,
            "data_hmac": _HASH,
            "data_set": _NAME,
            "data_version": _NAME,
            "question_sha256": _HASH,
            "spend": "^-?[0-9]+$",
            "time": _TIME,
        }
    ),
    "release": _answer,
    "draw": {
        "artifact_sha256": _HASH,
        "column": _TEXT,
        "context": _TEXT,
        "data_set": _NAME,
        "digest": '^"([0-9a-f]{16})?"$',
        "epsilon": _EPSILON,
        "epsilon_label": _EPSILON,
        "folder": '^"([0-9a-f]{32})?"$',
        "key": '^"([0-9a-f]{16})?"$',
        "note": _TEXT,
        "part": _TEXT,
        "persons": _WHOLE,
        "rows": _WHOLE,
        "time": _TIME,
        "unit": '^"(label|person)"$',
        "version": "^(0|[1-9][0-9]{0,19})$",
    },
}
ANSWERS = {"prior": "weights", "release": "sums"}
"""Kinds that answer what an earlier entry spent ε on, and what their noisy numbers are called."""
OF_PERSON = {"unit": '^"person"$'}
"""Further fields of a spend of ε for all labels of a person."""
_OPTIONAL = {"budget": {"reason": _TEXT}, "spend": OF_PERSON}


def require_name(option: str, name: str) -> None:
    """Raise InputError unless entries can hold this as the name of a data set or version."""
    if not NAME.fullmatch(name):
        raise InputError(
            f"{option}: expected at most 100 letters, digits, dots, hyphens and underscores"
        )


class BrokenChainError(InputError):
    """The ledger was altered, or is damaged; the message says where."""

    exit_code = 1


@dataclass(frozen=True)
class Entry:
    """One row of the ledger.

    Attributes:
        number: 0, 1, 2, …
        kind: ``ledger`` (the first), ``budget``, ``spend``, ``prior``, ``release`` (of metrics), or
            ``draw`` (of private labels).
        body: canonical JSON.
        previous: hash of the entry before, or 64 zeros.
        hash: of everything above.
    """

    number: int
    kind: str
    body: str
    previous: str
    hash: str

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The body as it was given."""
        return json.loads(self.body)


def next_entry(entries: Sequence[Entry], kind: str, facts: dict[str, Any]) -> Entry:
    """The entry that would follow."""
    number, previous = len(entries), entries[-1].hash if entries else START
    body = canonical_json(facts)
    return Entry(number, kind, body, previous, _hash(number, kind, body, previous))


def check_chain(entries: Sequence[Entry], head: str | None = None) -> None:
    """Raise BrokenChainError unless every entry is the one that was written.

    ``head`` is a hash that was noted earlier. A chain alone does not show that its end was cut
    off, or that all of it was rewritten. A noted hash that is still in it does.
    """
    previous = START
    for number, entry in enumerate(entries):
        if entry.number != number:
            raise BrokenChainError(f"entry {number} of the ledger is missing")
        expected = _hash(number, entry.kind, entry.body, previous)
        if entry.previous != previous or entry.hash != expected:
            raise BrokenChainError(f"entry {number} of the ledger was changed after it was written")
        previous = entry.hash
    if not entries or entries[0].kind != "ledger":
        raise BrokenChainError("the ledger has no valid first entry")
    if head is not None and not any(hmac.compare_digest(head, entry.hash) for entry in entries):
        raise BrokenChainError(
            "the noted head is not in the ledger: entries were cut off, or rewritten"
        )


def head_text(entries: Sequence[Entry]) -> str:
    """The hash of the last entry. Note it where the ledger's owner cannot change it."""
    return entries[-1].hash


def _hash(number: int, kind: str, body: str, previous: str) -> str:
    text = canonical_json([number, kind, body, previous])
    return hashlib.sha256(text.encode()).hexdigest()


def _is_answer(value: Any) -> bool:
    """Whether this is the statement of a prior, with those of all tables if it has several."""
    if not isinstance(value, dict):
        return False
    weights, tables = value.get("weights"), value.get("groups", [])
    return (
        isinstance(weights, list)
        and len(weights) > 0
        and all(type(weight) is int and weight >= 0 for weight in weights)
        and type(value.get("rows")) is int
        and isinstance(tables, list)
        and all(map(_is_table, tables))
    )


def _is_release(value: Any) -> bool:
    """Whether this is the answer of metrics: noisy whole numbers, and facts about them."""
    if not isinstance(value, dict):
        return False
    sums, facts = value.get("sums"), {key: fact for key, fact in value.items() if key != "sums"}
    return (
        isinstance(sums, list)
        and len(sums) > 0
        and all(type(one) is int for one in sums)
        and type(value.get("rows")) is int
        and not any(isinstance(fact, dict | list) for fact in facts.values())
    )


def _is_table(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {"size", "prior"}:
        return False
    size, prior = value["size"], value["prior"]
    return type(size) is int and size >= 0 and _is_answer(prior) and "groups" not in prior


def not_understood(entries: Sequence[Entry]) -> Iterator[tuple[int, InputError]]:
    """The numbers of the entries for which a ledger is refused, and why.

    BrokenChainError if an entry lacks what its kind needs, or is an answer without a spend;
    InputError for a kind that this labeldp does not know.
    """
    answered: set[int] = set()  # the spends that have their answer
    for entry in entries:
        if entry.kind not in FIELDS:
            yield (
                entry.number,
                InputError(
                    f"entry {entry.number} has a kind that this labeldp does not know "
                    f"({entry.kind[:40]!a}): use the version that wrote it"
                ),
            )
            continue
        facts = _facts_of(entry)
        optional = _OPTIONAL.get(entry.kind, {}).items()
        fields = {key: token for key, token in optional if key in facts} | FIELDS[entry.kind]
        if (
            not all(re.search(token, _json(facts.get(key))) for key, token in fields.items())
            or (entry.kind == "prior" and not _is_answer(facts["answer"]))
            or (entry.kind == "release" and not _is_release(facts["answer"]))
            or (entry.kind == "ledger") != (entry.number == 0)
        ):
            reason = f"entry {entry.number} has fields that no labeldp writes"
            yield entry.number, BrokenChainError(reason)
        elif entry.kind in ANSWERS:
            if facts["spend"] in answered or not _is_paid(entry, entries):
                reason = (
                    f"entry {entry.number} is a {entry.kind} for which no earlier entry spent ε"
                )
                yield entry.number, BrokenChainError(reason)
            answered.add(facts["spend"])


def _json(value: Any) -> str:
    """A text or an integer as JSON; of an object its first character; nothing for other values."""
    if isinstance(value, dict):
        return "{"
    return canonical_json(value) if type(value) in (str, int) else ""


def _facts_of(entry: Entry) -> dict[str, Any]:
    """The body, or nothing where it is no JSON object."""
    try:
        facts = entry.facts
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _is_paid(answer: Entry, entries: Sequence[Entry]) -> bool:
    number = answer.facts["spend"]
    if not 0 <= number < answer.number or entries[number].kind != "spend":
        return False
    spend = _facts_of(entries[number])
    return all(spend.get(key) == answer.facts[key] for key in _PAID_FOR)


@dataclass(frozen=True)
class AskedOfLabels(ABC):
    """The question to the labels of a column, or of several (``LabelSpec.key``), for an ε."""

    column: str
    epsilon: Fraction

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """All that decides the answer, apart from the data, as JSON."""

    def digest(self) -> str:
        """SHA-256 of the canonical JSON."""
        facts = {**self.facts(), "column": self.column, "epsilon": str(self.epsilon)}
        return hashlib.sha256(canonical_json(facts).encode()).hexdigest()


@dataclass(frozen=True)
class Question(AskedOfLabels):
    """The facts that decide the noisy histogram, apart from the data. One question has one answer.

    ``epsilon`` is that of a label, or of the ``person`` whose labels together are the unit.
    """

    counts: str | None
    domain: dict[str, Any]
    form: TextForm = PLAIN
    cells: int | None = None
    groups: dict[str, Any] | None = None
    person: dict[str, Any] | None = None

    def facts(self) -> dict[str, Any]:
        """Cells, groups and person only if there are any, and of the form what is stated."""
        given = {name: getattr(self, name) for name in ("cells", "groups", "person")}
        given |= {name: getattr(self.form, name) for name in ("delimiter", "encoding", "decimal")}
        stated = {key: value for key, value in given.items() if value is not None}
        return {"counts": self.counts, "domain": self.domain, **stated}
