"""Sums over the entries, in exact fractions: what each data set may spend, and has spent."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.entries import BrokenChainError, Entry


class OverBudgetError(InputError):
    """The data set's budget is too small for what is asked."""

    exit_code = 1


@dataclass
class DataSet:
    """The budget of a data set, and what was spent of it, over all versions.

    ``versions`` has what was spent on each declared version; ``of_labels`` is the part of ``spent``
    that is ε of one label, and not of all labels of a person.
    """

    budget: Fraction
    spent: Fraction = Fraction(0)
    versions: dict[str, Fraction] = field(default_factory=dict)
    of_labels: Fraction = Fraction(0)

    @property
    def left(self) -> Fraction:
        """What may still be spent; below 0 if the budget was lowered below what was spent."""
        return self.budget - self.spent


def data_sets(entries: Sequence[Entry]) -> dict[str, DataSet]:
    """The account of every data set, by name.

    Raises BrokenChainError if something was spent that the budget of its time did not allow.
    """
    accounts, overspent = add_up(entries)
    for _, error in overspent:
        raise error
    return accounts


Problem = tuple[int, InputError]


def add_up(entries: Sequence[Entry]) -> tuple[dict[str, DataSet], list[Problem]]:
    """The account of every data set, and each spend that its budget did not allow, by number.

    Such a spend is counted all the same.
    """
    accounts: dict[str, DataSet] = {}
    overspent: list[Problem] = []
    for entry in entries:
        if entry.kind not in ("budget", "spend"):
            continue
        facts = entry.facts  # the hash covers it: it is as labeldp wrote it
        name, epsilon = facts["data_set"], Fraction(facts["epsilon"])
        account = accounts.get(name)
        if entry.kind == "budget":
            accounts.setdefault(name, DataSet(Fraction(0))).budget = epsilon
            continue
        if account is None or epsilon < 0 or epsilon > account.left:
            reason = f"entry {entry.number} of the ledger spends more than the budget allowed"
            overspent.append((entry.number, BrokenChainError(reason)))
        account = accounts.setdefault(name, DataSet(Fraction(0)))
        account.spent += epsilon
        account.of_labels += 0 if "unit" in facts else epsilon
        version = facts["data_version"]
        account.versions[version] = account.versions.get(version, Fraction(0)) + epsilon
    return accounts, overspent


def require_budget(path: str, entries: Sequence[Entry], name: str, epsilon: Fraction) -> None:
    """Raise OverBudgetError unless a data set can spend ε; InputError if it has no budget."""
    account = data_sets(entries).get(name)
    if account is None:
        raise InputError(
            f"{path}: the data set {name!r} has no budget; set one with: "
            f"labeldp ledger set-budget {path} --data-set {name} --epsilon ε"
        )
    if epsilon > account.left:
        raise OverBudgetError(
            f"{path}: over budget: the data set {name!r} has spent {float(account.spent):.6g} of "
            f"its budget ε = {float(account.budget):.6g}, and this would spend "
            f"{float(epsilon):.6g} more; no label was read"
        )
