"""The budget ledger: what was spent on each data set, written before a label is read."""

from labeldp_compile.ledger.account import DataSet, OverBudgetError, data_sets
from labeldp_compile.ledger.entries import BrokenChainError, Entry, check_chain, head_text
from labeldp_compile.ledger.prior_account import PriorAccount, Question, account_of
from labeldp_compile.ledger.store import create_ledger, is_guarded, read_entries, set_budget

__all__ = [
    "BrokenChainError",
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
    "read_entries",
    "set_budget",
]
