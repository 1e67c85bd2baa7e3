"""The budget ledger: what was spent on each data set, written before a label is read."""

from labeldp_compile.ledger.account import DataSet, OverBudgetError, data_sets
from labeldp_compile.ledger.book import (
    Contents,
    create_ledger,
    is_guarded,
    read_contents,
    read_entries,
    set_budget,
    upgrade_ledger,
)
from labeldp_compile.ledger.entries import BrokenChainError, Entry, check_chain, head_text
from labeldp_compile.ledger.place import place_name
from labeldp_compile.ledger.prior_account import PriorAccount, Question, account_of

__all__ = [
    "BrokenChainError",
    "Contents",
    "DataSet",
    "Entry",
    "OverBudgetError",
    "PriorAccount",
    "Question",
    "account_of",
    "check_chain",
    "create_ledger",
    "data_sets",
    "head_text",
    "is_guarded",
    "place_name",
    "read_contents",
    "read_entries",
    "set_budget",
    "upgrade_ledger",
]
