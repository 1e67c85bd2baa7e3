"""A question to the labels of a column: what decides its answer, apart from the data.

A ledger and a saved prior recall the answer of the same question.
"""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from labeldp_verify.graph import canonical_json

from labeldp_compile.tabular.formats import PLAIN, TextForm


@dataclass(frozen=True)
class AskedOfLabels(ABC):
    """What is asked of the labels of a column, or of several (``LabelSpec.key``), for an ε."""

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
    """What decides the noisy histogram, apart from the data. The same question has one answer.

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
