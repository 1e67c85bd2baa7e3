"""Priors by group: what is known of groups before labels are read, and what noisy counts say then.

Nothing here reads or spends: ``obtain_groups.py`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from labeldp_verify.forms import Groups
from labeldp_verify.odd_groups import odd_groups

from labeldp_compile.histogram_noise import NOISE
from labeldp_compile.prior.asked_groups import numbered
from labeldp_compile.prior.discrete_laplace import L1_SENSITIVITY, NoisyHistogram
from labeldp_compile.prior.group_plan import GroupPlan, plan_groups, plan_public_groups
from labeldp_compile.prior.group_weights import group_weights
from labeldp_compile.prior.obtain import Prior, post_processing, split_in_words
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PrivatePrior, PublicPrior


@dataclass(frozen=True)
class GroupPrior:
    """The prior of one table's rows, as ``Prior.statement``, and the public number of them."""

    size: int
    statement: dict[str, Any]

    @property
    def weights(self) -> list[int]:
        """[k]."""
        weights: list[int] = self.statement["weights"]
        return weights


@dataclass(frozen=True)
class GroupedPrior:
    """Priors by group.

    Attributes:
        groups: the map from features to tables that the artifact will have.
        pooled: the prior of the last table, and what all of them cost.
        tables: [T + 1] the last is the pooled one.
    """

    groups: Groups
    pooled: Prior
    tables: list[GroupPrior]


@dataclass(frozen=True)
class Public:
    """What is known of the groups before a label is read: the map that was asked for, and sizes."""

    asked: Groups
    sizes: Sequence[int]

    @property
    def rows(self) -> int:
        """n, in all groups and in none."""
        return sum(self.sizes)

    @property
    def odd(self) -> list[str]:
        """What is odd of the sizes, in words: whether the groups are public, only people know."""
        return odd_groups(self.asked, self.sizes)

    def plan(self, spec: Spec) -> GroupPlan:
        """How ε is divided, and which groups share a table; raises BudgetError."""
        if not isinstance(spec.prior, PrivatePrior):
            return plan_public_groups(Fraction(spec.privacy.epsilon), self.sizes)
        shape = [column.size for column in self.asked.columns]
        if not self.asked.is_plain:  # a file assigns keys to groups
            shape = [self.asked.own_tables]
        mechanism = spec.named_mechanism
        return plan_groups(
            mechanism.prior_use,
            spec.domain.size,
            Fraction(spec.privacy.epsilon),
            self.sizes,
            shape,
            spec.privacy.split,
            mechanism.kind,
        )

    def joined(self, plan: GroupPlan) -> tuple[Groups, list[int]]:
        """The map that ships, and [T + 1] the plan's number of each of its tables."""
        own = self.asked.own_tables
        of_asked = [*plan.table_of_cell, plan.tables]
        chosen = [of_asked[min(table, own)] for table in self.asked.table_of_cell]
        groups = numbered(
            self.asked.columns, [None if table == plan.tables else table for table in chosen]
        )
        order = list(dict.fromkeys(table for table in chosen if table != plan.tables))
        return groups, [*order, plan.tables]


Levels = tuple[NoisyHistogram, NoisyHistogram]
"""Noisy counts of all rows, and of all tables one behind the other."""


def priors_of(spec: Spec, public: Public, plan: GroupPlan, levels: Levels | None) -> GroupedPrior:
    """The statements of all tables, in the order of the map that ships."""
    groups, order = public.joined(plan)
    in_cells = np.array(public.sizes, dtype=np.int64)
    sizes = [int(size) for size in plan.by_table(in_cells)]
    if levels is None:
        weights = [[1] * spec.domain.size]
    else:
        weights = group_weights(plan, levels[0], levels[1], sizes, public.rows, spec.domain.size)
    statements = [
        _statement(spec, plan, levels, table, weights[table], sizes[table], public.rows)
        for table in order
    ]
    tables = [
        GroupPrior(sizes[table], statement)
        for table, statement in zip(order, statements, strict=True)
    ]
    last = statements[-1]
    pooled = Prior(last["weights"], plan.epsilon_prior, plan.epsilon_label, last)
    return GroupedPrior(groups, pooled, tables)


def _statement(
    spec: Spec,
    plan: GroupPlan,
    levels: Levels | None,
    table: int,
    weights: list[int],
    size: int,
    rows: int,
) -> dict[str, Any]:
    """The certificate's ``prior`` of one table."""
    if levels is None:
        return {"kind": "uniform", "weights": weights}
    if isinstance(spec.prior, PublicPrior):
        return {"kind": "public", "weights": weights}
    pooled = table == plan.tables
    steps = post_processing(plan.pooled_cells, shrunk=plan.shrunk)
    if not pooled:
        cells = "" if plan.group_cells is None else f"{plan.group_cells} cells of labels: "
        steps = f"{cells}leaning on the prior of all rows, which had {steps}"
    return {
        "kind": "private",
        "weights": weights,
        "rows": rows if pooled else size,
        "labels": len(weights),
        "mechanism": NOISE,
        "l1_sensitivity": L1_SENSITIVITY,
        "scale": levels[0 if pooled else 1].scale,
        "post_processing": steps,
        "split": split_in_words(spec),
    }


def sharing(found: GroupedPrior) -> GroupedPrior:
    """The same with one table for all groups of the same weights: what noise hid is nothing."""
    keys = [tuple(one.weights) for one in found.tables]
    pooled = keys[-1]
    alike: dict[tuple[int, ...], list[GroupPrior]] = {}
    for key, one in zip(keys, found.tables, strict=True):
        alike.setdefault(key, []).append(one)
    of_cell = [keys[table] for table in found.groups.table_of_cell]
    groups = numbered(found.groups.columns, [None if key == pooled else key for key in of_cell])
    tables: list[GroupPrior] = []
    for key in [*dict.fromkeys(key for key in of_cell if key != pooled), pooled]:
        size = sum(one.size for one in alike[key])
        statement = alike[key][-1].statement
        if key != pooled and "rows" in statement:
            statement = {**statement, "rows": size}
        tables.append(GroupPrior(size, statement))
    return GroupedPrior(groups, found.pooled, tables)
