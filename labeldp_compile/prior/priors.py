"""Priors of all tables: what is known before labels are read, and the weights from noisy counts.

Nothing here reads data or spends ε: ``obtain.py`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from labeldp_verify.forms import Groups
from labeldp_verify.usefulness.shortcomings import odd_groups

from labeldp_compile.ledger.entries import Question
from labeldp_compile.prior.discrete_laplace import L1_SENSITIVITY, NOISE, Levels
from labeldp_compile.prior.group_cells import ONE_TABLE, number_tables
from labeldp_compile.prior.split import PriorPlan
from labeldp_compile.prior.weights import table_weights
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PersonUnit, PrivatePrior

if TYPE_CHECKING:
    from labeldp_compile.tabular.persons import PersonCounts


@dataclass(frozen=True)
class TablePrior:
    """The prior of one table's rows, and their public number, if it is known.

    ``statement`` is its part of the certificate: the ``weights``, and what ε₁ was spent on.
    """

    statement: dict[str, Any]
    size: int = 0

    @property
    def weights(self) -> list[int]:
        """[k] integers in proportion to the prior."""
        return self.statement["weights"]


@dataclass(frozen=True)
class Prior:
    """The priors of all tables, and the parts of ε.

    Attributes:
        epsilon_prior: ε₁, which all of them spend together.
        epsilon_label: ε₂.
        tables: [T + 1] the last is that of all rows; rows in no other table use it.
        groups: the map from public columns to tables that the artifact will have.
    """

    epsilon_prior: Fraction
    epsilon_label: Fraction
    tables: Sequence[TablePrior]
    groups: Groups = ONE_TABLE

    @classmethod
    def of(
        cls,
        statement: dict[str, Any],
        epsilon_label: Fraction,
        epsilon_prior: Fraction = Fraction(0),
    ) -> Prior:
        """One prior for all rows."""
        return cls(epsilon_prior, epsilon_label, (TablePrior(statement),))

    @property
    def weights(self) -> list[int]:
        """[k] of the last table."""
        return self.tables[-1].weights

    @property
    def statement(self) -> dict[str, Any]:
        """Of the last table."""
        return self.tables[-1].statement

    @property
    def rows(self) -> int | None:
        """n, where it is stated."""
        return self.statement.get("rows")

    def to_answer(self) -> dict[str, Any]:
        """The statement that a ledger keeps; with several tables, it contains the others."""
        if not self.groups.columns:
            return self.statement
        listed = [{"size": one.size, "prior": one.statement} for one in self.tables]
        return {**self.statement, "groups": listed}

    @classmethod
    def of_answer(
        cls, answer: dict[str, Any], plan: PriorPlan, groups: Groups, split: str
    ) -> Prior:
        """The priors in ``to_answer``'s dict, as a spec with this ``split`` states them."""
        listed = answer.get("groups", [{"size": answer["rows"], "prior": answer}])
        tables = [TablePrior({**one["prior"], "split": split}, one["size"]) for one in listed]
        return cls(plan.epsilon_prior, plan.epsilon_label, tables, groups)


@dataclass(frozen=True)
class PersonsSeen:
    """Public facts on the persons of a table: how many, their rows, and the ``extra`` rows beyond
    ``most`` of a person; ``largest`` is the most rows of one."""

    column: str
    most: int
    persons: int
    rows: int
    largest: int
    over: int
    extra: int

    @classmethod
    def of(cls, counts: PersonCounts, unit: PersonUnit) -> PersonsSeen:
        """From the counts of a table."""
        facts = counts.persons, counts.rows, counts.largest, *counts.beyond(unit.labels)
        return cls(unit.column, unit.labels, *facts)

    def left_out(self) -> str:
        """Which rows the prior does not count."""
        return (
            f"{self.over:,} of {self.persons:,} in {self.column!r} have more than {self.most:,} "
            f"rows; the prior counts the first {self.most:,} of each, and leaves out "
            f"{self.extra:,} rows"
        )


@dataclass(frozen=True)
class PublicFacts:
    """The facts before a label is read: the map that was asked for, and its sizes [T + 1].

    With a bound on the rows of a person, sizes count the rows within it, and ``persons`` all.

    If the number of rows is unknown until the labels are counted, the only size is 0.
    """

    asked: Groups
    sizes: Sequence[int] = (0,)
    persons: PersonsSeen | None = None

    @property
    def rows(self) -> int:
        """n, in all tables; 0 if it is not known."""
        return sum(self.sizes)

    @property
    def odd(self) -> list[str]:
        """Oddities of the sizes, in words: only people know whether groups are public."""
        return odd_groups(self.asked, self.sizes) if self.asked.columns else []

    def joined(self, plan: PriorPlan) -> tuple[Groups, list[int]]:
        """The map that ships, and [T + 1] the plan's number of each of its tables."""
        own = self.asked.own_tables
        of_asked = [*plan.table_of_cell, plan.tables]
        chosen = [of_asked[min(table, own)] for table in self.asked.table_of_cell]
        groups = number_tables(
            self.asked.columns, [None if table == plan.tables else table for table in chosen]
        )
        order = list(dict.fromkeys(table for table in chosen if table != plan.tables))
        return groups, [*order, plan.tables]

    def question(self, spec: Spec, plan: PriorPlan) -> Question:
        """Everything except the data that decides the noisy histograms."""
        by_table = {
            "columns": [{"name": one.name, **one.to_json()} for one in self.asked.columns],
            "table_of_cell": list(self.asked.table_of_cell),
            "epsilon": str(plan.epsilon_tables),
            "cells": plan.table_cells,
            "tables": list(plan.table_of_cell),
        }
        prior = spec.prior
        assert isinstance(prior, PrivatePrior)
        return Question(
            column=spec.label.key,
            counts=prior.counts,
            domain=spec.domain.to_json(),
            epsilon=spec.privacy.labels_of_unit * plan.epsilon_prior,
            form=prior.form,
            cells=plan.pooled_cells,
            groups=by_table if self.asked.columns else None,
            person=None if spec.privacy.person is None else vars(spec.privacy.person),
        )


def priors_of(spec: Spec, known: PublicFacts, plan: PriorPlan, levels: Levels | None) -> Prior:
    """The priors of all tables, in the order of the map that ships; uniform without counts."""
    groups, order = known.joined(plan)
    sizes = plan.by_table(np.array(known.sizes, dtype=np.int64)).tolist()
    if levels is None:
        weights = [[1] * spec.domain.size]
    elif not (known.asked.columns or levels[0].scale):
        weights = [levels[0].counts]  # public counts, as they are
    else:
        weights = table_weights(plan, *levels, sizes, known.rows, spec.domain.size)
    tables = []
    for table in order:
        statement: dict[str, Any] = {"kind": "uniform" if levels is None else spec.prior.kind}
        statement["weights"] = weights[table]
        if levels is not None and isinstance(spec.prior, PrivatePrior):
            rows = known.rows if table == plan.tables else sizes[table]
            statement |= _release(spec, plan, levels, table, rows)
        tables.append(TablePrior(statement, sizes[table]))
    return Prior(plan.epsilon_prior, plan.epsilon_label, tables, groups)


def _release(spec: Spec, plan: PriorPlan, levels: Levels, table: int, rows: int) -> dict[str, Any]:
    """The certificate's statement about a table's noisy histogram."""
    pooled = table == plan.tables
    steps = _post_processing(plan)
    if not pooled:
        cells = "" if plan.table_cells is None else f"{plan.table_cells} cells of labels: "
        steps = f"{cells}leaning on the prior of all rows, which had {steps}"
    return {
        "rows": rows,
        "labels": spec.domain.size,
        "mechanism": NOISE,
        "l1_sensitivity": L1_SENSITIVITY,
        "scale": levels[0 if pooled else 1].scale,
        "post_processing": steps,
        "split": spec.privacy.split_in_words,
    }


def _post_processing(plan: PriorPlan) -> str:
    """How the noisy counts were processed, and which cells they count if not labels."""
    steps = "projection onto counts >= 0 that sum to the rows"
    if plan.shrunk:
        steps = f"shrinking towards even counts, then {steps}"
    if plan.pooled_cells is not None:
        cells = f"{plan.pooled_cells} cells of neighbouring labels"
        steps = f"{cells}: {steps}, each cell spread evenly"
    return steps


def merge_equal_tables(found: Prior) -> Prior:
    """These priors, with one table for all cells of equal weights."""
    keys = [tuple(one.weights) for one in found.tables]
    pooled = keys[-1]
    alike: dict[tuple[int, ...], list[TablePrior]] = {}
    for key, one in zip(keys, found.tables, strict=True):
        alike.setdefault(key, []).append(one)
    of_cell = [keys[table] for table in found.groups.table_of_cell]
    groups = number_tables(
        found.groups.columns, [None if key == pooled else key for key in of_cell]
    )
    tables: list[TablePrior] = []
    for key in [*dict.fromkeys(key for key in of_cell if key != pooled), pooled]:
        size = sum(one.size for one in alike[key])
        statement = alike[key][-1].statement
        if key != pooled and "rows" in statement:
            statement = {**statement, "rows": size}
        tables.append(TablePrior(statement, size))
    return Prior(found.epsilon_prior, found.epsilon_label, tables, groups)
