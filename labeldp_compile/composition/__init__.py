"""Composition: what a user with several labels pays, pure and at a given δ (Theorem 12)."""

from labeldp_compile.composition.accounting import require_accounting
from labeldp_compile.composition.compose import Composition, compose
from labeldp_compile.composition.statement import composition_statement

__all__ = [
    "Composition",
    "compose",
    "composition_statement",
    "require_accounting",
]
