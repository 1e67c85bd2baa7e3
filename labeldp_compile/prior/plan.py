"""The ε of priors, and which public groups have their own: decided before a label is read.

There are two levels: one histogram of all rows, and one for each table of groups. Those of the
tables compose in parallel, so they spend their ε once: a replaced label moves one unit inside its
own group, so the L1 sensitivity is 2 in total. Only public facts decide: the sizes of the groups,
the number of labels, ε, and the figures of ``mechanisms/mechanism.py``.

It is not known whether groups differ. So ``auto`` plans the pooled histogram as it would be alone
(see the split below). It adds a level whose ε is taken from the label and costs at most 1% of the
loss. Within that limit it minimises, for T tables of B cells, with ε₂ = s·ε of n rows,

    slope·s + tell·(noise/2·T·r + coarse(B)/6),    r = √8·B / (n·s·ε),

which is the loss of the split below, averaged over the rows: a table's noise is relative to its
own rows. The noise counts half, because groups differ in few ways (``prior/priors.py``). Joining
labels counts a sixth, because labels inside a cell are spread as in all rows.

The split between the prior and the label is exact. ``auto`` minimises the expected loss, relative
to the loss with the true prior and all of ε for the label. A histogram of B cells, each of labels
that are next to one another, has ε₁ = s·ε. The loss is then

    slope·s + gain·(noise·r + coarse(B)),    r = √8·B / (n·s·ε),

where r is the standard deviation of a cell's noise (discrete Laplace of scale 2/ε₁) in units of the
average cell. ``mechanisms/mechanism.py`` has slope, gain, noise and coarse. The best s for each B
has a closed form, and the best B is taken. If that costs about as much as the ``gain``, a uniform
prior is taken, which spends nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from labeldp_verify.forms import Groups
from numpy.typing import NDArray

from labeldp_compile.errors import BudgetError
from labeldp_compile.mechanisms.mechanism import PriorUse
from labeldp_compile.prior.discrete_laplace import coarse
from labeldp_compile.prior.group_cells import ONE_TABLE
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PrivatePrior

_DIGITS = 6  # of ε₁ = √(k/n)
AUTO_DIGITS = 2  # of auto's: the same on machines whose float64 functions differ in the last bit
NOISE_OF_CELL = math.sqrt(8)  # standard deviation of Laplace noise of scale 2/ε₁, times ε₁
MOST_FOR_PRIOR = 0.5  # of ε, at most, for a prior
_WORTH_IT = 0.75  # of the gain that a uniform prior gives up: the model is not more exact
_LEAST_CELLS = 2


@dataclass(frozen=True)
class PriorPlan:
    """The ε of private histograms, and which these are.

    Attributes:
        epsilon_pooled: for the histogram of all rows; 0 for a uniform prior, which reads no label.
        epsilon_label: ε₂; all parts sum to ε exactly.
        pooled_cells: its number of cells of neighbouring labels; None if each label is a cell.
        shrunk: whether its noisy counts are shrunk towards even ones.
        reason: what was chosen, and why, in a sentence; None if the spec gives the split.
        epsilon_tables: for the histograms of the tables, together; 0 if all use the pooled prior.
        table_cells: as ``pooled_cells``, of the tables' histograms.
        table_of_cell: [C] the table of each cell of the public columns; ``tables`` is the number
            of the pooled one, which unlisted and missing values use, too.
        tables: T, the tables with their own histograms.
    """

    epsilon_pooled: Fraction
    epsilon_label: Fraction
    pooled_cells: int | None = None
    shrunk: bool = False
    reason: str | None = None
    epsilon_tables: Fraction = Fraction(0)
    table_cells: int | None = None
    table_of_cell: tuple[int, ...] = ()
    tables: int = 0

    @property
    def epsilon_prior(self) -> Fraction:
        """ε₁: the two levels are about the same labels."""
        return self.epsilon_pooled + self.epsilon_tables

    @property
    def is_uniform(self) -> bool:
        """Whether nothing is spent: private priors are uniform then."""
        return self.epsilon_prior == 0

    def by_table(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """[T + 1, …] sums by table of sizes or counts by cell [C + 1, …].

        The last is that of the pooled table: it sums the rows that use it, not all rows.
        """
        found = np.zeros((self.tables + 1, *cells.shape[1:]), dtype=np.int64)
        np.add.at(found, [*self.table_of_cell, self.tables], cells)
        return found


def plan_of(
    use: PriorUse | None,
    labels: int,
    epsilon: Fraction,
    rows: int,
    split: Literal["auto", "paper"] | tuple[Fraction, Fraction],
    mechanism: str = "the mechanism",
) -> PriorPlan:
    """The plan of one histogram of all rows; ``mechanism`` is only named in the reason.

    Every ε is that of one label; a given ``split`` has the parts for prior and label.

    Raises BudgetError if ``split: paper`` leaves nothing for the label.
    """
    if isinstance(split, tuple):
        return PriorPlan(*split)
    if split == "paper":
        return PriorPlan(*paper_split(epsilon, rows, labels))
    if use is None:
        reason = f"{mechanism} is the same for every prior, so nothing is spent on one"
        return PriorPlan(Fraction(0), epsilon, None, False, reason)
    return _best(use, labels, epsilon, rows)


def paper_split(epsilon: Fraction, rows: int, labels: int) -> tuple[Fraction, Fraction]:
    """(ε₁, ε₂) with ε₁ = √(k/n), rounded down to 6 significant digits.

    With this choice, the loss of estimating the prior vanishes as n grows (RR-on-Bins paper,
    Theorem 7). Raises BudgetError unless n > k/ε²: otherwise nothing is left for the label.
    """
    if rows * epsilon**2 <= labels:
        needed = math.floor(labels / epsilon**2) + 1
        raise BudgetError(
            f"split: paper spends ε₁ = √(k/n) on the prior. With k = {labels} labels and "
            f"n = {rows} rows that is all of ε = {float(epsilon):g} (it needs n ≥ {needed}). "
            "Use split: auto; or give the parts, as in split: {prior: …, label: …}; or use a prior "
            "that spends nothing (prior: {kind: public} or {kind: uniform})"
        )
    prior = rounded_down(math.sqrt(labels / rows), _DIGITS)
    return prior, epsilon - prior


def _best(use: PriorUse, labels: int, epsilon: Fraction, rows: int) -> PriorPlan:
    cost, share, cells = min(_choices(use, labels, float(epsilon), rows))
    data = f"{rows:,} rows, {labels:,} labels and ε = {float(epsilon):g}"
    if cost > _WORTH_IT * use.gain(float(epsilon)):
        reason = (
            f"no histogram is taken. With {data}, it would cost about as much as it gains, or "
            "more; the prior is uniform, and the label gets all of ε"
        )
        return PriorPlan(Fraction(0), epsilon, None, False, reason)
    prior = rounded_down(share * float(epsilon), AUTO_DIGITS)
    over = "a histogram" if cells == labels else f"a rough histogram ({cells:,} bins)"
    reason = (
        f"spends ε = {float(prior):g} on {over} so that the rest can be placed better. The "
        f"expected loss is least with this split, for {data}"
    )
    return PriorPlan(prior, epsilon - prior, None if cells == labels else cells, True, reason)


def _choices(
    use: PriorUse, labels: int, epsilon: float, rows: int
) -> list[tuple[float, float, int]]:
    """(expected relative loss, share of ε for the prior, cells) for every number of cells."""
    gain, slope = use.gain(epsilon), use.slope(epsilon)
    found = []
    for cells in cell_numbers(labels) if use.coarse is not None else [labels]:
        lost = 0.0 if use.coarse is None or cells == labels else use.coarse(cells)
        noise = gain * use.noise * NOISE_OF_CELL * cells / (rows * epsilon)  # over s
        share = min(math.sqrt(noise / slope), MOST_FOR_PRIOR)
        found.append((slope * share + noise / share + gain * lost, share, cells))
    return found


def cell_numbers(labels: int) -> list[int]:
    """2, 3, 4, 6, 8, 12 … while cells have at least two labels on average; and all labels."""
    powers = [_LEAST_CELLS << e for e in range(labels.bit_length())]
    numbers = sorted({*powers, *(3 * power // 2 for power in powers)})
    return [*(number for number in numbers if 2 * number <= labels), labels]


def rounded_down(number: float, digits: int) -> Fraction:
    """A positive number, rounded down to ``digits`` significant digits, exactly."""
    places = digits - 1 - math.floor(math.log10(number))
    if places >= 0:
        return Fraction(math.floor(number * 10**places), 10**places)
    return Fraction(math.floor(number / 10**-places) * 10**-places)


_AT_MOST = 0.01  # of the loss, for a level that may show nothing
_LEAST_GAIN = 0.1  # of one prior: below it, groups gain less than they cost
_TELL = 6.0  # gain from groups that tell, relative to what is then lost, by that of one prior
_NOISE = 0.5  # of that of one prior
_COARSE = 1 / 6  # of that of one prior
_LEAST_TABLE_CELLS = 4  # for which a group must have enough rows
_MOST_NOISE = 3  # standard deviations of it to a group's average cell
_LEAST_SHARE = 0.1  # of the rows, in groups of their own


def needs_rows(spec: Spec) -> bool:
    """Whether the plan depends on the number of rows."""
    split = spec.privacy.split
    by_rows = split == "paper" or (split == "auto" and spec.named_mechanism.prior_use is not None)
    return isinstance(spec.prior, PrivatePrior) and by_rows


def plan_prior(spec: Spec, sizes: Sequence[int], asked: Groups = ONE_TABLE) -> PriorPlan:
    """How ε is split, and which cells share a table, for a spec whose prior has data.

    ``sizes`` [C + 1] are the public rows of each table that was ``asked`` for, and of all others.
    They are [0] if ``needs_rows`` is false and they are not known. Raises BudgetError if ``split:
    paper`` leaves nothing for the label.
    """
    if not isinstance(spec.prior, PrivatePrior):
        return plan_public(spec.privacy.per_label, sizes)
    shape = [column.size for column in asked.columns]
    if not asked.is_plain:  # a file assigns keys to groups
        shape = [asked.own_tables]
    mechanism = spec.named_mechanism
    return plan_tables(
        mechanism.prior_use,
        spec.domain.size,
        spec.privacy.per_label,
        sizes,
        shape,
        spec.privacy.split_of_label,
        mechanism.kind,
    )


def plan_tables(
    use: PriorUse | None,
    labels: int,
    epsilon: Fraction,
    sizes: Sequence[int],
    shape: Sequence[int],
    split: Literal["auto", "paper"] | tuple[Fraction, Fraction] = "auto",
    mechanism: str = "the mechanism",
) -> PriorPlan:
    """The plan for public groups with these numbers of rows; without groups, that of ``plan_of``.

    Args:
        use: of the mechanism; None if it is the same for every prior.
        labels: k.
        epsilon: ε in all.
        sizes: [C + 1] rows of each cell, and of those that are not listed; not all 0.
        shape: values or bands of each column; C is their product, the last column the fastest.
        split: of the spec. ε₁ of ``paper`` or given parts is divided between the levels; the pooled
            histogram then has the cells that ``auto`` would take.
        mechanism: only named in the reason.

    Raises BudgetError where ``split: paper`` leaves nothing for the label.
    """
    if math.prod(shape) + 1 != len(sizes):
        raise ValueError(f"{len(sizes)} sizes do not fit groups of shape {tuple(shape)}")
    rows = sum(sizes)
    pooled = plan_of(use, labels, epsilon, rows, split, mechanism)
    if use is None or pooled.is_uniform or len(sizes) == 1:
        return _all_pooled(pooled, sizes, "all groups use one prior")
    if use.gain(float(epsilon)) < _LEAST_GAIN:
        return _all_pooled(pooled, sizes, "at this ε the mechanism gains little from any prior")
    level = _Level(use, labels, float(epsilon), rows, pooled, given=pooled.reason is None)
    if level.given:
        level = replace(level, pooled=_as_auto_would(use, labels, rows, pooled))
    allowed = level.most()
    if allowed <= 0:
        return _all_pooled(pooled, sizes, "no ε is left for priors by group")
    most = rounded_down(allowed, AUTO_DIGITS)
    least = level.least_rows(most)
    tables, left = _join(sizes, shape, least)
    why = f"at the ε that it may spend, a group's own prior needs {least:,} rows"
    covered = rows - sizes[-1] - sum(sizes[cell] for cell in left)
    if covered < _LEAST_SHARE * rows:
        return _all_pooled(pooled, sizes, f"{why}, and too few rows are in groups of that size")
    if len(tables) == 1 and covered == rows:
        return _all_pooled(pooled, sizes, "there is only one group, with all rows")
    spent, cells = level.best(len(tables), most)
    filled = sum(size > 0 for size in sizes[:-1])
    reason = _in_words(spent, cells, labels, tables, filled, len(left), least)
    taken = (spent, 0) if level.given else (0, spent)
    return replace(
        level.pooled,
        epsilon_pooled=pooled.epsilon_pooled - taken[0],
        epsilon_label=pooled.epsilon_label - taken[1],
        epsilon_tables=spent,
        table_cells=None if cells == labels else cells,
        table_of_cell=table_numbers(tables, len(sizes) - 1),
        tables=len(tables),
        reason=reason if level.given else f"{pooled.reason}. {reason}",
    )


def plan_public(epsilon: Fraction, sizes: Sequence[int]) -> PriorPlan:
    """The plan for priors that spend nothing: every cell [C] with rows has its own table."""
    found = plan_each_table(Fraction(0), epsilon, sizes)
    reason = (
        f"{found.tables:,} groups with rows have their own tables: a public prior spends nothing"
    )
    return replace(found, reason=reason) if len(sizes) > 1 else found


def plan_each_table(
    epsilon_tables: Fraction, epsilon_label: Fraction, sizes: Sequence[int]
) -> PriorPlan:
    """Every cell [C] with rows has its own table. Only their histograms spend ε: the histogram of
    all rows is their sum.
    """
    tables = [[cell] for cell, size in enumerate(sizes[:-1]) if size]
    return PriorPlan(
        epsilon_pooled=Fraction(0),
        epsilon_tables=epsilon_tables,
        epsilon_label=epsilon_label,
        table_of_cell=table_numbers(tables, len(sizes) - 1),
        tables=len(tables),
    )


def level_counts(
    plan: PriorPlan, counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The counts that get noise, from counts [T + 1, k] of the labels in each table.

    Returns:
        The pooled histogram [cells] of all rows, and the histograms of all tables one after the
        other [T·cells]. One label moves one unit between two of their counts: L1 sensitivity 2.
    """
    everything, tables = counts.sum(axis=0), counts[: plan.tables]
    if plan.pooled_cells is not None:
        everything = coarse(everything, plan.pooled_cells)
    if plan.table_cells is not None:
        tables = np.array([coarse(table, plan.table_cells) for table in tables], dtype=np.int64)
    return everything, tables.reshape(-1)


def table_numbers(tables: Sequence[Sequence[int]], cells: int) -> tuple[int, ...]:
    """[C] the number of each cell's table; for cells in no table, the number of tables."""
    found = [len(tables)] * cells
    for table, members in enumerate(tables):
        for cell in members:
            found[cell] = table
    return tuple(found)


@dataclass(frozen=True)
class _Level:
    """The facts that decide about the histograms of tables.

    Attributes:
        use: of the mechanism.
        labels: k.
        epsilon: ε in all.
        rows: n.
        pooled: the plan of all rows.
        given: whether the spec gives ε₁. Then the tables' ε is a part of ε₁, else of the label's.
    """

    use: PriorUse
    labels: int
    epsilon: float
    rows: int
    pooled: PriorPlan
    given: bool

    def most(self) -> float:
        """The ε that makes the loss at most 1% worse than with the pooled prior alone.

        The loss grows because the label has less ε. If ε₁ is given, it grows because the pooled
        prior has more noise; that prior keeps at least half of ε₁.
        """
        prior = float(self.pooled.epsilon_pooled)
        if self.given:
            return min(_AT_MOST / (self._pooled_noise() + _AT_MOST), MOST_FOR_PRIOR) * prior
        share = _AT_MOST / self.use.slope(self.epsilon)
        return min(share * self.epsilon, MOST_FOR_PRIOR * self.epsilon - prior)

    def least_rows(self, most: Fraction) -> int:
        """The fewest rows of a table, so that its average cell is not much less than its noise."""
        cells = self.labels if self.use.coarse is None else min(self.labels, _LEAST_TABLE_CELLS)
        return math.isqrt(math.floor(8 * (cells / (_MOST_NOISE * most)) ** 2)) + 1

    def best(self, tables: int, most: Fraction) -> tuple[Fraction, int]:
        """(ε, cells) of the tables' histograms with the least expected loss."""
        use, tell, found = self.use, _TELL * self.use.gain(self.epsilon), []
        for cells in self._numbers():
            lost = _coarse_loss(use, cells, self.labels) * _COARSE
            noise = tell * use.noise * _NOISE * NOISE_OF_CELL * cells * tables / self.rows  # over ε
            if self.given:
                prior = float(self.pooled.epsilon_pooled)
                pooled_noise = self._pooled_noise() * prior
                spent = min(prior / (1 + math.sqrt(pooled_noise / noise)), float(most))
                cost = pooled_noise / (prior - spent)
            else:
                each = use.slope(self.epsilon) / self.epsilon
                spent = min(math.sqrt(noise / each), float(most))
                cost = each * spent
            found.append((cost + noise / spent + tell * lost, cells, spent))
        _, cells, spent = min(found)
        return min(rounded_down(spent, AUTO_DIGITS), most), cells

    def _pooled_noise(self) -> float:
        """The relative loss from the noise of the pooled histogram."""
        cells = self.pooled.pooled_cells or self.labels
        spent = self.rows * float(self.pooled.epsilon_pooled)
        return self.use.gain(self.epsilon) * (self.use.noise * NOISE_OF_CELL * cells / spent)

    def _numbers(self) -> list[int]:
        """Numbers of cells that divide the pooled histogram's number, or are multiples of it."""
        labels, whole = self.labels, self.pooled.pooled_cells or self.labels
        if self.use.coarse is None:
            return [labels]
        return [
            b for b in cell_numbers(labels) if whole in (b, labels) or not (whole % b and b % whole)
        ]


def _as_auto_would(use: PriorUse, labels: int, rows: int, pooled: PriorPlan) -> PriorPlan:
    """Cells for a given ε₁, and shrinking, so that groups can take a part of ε₁."""
    if use.coarse is None:
        return replace(pooled, shrunk=True)
    noise = use.noise * NOISE_OF_CELL / (rows * float(pooled.epsilon_pooled))
    _, cells = min(
        (noise * cells + _coarse_loss(use, cells, labels), cells) for cells in cell_numbers(labels)
    )
    return replace(pooled, pooled_cells=None if cells == labels else cells, shrunk=True)


def _coarse_loss(use: PriorUse, cells: int, labels: int) -> float:
    """The relative loss of joining neighbouring labels into this number of cells."""
    return 0.0 if use.coarse is None or cells == labels else use.coarse(cells)


def _join(
    sizes: Sequence[int], shape: Sequence[int], least: int
) -> tuple[list[list[int]], list[int]]:
    """The cells of each table with at least ``least`` rows, and the cells that use the pooled one.

    Cells with fewer rows are joined if they agree on the first columns: first on all but the last
    column, then on all but the last two. Cells that agree on no column are left.
    """
    tables = [[cell] for cell, size in enumerate(sizes[:-1]) if size >= least]
    left = [cell for cell, size in enumerate(sizes[:-1]) if 0 < size < least]
    width = 1
    for column in reversed(shape[1:]):
        width *= column
        alike: dict[int, list[int]] = {}
        for cell in left:
            alike.setdefault(cell // width, []).append(cell)
        left = []
        for cells in alike.values():
            if sum(sizes[cell] for cell in cells) >= least:
                tables.append(cells)
            else:
                left.extend(cells)
    return sorted(tables), left


def _all_pooled(pooled: PriorPlan, sizes: Sequence[int], why: str) -> PriorPlan:
    """One prior for all groups, as without groups."""
    if len(sizes) == 1:
        return pooled
    groups = f"All groups use the pooled prior: {why}"
    if pooled.is_uniform:
        groups = "All groups use the uniform prior"
    return replace(
        pooled,
        table_of_cell=(0,) * (len(sizes) - 1),
        reason=groups if pooled.reason is None else f"{pooled.reason}. {groups}",
    )


def _in_words(
    spent: Fraction,
    cells: int,
    labels: int,
    tables: Sequence[Sequence[int]],
    filled: int,
    left: int,
    least: int,
) -> str:
    """The spends of the tables; ``filled`` cells have rows, and ``left`` cells no own table."""
    own = sum(len(table) == 1 for table in tables)
    over = "all labels" if cells == labels else f"{cells:,} cells of neighbouring labels"
    parts = [f"{own:,} of {filled:,} groups with rows have their own tables"]
    if len(tables) > own:
        small = sum(len(table) for table in tables if len(table) > 1)
        count = len(tables) - own
        parts.append(f"{small:,} with fewer than {least:,} rows are joined into {count:,} more")
    if left:
        parts.append(f"{left:,} with fewer than {least:,} rows use the pooled one")
    return (
        f"ε = {float(spent):g} is for histograms of {len(tables):,} groups, over {over}; "
        f"{', '.join(parts)}"
    )
