"""Estimates from an artifact with tables by group: each group by its own table, and together.

What rows of several tables say together is the mean of what each says, weighted with its rows,
which are public. An interval of it follows from those of the parts: either end lies as far from the
estimate as the root of the sum of squares of the parts' distances (MOVER: Zou and Donner,
*Construction of confidence limits about effect measures*, 2008). Of a population, the shares of the
groups are not known, but estimated by those of the rows, whose variance is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from labeldp_verify.verified import DecodedGroups
from numpy.typing import NDArray

from labeldp_compile.tools.estimate.estimate import Estimation, GroupEstimates, Parts
from labeldp_compile.tools.estimate.functionals import quantiles
from labeldp_compile.tools.estimate.intervals import MIN_ROWS, Estimates, Target, Z
from labeldp_compile.tools.estimate.inversion import LabelClasses, NotEstimableError
from labeldp_compile.tools.estimate.private_counts import GroupCounts
from labeldp_compile.tools.estimate.shares import project_to_simplex
from labeldp_compile.tools.inspection import Decoded

Floats = NDArray[np.float64]
Strata = Mapping[int, GroupCounts]
"""The outputs of rows by the number of their table."""


@dataclass(frozen=True)
class Stratified:
    """Rows that are estimated together: their name, and their outputs by table."""

    name: Any
    strata: Strata


@dataclass
class GroupedEstimation:
    """The estimators of an artifact with tables by group, for the tables that rows have.

    Attributes:
        grouped: the verified artifact.
        tables: the numbers of the tables that occur.
        refused: what cannot be estimated: mean, histogram, quantiles → the reason.
    """

    grouped: DecodedGroups
    tables: Sequence[int]
    refused: dict[str, str] = field(default_factory=dict)
    _parts: dict[int, Estimation] = field(default_factory=dict)

    @classmethod
    def of(cls, grouped: DecodedGroups, tables: Sequence[int]) -> GroupedEstimation:
        """Raises NotEstimableError if neither means nor histograms can be had of all tables."""
        self = cls(grouped, tables)
        for table in tables:
            name = grouped.randomizer.groups.name(table)
            try:
                part = Estimation.of(grouped.table(table))
            except NotEstimableError as error:
                raise NotEstimableError(f"group {name}: {error}") from None
            self._parts[table] = part
            for what, reason in part.refused.items():
                self.refused.setdefault(what, f"group {name}: {reason}")
        first = self._parts[tables[0]].classes.of_label
        if any((part.classes.of_label != first).any() for part in self._parts.values()):
            reason = "its tables tell different classes of labels apart"
            for what in ("histogram", "quantiles"):
                self.refused.setdefault(what, reason)
        if {"mean", "histogram"} <= set(self.refused):
            raise NotEstimableError(
                f"no histogram: {self.refused['histogram']}; no mean: {self.refused['mean']}"
            )
        return self

    @cached_property
    def decoded(self) -> Decoded:
        """The table of all other rows: its domain is that of all."""
        return self.grouped.table(self.grouped.randomizer.groups.own_tables)

    @property
    def classes(self) -> LabelClasses:
        """Of labels that every table tells apart, if there is a histogram."""
        return self._parts[self.tables[0]].classes

    def __call__(
        self,
        groups: Sequence[Stratified],
        target: Target,
        progress: Callable[[int], None] = lambda rows: None,
    ) -> list[GroupEstimates]:
        """The estimates of each; ``progress`` is told the rows of each when it is done."""
        found = []
        for group in groups:
            found.append(self._of(group, target))
            progress(found[-1].rows)
        return found

    def are_hardly_private(self, group: Stratified) -> bool:
        """Whether some table's estimates are further outside of what is possible than by chance."""
        parts = group.strata.items()
        return any(self._parts[t].are_hardly_private(counts, len(parts)) for t, counts in parts)

    def _of(self, group: Stratified, target: Target) -> GroupEstimates:
        parts = [self._parts[t].parts(counts, target) for t, counts in group.strata.items()]
        rows = np.array([counts.rows for counts in group.strata.values()])
        total = int(rows.sum())

        def of(what: str, pick: Callable[[Parts], Estimates | None]) -> Estimates | None:
            each = [pick(part) for part in parts]
            known = [one for one in each if one is not None]
            if what in self.refused or len(known) < len(each):
                return None
            return together(known, rows, target)

        mean = of("mean", lambda part: part.mean)
        histogram = of("histogram", lambda part: part.histogram)
        cumulative = of("quantiles", lambda part: part.cumulative)
        projected = None if histogram is None else project_to_simplex(histogram.value)
        found = None
        if cumulative is not None and projected is not None:
            found = quantiles(cumulative, projected)
        return GroupEstimates(group.name, total, mean, histogram, projected, found)


AnyEstimation = Estimation | GroupedEstimation


def together(parts: Sequence[Estimates], rows: NDArray[Any], target: Target) -> Estimates:
    """Estimates [f] of the mean over all rows, from those of parts of so many ``rows``."""
    if len(parts) == 1:
        return parts[0]
    total = int(rows.sum())
    weights = (rows / total)[:, None]
    values, errors = (np.array([getattr(p, name) for p in parts]) for name in ("value", "error"))
    value = (weights * values).sum(axis=0)
    between = np.zeros_like(value)
    if target == "population":
        between = (weights * (values - value) ** 2).sum(axis=0) / total
    ends = []
    for name, side in (("low", -1), ("high", 1)):
        reach = np.abs(np.array([getattr(p, name) for p in parts]) - values)
        # Parts of few rows have no interval of their own; of many such parts the sum has one.
        reach = np.where(np.isnan(reach), Z * errors, reach)
        ends.append(value + side * np.sqrt(((weights * reach) ** 2).sum(axis=0) + Z**2 * between))
    error = np.sqrt(((weights * errors) ** 2).sum(axis=0) + between)
    if total < MIN_ROWS:
        ends = [np.full_like(value, np.nan)] * 2
    return Estimates(value, error, *ends)
