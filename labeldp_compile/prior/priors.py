"""Priors of all tables: what is known before labels are read, and the weights from noisy counts.

Nothing here reads data or spends ε: ``obtain.py`` does.

Weights of labels come from noisy histograms of all rows and of tables, by post-processing.

A table is that of one or several groups of rows. A table of n rows starts from the pooled release:
its deviation from n times the pooled shares is estimated. Tables differ from each other in few
ways: older people work less in every trade. So the deviations [T, B] of all tables are split into
principal directions. Only directions whose squares are larger than noise alone would make them are
kept. For T tables of B cells of pure noise, the largest eigenvalue is about σ²·(√T + √B)²
(Marchenko and Pastur 1967).

Along each direction, a table keeps the share n²·λ/(n²·λ + σ²) (empirical Bayes), where λ is the
spread of the tables that explains all of them (Paule and Mandel 1982). If tables do not differ, no
direction is kept, and all use the pooled weights unchanged. Directions also reduce the noise of the
pooled release.

A public prior has no noise, but the counts of small tables vary by chance. Each table keeps the
share of its deviations that sampling n labels from all rows does not explain (James and Stein
1961).

The pooled release becomes the nearest histogram with the public number of rows. If negative counts
were only clipped at zero, every rare label would gain weight: half of the noise would remain, and
none of it would cancel. The number of rows n is public, so the Euclidean projection onto {c ≥ 0, Σ
c = n} removes that excess at no cost in privacy (benchmarks/prior.py measures the gain).

If ε₁ was chosen for the least expected loss, noise is as large as counts. Then differences that are
not larger than noise are removed (James and Stein 1961), so that chance does not separate labels
that are alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from labeldp_verify.forms import Groups
from labeldp_verify.usefulness.shortcomings import odd_groups
from numpy.typing import NDArray

from labeldp_compile.ledger.entries import Question
from labeldp_compile.prior.discrete_laplace import (
    L1_SENSITIVITY,
    NOISE,
    Levels,
    NoisyHistogram,
    cell_of_label,
    variance,
)
from labeldp_compile.prior.group_cells import ONE_TABLE, number_tables
from labeldp_compile.prior.plan import PriorPlan
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PersonUnit, PrivatePrior

if TYPE_CHECKING:
    from labeldp_compile.tabular.persons import PersonCounts


FINEST = 10**6  # rows to which weights are rounded at most
_SHRINK_STEPS = 1000
_STEPS = 1000  # of a row: deviations are rounded to them
# Noise makes an eigenvalue at most this factor larger than expected, plus this amount: its tails
# are longer than a Gaussian's, and among few numbers a single large one counts.
_MARGIN, _OUTLIER = 1.1, 10.0
_TIMES = 4  # the share of all that a table may have of a cell
_BISECTIONS = 60

Floats = NDArray[np.float64]


def table_weights(
    plan: PriorPlan,
    pooled: NoisyHistogram,
    tables: NoisyHistogram,
    sizes: Sequence[int],
    rows: int,
    labels: int,
) -> list[list[int]]:
    """Integer weights [T + 1][k] of all tables; the last are those of the pooled prior.

    Args:
        plan: which tables there are.
        pooled: noisy counts of all rows, [k] or ``plan.pooled_cells``.
        tables: noisy counts of all tables in order, T·k or T·``plan.table_cells``
            (``level_counts``). Scale 0 means no noise: a public prior.
        sizes: [T + 1] public rows of each table; the last is not used.
        rows: of all.
        labels: k.
    """
    everywhere = weights_of(pooled, rows, labels, shrunk=plan.shrunk)
    if not plan.tables:
        return [everywhere]
    cells = labels if plan.table_cells is None else plan.table_cells
    of_label = cell_of_label(labels, cells)
    inside = _inside(everywhere, of_label, cells)
    shares = np.bincount(of_label, weights=everywhere, minlength=cells) / sum(everywhere)
    whole = np.array(sizes[: plan.tables], dtype=np.float64)[:, None]
    away = np.array(tables.counts, dtype=np.float64).reshape(plan.tables, cells) - whole * shares
    if tables.scale:
        kept = _directions(away, whole, variance(tables.scale), shares)
    else:
        kept = _beyond_sampling(away, whole, shares)
    found = []
    for size, means, deviations in zip(sizes, whole * shares, kept, strict=False):
        if not deviations.any():
            found.append(everywhere)
            continue
        counts = [round(_STEPS * count) for count in (means + deviations).tolist()]
        masses = project_to_total(counts, _STEPS * size)
        found.append(_spread(masses, inside, of_label.tolist(), size))
    return [*found, everywhere]


def _directions(away: Floats, sizes: Floats, noise: float, shares: Floats) -> Floats:
    """[T, B] deviations along the directions that this variance of noise does not explain."""
    tables = len(away)
    squares = sizes**2
    heard = _heard(squares.mean(), noise, shares)
    away = heard * (away - away.mean(axis=1, keepdims=True))  # they sum to 0 but for noise
    eigenvalues, directions = np.linalg.eigh(away.T @ away)
    cells = np.sort(heard**2)[1:].sum()  # B − 1 if all are heard
    of_noise = noise * (_MARGIN * (math.sqrt(tables) + math.sqrt(cells)) ** 2 + _OUTLIER)
    directions = directions[:, eigenvalues > of_noise]
    along = away @ directions
    noises = noise * (heard**2 @ directions**2)
    spread = squares * _spread_of_tables(along**2, squares, noises)
    return np.asarray((spread / (spread + noises) * along) @ directions.T)


def _heard(squares: float, noise: float, shares: Floats) -> Floats:
    """[B] the share of each cell's deviations that is used: less for cells with few labels.

    A table may have a cell's labels at most ``_TIMES`` times as often as all tables do. If even
    that is less than the noise, a deviation is mostly noise, and wrong weight on a rare label costs
    much.
    """

    def kept(shares: Floats) -> Floats:
        possible = squares * (_TIMES * shares) ** 2
        return possible / (possible + noise)

    return np.minimum(1, kept(shares) / kept(np.full_like(shares, 1 / len(shares))))


def _spread_of_tables(along: Floats, squares: Floats, noises: Floats) -> Floats:
    """[d] λ with Σ c²/(n²·λ + σ²) = T, from c² [T, d] and n² [T, 1], by bisection.

    A table whose noisy size is 0 says nothing of λ.
    """
    least = squares.min(where=squares > 0, initial=np.inf)
    low, high = np.zeros(along.shape[1]), along.sum(axis=0) / least
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        more = (along / (squares * middle + noises)).sum(axis=0) > len(along)
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return low


def _beyond_sampling(away: Floats, sizes: Floats, shares: Floats) -> Floats:
    """[T, B] the share of each table's deviations that chance does not explain."""
    by_chance = sizes * (1 - (shares**2).sum())
    squares = (away**2).sum(axis=1, keepdims=True)
    kept = 1 - np.divide(by_chance, squares, out=np.ones_like(squares), where=squares > 0)
    return np.asarray(np.maximum(kept, 0) * away)


def _inside(
    weights: Sequence[int], of_label: NDArray[np.int64], cells: int
) -> list[tuple[int, int]]:
    """[k] the share of each label in its cell, as (part, whole); equal shares in an empty cell."""
    totals, members = [0] * cells, [0] * cells
    for weight, cell in zip(weights, of_label.tolist(), strict=True):
        totals[cell] += weight
        members[cell] += 1
    return [
        (weight, totals[cell]) if totals[cell] else (1, members[cell])
        for weight, cell in zip(weights, of_label.tolist(), strict=True)
    ]


def _spread(
    masses: Sequence[int], inside: Sequence[tuple[int, int]], of_label: Sequence[int], size: int
) -> list[int]:
    """[k] weights from masses of cells, rounded to a mean of at most the table's rows."""
    unit, whole = len(inside) * min(size, FINEST), sum(masses)
    return [
        (2 * unit * masses[cell] * part + whole * total) // (2 * whole * total)
        for (part, total), cell in zip(inside, of_label, strict=True)
    ]


def project_to_total(counts: Sequence[int], total: int) -> list[int]:
    """Integer weights [k] in proportion to the projection of integer counts [k]; total ≥ 1.

    The projection is max(c − τ, 0) for the τ that makes the sum ``total``. τ = (S_r − total)/r for
    the largest r whose r-th largest count exceeds it, where S_r is the sum of the r largest.
    Multiplied by r, all of this is in integers.
    """
    descending = sorted(counts, reverse=True)
    sums = list(accumulate(descending))
    support = max(
        r for r in range(1, len(counts) + 1) if r * descending[r - 1] > sums[r - 1] - total
    )
    shift = sums[support - 1] - total
    weights = [max(support * count - shift, 0) for count in counts]
    common = math.gcd(*weights)
    return [weight // common for weight in weights]


def shrunk_weights(noisy: NoisyHistogram, total: int, labels: int) -> list[int]:
    """Integer weights [labels] from noisy counts [cells] of ``total`` rows.

    Deviations from even counts are shrunk by the share of their squares that noise explains, and
    projected onto counts >= 0 that sum to the rows; each cell is spread evenly over its labels. The
    weights are rounded to a mean of at most ``total``.
    """
    counts = noisy.counts
    cells = len(counts)
    sizes = np.bincount(cell_of_label(labels, cells), minlength=cells).tolist()
    # In units of 1/labels rows, so that an even share of the rows is an integer.
    even = [total * size for size in sizes]
    away = [labels * count - mean for count, mean in zip(counts, even, strict=True)]
    squares = sum(deviation * deviation for deviation in away)
    noise = (cells - 1) * variance(noisy.scale) * labels**2
    kept = math.floor(_SHRINK_STEPS * max(1 - noise / squares, 0.0)) if squares else 0
    shrunk = [
        _SHRINK_STEPS * mean + kept * deviation for mean, deviation in zip(even, away, strict=True)
    ]
    weights = project_to_total(shrunk, _SHRINK_STEPS * labels * total)
    unit = labels * min(total, FINEST)
    whole = sum(weights)
    spread = [
        (2 * unit * w + size * whole) // (2 * size * whole)
        for w, size in zip(weights, sizes, strict=True)
    ]
    return [spread[cell] for cell in cell_of_label(labels, cells).tolist()]


def weights_of(noisy: NoisyHistogram, total: int, labels: int, *, shrunk: bool) -> list[int]:
    """Integer weights [labels] from noisy counts of ``total`` rows, shrunk towards even or not."""
    return shrunk_weights(noisy, total, labels) if shrunk else project_to_total(noisy.counts, total)


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
