"""The account of a private prior, or of a release of metrics: spend ε before a label is
read, or recall.

    1  recall   the same question to the same declared version was answered: nothing is spent
    2  spend    otherwise ε₁ is appended, in one transaction with the look at the budget
    3  read     only now labels are read, and the data must be those that had this version before
    4  keep     the noisy answer is appended, for the next time

The answer is used only when 4 is on the disk. After any later failure the next compile recalls it.
A compile that ends between 2 and 4 has spent ε₁ without an answer. The next one spends ε₁ again,
and says so.
"""

import hmac
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from labeldp_compile.errors import DataError, InputError
from labeldp_compile.ledger.book import Ledger, data_sets, in_transaction, require_budget
from labeldp_compile.ledger.client_key import find_client_key, keyed_digest, require_bound
from labeldp_compile.ledger.entries import ANSWERS, AskedOfLabels, Entry
from labeldp_compile.ledger.store import Store, open_store
from labeldp_compile.ledger_url import is_url
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PrivatePrior
from labeldp_compile.tabular.formats import columns_of

_WORDS = {"prior": ("noisy prior", "ε₁"), "release": ("metrics", "ε")}
_COPIES = 4  # of an answer: as text, in SQLite's pages, in its journal
_IN_VAIN = "Nothing was computed from the file, but the ε of this attempt stays spent in the ledger"


class PriorAccount:
    """One data set in one declared version, for one compile (or sweep)."""

    def __init__(
        self,
        store: Store,
        *,
        data_set: str,
        data_version: str,
        spec: str,
        spec_digest: str,
        command: str,
        say: Callable[[str], None],
        kind: Literal["prior", "release"] = "prior",
    ) -> None:
        """``store`` has the ledger, ``spec`` is the name in the spec or the artifact.

        ``say`` gets a line about what was recalled or spent; ``kind`` is that of answers.
        """
        self._store, self._say, self._kind = store, say, kind
        self._what, self._epsilon = _WORDS[kind]
        self._names = {"data_set": data_set, "data_version": data_version}
        self._spec = {"spec": spec, "spec_sha256": spec_digest, "command": command}

    @property
    def name(self) -> str:
        """The ledger's, for messages: without a password."""
        return self._store.name

    def recall(self, question: AskedOfLabels) -> dict[str, Any] | None:
        """The recorded answer to the question, or None; raises InputError."""
        entry = in_transaction(self._store, lambda ledger: self._find(ledger, question))
        if entry is None:
            return None
        self._say(
            f"{self.name}: reusing the {self._what} of entry {entry.number} "
            f"({self._epsilon} = {float(question.epsilon):g} was spent by entry "
            f"{entry.facts['spend']}); nothing is spent, and no label is read"
        )
        return entry.facts["answer"]

    def forecast(self, question: AskedOfLabels) -> tuple[str, bool]:
        """A line on what would happen, and whether an answer would be recalled.

        Raises OverBudgetError if the budget is too small.
        """

        def look(ledger: Ledger) -> tuple[str, bool]:
            if self._find(ledger, question) is not None:
                reuses = "reuses the noisy prior of an earlier compile: nothing is spent"
                return f"{self.name}: {reuses}", True
            require_bound(find_client_key(), ledger.entries[0], self.name)
            data_set = self._names["data_set"]
            require_budget(self.name, ledger.entries, data_set, question.epsilon)
            account = data_sets(ledger.entries)[data_set]
            again = self._again(self._spent_in_vain(ledger, question))
            return (
                f"{self.name}: {data_set} has spent {float(account.spent):.6g} of "
                f"{float(account.budget):.6g} on priors{again}",
                False,
            )

        return in_transaction(self._store, look)

    def spend(self, question: AskedOfLabels) -> int:
        """Append ε₁ and return the entry's number; raises OverBudgetError if the budget is too
        small.

        Another client key than the ledger's, or none, is an InputError before anything is spent.
        """
        epsilon, client = question.epsilon, find_client_key()

        def pay(ledger: Ledger) -> tuple[int, list[int]]:
            require_budget(self.name, ledger.entries, self._names["data_set"], epsilon)
            require_bound(client, ledger.entries[0], self.name)
            in_vain = self._spent_in_vain(ledger, question)
            facts = {"epsilon": str(epsilon), "question_sha256": question.digest()}
            if getattr(question, "person", None) is not None:
                facts["unit"] = "person"
            spent = ledger.append("spend", {**self._names, **self._spec, **facts})
            return spent.number, in_vain

        number, in_vain = in_transaction(self._store, pay)
        again = self._again(in_vain)
        self._say(f"{self.name}: entry {number} spends {self._epsilon} = {float(epsilon):g}{again}")
        return number

    def require_room(self, size: int) -> None:
        """Raise InputError unless the ledger's disk has room for an answer of ``size`` bytes.

        Call it before ``spend``: otherwise ε may be spent on an answer that cannot be written. The
        room of a server is not known; ``keep`` waits for it.
        """
        free = self._store.free_bytes()
        if free is not None and free < _COPIES * size:
            raise InputError(
                f"{self.name}: the disk has {free:,} bytes left, and the {self._what} may take "
                f"{_COPIES * size:,}; nothing was spent"
            )

    def require_same_data(self, file: Path, column: str) -> str:
        """The keyed digest of a file of labels in this column, or in these (``LabelSpec.key``).

        Raises DataError if other data had this version before, or another data set these labels:
        they would have two budgets.
        """
        client = find_client_key()

        def read(ledger: Ledger) -> tuple[bytes, list[Entry]]:
            key = require_bound(client, ledger.entries[0], self.name).digest_key(ledger.key())
            return key, [entry for entry in ledger.entries if entry.kind in ANSWERS]

        key, answers = in_transaction(self._store, read, waiting=self._say)
        digest = keyed_digest(key, file)
        for entry in answers:
            facts = entry.facts
            same = hmac.compare_digest(digest, facts["data_hmac"])
            if self._is_ours(entry) and not same:
                raise DataError(
                    f"{file}: differs from the file that was called "
                    f"{self._names['data_version']!r} before: data that changed need a new "
                    f"data_version. {_IN_VAIN}"
                )
            shared = columns_of(facts["column"]) & columns_of(column)
            if shared and same and facts["data_set"] != self._names["data_set"]:
                raise DataError(
                    f"{file}: its column {column!r} is the data set "
                    f"{facts['data_set']!r} in entry {entry.number}, and not "
                    f"{self._names['data_set']!r}: the same labels have one budget. {_IN_VAIN}"
                )
        return digest

    def keep(
        self, spent: int, question: AskedOfLabels, digest: str, answer: dict[str, Any]
    ) -> None:
        """Append the noisy answer, which is no longer secret.

        Its ε is spent, so a server that is away now is waited for.
        """
        facts = {
            **self._names,
            "spend": spent,
            "question_sha256": question.digest(),
            "column": question.column,
            "data_hmac": digest,
            "answer": answer,
        }
        in_transaction(
            self._store, lambda ledger: ledger.append(self._kind, facts), waiting=self._say
        )

    def _find(self, ledger: Ledger, question: AskedOfLabels) -> Entry | None:
        """The latest entry that answers the question, and for which its ε₁ was spent."""
        wanted = question.digest()
        for entry in reversed(ledger.entries):
            if entry.kind != self._kind or not self._is_ours(entry):
                continue
            paid = ledger.entries[entry.facts["spend"]].facts["epsilon"]
            if entry.facts["question_sha256"] == wanted and Fraction(paid) == question.epsilon:
                return entry
        return None

    def _spent_in_vain(self, ledger: Ledger, question: AskedOfLabels) -> list[int]:
        """The entries that spent ε on this question without an answer."""
        answered = {e.facts["spend"] for e in ledger.entries if e.kind in ANSWERS}
        return [
            entry.number
            for entry in ledger.entries
            if entry.kind == "spend"
            and self._is_ours(entry)
            and entry.facts["question_sha256"] == question.digest()
            and entry.number not in answered
        ]

    def _is_ours(self, entry: Entry) -> bool:
        return all(entry.facts[key] == value for key, value in self._names.items())

    def _again(self, in_vain: list[int]) -> str:
        if not in_vain:
            return ""
        entries = ", ".join(map(str, in_vain))
        answer = f"a {self._what}" if self._kind == "prior" else self._what
        return (
            f"; entry {entries} spent ε on the same question without {answer}: that run was "
            "stopped before it had any, was refused the data, or is still running"
        )


def account_of(
    spec: Spec, directory: Path, spec_digest: str, command: str, observer: Observer = QUIET
) -> PriorAccount | None:
    """The account that a spec names, its path relative to ``directory``; None if it needs none.

    Raises InputError for a server that the user's configuration does not name.
    """
    prior, ledger = spec.prior, spec.privacy.ledger
    if ledger is None or not isinstance(prior, PrivatePrior):
        return None
    assert prior.data_set is not None
    assert prior.data_version is not None
    return PriorAccount(
        open_store(ledger if is_url(ledger) else directory / ledger, by_spec=True),
        data_set=prior.data_set,
        data_version=prior.data_version,
        spec=spec.name,
        spec_digest=spec_digest,
        command=command,
        say=observer.say,
    )
