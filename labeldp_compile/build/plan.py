"""The plan of a compile: the checks that come before spending, and estimates of the rest.

A saved plan is a file: compile does exactly what was approved in it, or nothing. It holds no label
and nothing that depends on one: the digest of the spec, the exact parts of ε, the mechanism, and of
each table its columns, their types and its number of rows. Files that the spec declares public have
their digests, too. A digest of labels would let anybody confirm a guess.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from labeldp_verify.claims import DECLARED_BY, nulls_in_words

from labeldp_compile.build.forecast import (
    EpsilonBudget,
    ExpectedUse,
    Forecast,
    TablesBudget,
    expected_use,
    find_budget,
    forecast,
    is_unpaid,
)
from labeldp_compile.build.pipeline import require_compilable, require_telling
from labeldp_compile.errors import InputError
from labeldp_compile.ledger.prior_account import account_of
from labeldp_compile.prior.plan import PriorPlan
from labeldp_compile.project import PROJECT_FILE, find_project
from labeldp_compile.spec import Spec, load_spec
from labeldp_compile.spec.label import QuantileGrid
from labeldp_compile.spec.model import PublicPrior
from labeldp_compile.tabular.formats import PLAIN, TextForm, files_of
from labeldp_compile.whole_file import file_digest, read_record, write_record
from labeldp_compile.yaml_model import Strict

FORMAT_VERSION = "1.0"


@dataclass(frozen=True)
class Plan:
    """The plan of a compile.

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


_WORDS = {
    "spec_sha256": "the spec",
    "mechanism": "the mechanism",
    "epsilon_prior": "ε of the prior",
    "epsilon_label": "ε per label",
    "spends": "what is spent now",
    "rows": "the number of rows",
    "tables": "the tables by group",
    "files": "the columns, types or rows of a table, a public file or labeldp.yaml",
}


class ChangedError(InputError):
    """Something is not as it was when the plan was saved; nothing was spent."""

    exit_code = 1


class Approved(Strict):
    """All that is approved.

    Attributes:
        spends: ε that compile adds to the ledger; 0 if it recalls the prior.
        rows: of the table of the prior, if that is known.
        tables: randomizers, with that of rows without a group.
        files: columns, types and rows of each file that the spec names; the digest of a public one.
    """

    name: str
    spec_sha256: str
    mechanism: dict[str, Any]
    epsilon_prior: str
    epsilon_label: str
    spends: str
    rows: int | None
    tables: int
    files: list[dict[str, Any]]


class _PlanRecord(Strict):
    format_version: Literal["1.0"] = "1.0"
    spec: str
    approved: Approved
    policy: dict[str, Any] | None


@dataclass(frozen=True)
class SavedPlan:
    """A plan that was read from a file: the paths of the file and of its spec."""

    path: Path
    spec: Path
    approved: Approved

    def require_same(self) -> None:
        """Raise ChangedError unless the spec and its data are as they were. Reads no label."""
        spec, data = load_spec(self.spec)
        digest = hashlib.sha256(data).hexdigest()
        self.require_spec(digest)
        budget = find_budget(spec, self.spec.parent)
        account = account_of(spec, self.spec.parent, digest, "plan")
        recalls = False
        if account is not None and budget.question is not None:
            recalls = account.forecast(budget.question)[1]
        now = dict(_facts(spec, digest, self.spec.parent, budget, recalls=recalls))
        if recalls:  # to spend less than was approved is no change
            now["spends"] = self.approved.spends
        self._require({key: now[key] for key in _WORDS})

    def require_spec(self, digest: str) -> None:
        """Raise ChangedError unless the spec has this SHA-256."""
        self._require({"spec_sha256": digest})

    def require_spending(self, plan: PriorPlan, rows: int | None) -> None:
        """Raise ChangedError unless this is what was approved; compile asks before it spends."""
        now: dict[str, Any] = {
            "epsilon_prior": str(plan.epsilon_prior),
            "epsilon_label": str(plan.epsilon_label),
            "spends": str(plan.epsilon_prior),
            "tables": plan.tables + 1,
        }
        if self.approved.rows is not None and rows is not None:
            now["rows"] = rows
        self._require(now)

    def _require(self, now: dict[str, Any]) -> None:
        differing = [key for key, value in now.items() if getattr(self.approved, key) != value]
        if differing:
            raise self._changed(differing)

    def _changed(self, keys: list[str]) -> ChangedError:
        what = ", ".join(_WORDS[key] for key in keys)
        return ChangedError(
            f"{self.path}: changed since this plan was saved: {what}. Nothing was spent: plan "
            "again, and have the new plan approved"
        )


def save_plan(plan: Plan, spec: Path, path: Path, policy: dict[str, Any] | None) -> None:
    """Write the plan of a spec, whole or not at all; ``policy`` is what was demanded of it."""
    source = plan.spec_sha256
    approved = _facts(plan.spec, source, spec.parent, plan.budget, recalls=plan.recalls)
    relative = os.path.relpath(spec.absolute(), path.absolute().parent)
    write_record(path, _PlanRecord(spec=relative, approved=approved, policy=policy))


def read_plan(path: Path) -> SavedPlan:
    """The plan in a file. Raises InputError for anything but a file of ``save_plan``."""
    record = read_record(path, _PlanRecord)
    if record is None:
        raise InputError(f"{path}: is no plan of this version's labeldp plan --out, or is damaged")
    return SavedPlan(path, path.parent / record.spec, record.approved)


def _facts(
    spec: Spec, digest: str, folder: Path, budget: EpsilonBudget, *, recalls: bool
) -> Approved:
    return Approved(
        name=spec.name,
        spec_sha256=digest,
        mechanism=spec.named_mechanism.model_dump(mode="json"),
        epsilon_prior=str(budget.prior),
        epsilon_label=str(budget.label),
        spends=str(Fraction(0) if recalls else budget.prior),
        rows=budget.rows,
        tables=budget.plan.tables + 1,
        files=list(_files(spec, folder)),
    )


def _files(spec: Spec, folder: Path) -> Iterator[dict[str, Any]]:
    """Columns, types and rows of each file that the spec names; the digest of a public one.

    The project file beside the spec is one of these.
    """
    if (project := find_project(folder)) is not None:
        yield {
            "file": PROJECT_FILE,
            "columns": [],
            "rows": None,
            "sha256": file_digest(project.path),
        }
    data = getattr(spec.prior, "data", None)
    if data is not None:
        form = spec.prior.form  # type: ignore[union-attr]  # what has data has a form
        yield from _parts(data, folder, form, public=isinstance(spec.prior, PublicPrior))
    assign = None if spec.groups is None else spec.groups.assign
    if assign is not None:
        yield from _parts(assign.file, folder, assign.form, public=True)
    for column in spec.label.each:
        grid = getattr(column.domain, "grid", None)
        if isinstance(grid, QuantileGrid):
            yield from _parts(grid.data, folder, grid.form, public=True)


def _parts(
    name: str, folder: Path, form: TextForm = PLAIN, *, public: bool
) -> Iterator[dict[str, Any]]:
    from labeldp_compile.tabular.reader import read_schema  # noqa: PLC0415  # pyarrow

    for path in files_of(folder / name):
        schema, rows, _ = read_schema(path, form)
        columns = [[one.name, str(one.type)] for one in schema]
        part = os.path.relpath(path, folder)
        yield {
            "file": part,
            "columns": columns,
            "rows": rows,
            "sha256": file_digest(path) if public else None,
        }
