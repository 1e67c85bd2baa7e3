"""The plan of a compile: the checks that come before spending, and estimates of the rest."""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labeldp_verify.claims import DECLARED_BY, nulls_in_words

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.prior_account import account_of
from labeldp_compile.pipeline import require_compilable, require_telling
from labeldp_compile.planning.budget import EpsilonBudget, TablesBudget, find_budget, is_unpaid
from labeldp_compile.planning.expected_use import ExpectedUse, expected_use
from labeldp_compile.planning.forecast import Forecast, forecast
from labeldp_compile.spec import Spec, load_spec

FORMAT_VERSION = "1.0"


@dataclass(frozen=True)
class Plan:
    """What ``compile`` would do with a spec.

    ``most_bytes`` is the largest size of the artifact for any prior. ``ledger`` says in words what
    the budget ledger would do; None without one. ``recalls`` is whether it recalls the prior.
    """

    spec: Spec
    budget: EpsilonBudget
    forecast: Forecast
    most_bytes: int
    ledger: str | None = None
    use: ExpectedUse | None = None
    recalls: bool = False
    spec_sha256: str = ""

    def to_json(self) -> dict[str, Any]:
        """``{format_version, name, label, …, estimate, writes}``, keys in this order."""
        spec, budget, use = self.spec, self.budget, self.use
        parts = {"total": budget.total, "prior": budget.prior, "label": budget.label}
        return {
            "format_version": FORMAT_VERSION,
            "name": spec.name,
            "label": {
                "column": None if len(spec.label.names) > 1 else spec.label.names[0],
                "columns": spec.label.names,
                "domain": spec.domain.to_json(),
            },
            "labels": spec.domain.size,
            "goal": spec.goal,
            "loss": spec.loss,
            "mechanism": spec.named_mechanism.model_dump(mode="json"),
            "mechanism_title": spec.named_mechanism.title,
            "auto": spec.auto_reason,
            "privacy": {
                **{f"epsilon_{part}": float(value) for part, value in parts.items()},
                "split": spec.privacy.split_in_words,
                "split_reason": budget.plan.reason,
                "exact": {f"epsilon_{part}": str(value) for part, value in parts.items()},
            },
            "prior": {
                "kind": spec.prior.kind,
                "data": budget.data and str(budget.data),
                "rows": budget.rows,
                "cells": budget.plan.pooled_cells,
                "taken": "uniform" if is_unpaid(spec, budget) else spec.prior.kind,
                "noise": budget.noise and asdict(budget.noise),
            },
            "person": _person_json(spec, budget),
            "groups": budget.groups and _groups_json(budget.groups),
            "ledger": self.ledger,
            "usefulness": use and use.to_json(budget.rows),
            "warnings": [asdict(part) for part in use.shortcomings] if use else [],
            "nulls": nulls_in_words(spec.domain),
            "outputs": use and use.span and {"least": use.span[0], "most": use.span[1]},
            "solver": self.forecast.solver,
            "estimate": {
                "outputs": asdict(self.forecast.outputs),
                "bytes": asdict(self.forecast.size),
                "most_bytes": self.most_bytes,
                "seconds": asdict(self.forecast.seconds),
                "verify_seconds": self.forecast.verify_seconds,
            },
            "writes": [f"{spec.name}.onnx", f"{spec.name}.certificate.json"],
        }


def _person_json(spec: Spec, budget: EpsilonBudget) -> dict[str, Any] | None:
    """ε of a person, and the rows of those in the table; None if nobody says how many labels one
    has. With ``labels_per_user`` there is no column."""
    unit, persons = budget.unit, budget.persons
    labels = spec.privacy.labels_per_user if unit is None else unit.labels
    if labels is None:
        return None
    parts = {"total": budget.total, "prior": budget.prior, "label": budget.label}
    exact = {f"epsilon_{part}": labels * value for part, value in parts.items()}
    return {
        "column": unit and unit.column,
        "labels_per_person": labels,
        **{key: float(value) for key, value in exact.items()},
        "exact": {key: str(value) for key, value in exact.items()},
        "table": persons
        and {
            "persons": persons.persons,
            "rows": persons.rows,
            "largest": persons.largest,
            "persons_beyond": persons.over,
            "rows_beyond": persons.extra,
        },
        "epsilon_label_with_one_row": float((1 if unit is None else labels) * budget.total),
    }


def _groups_json(groups: TablesBudget) -> dict[str, Any]:
    return {
        "tables": groups.tables,
        "listed": groups.listed,
        "epsilon": float(groups.epsilon),
        "exact_epsilon": str(groups.epsilon),
        "cells": groups.cells,
        "noise": groups.noise and asdict(groups.noise),
        "declared_public_by": DECLARED_BY,
        "warnings": list(groups.odd),
    }


def plan_spec(path: Path) -> Plan:
    """The plan for a spec file. It reads no label, only columns of groups, and spends nothing.

    Raises the InputError (SpecError, DataError, BudgetError, OverBudgetError) that ``compile``
    would raise before it spends.
    """
    spec, source = load_spec(path)
    budget = find_budget(spec, path.parent)
    digest = hashlib.sha256(source).hexdigest()
    account, ledger, recalls = account_of(spec, path.parent, digest, "plan"), None, False
    if account is not None and budget.question is not None:
        ledger, recalls = account.forecast(budget.question)
    most = require_compilable(spec, budget.plan, budget.rows, run_graph=False)
    try:
        expected = forecast(spec, budget)
        use = expected_use(spec, budget, expected)
        if use is not None and use.settled:  # compile will find the same
            require_telling(spec, use.shortcomings)
        return Plan(spec, budget, expected, most, ledger, use, recalls, digest)
    except ValueError as error:
        raise InputError(f"{spec.name}: {error}") from error
