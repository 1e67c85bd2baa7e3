"""Split ε between the prior and the label, exactly, before a label is read.

``auto`` minimises the expected loss, relative to the loss with the true prior and all of ε for the
label. With ε₁ = s·ε for a histogram of B cells of neighbouring labels it is

    slope·s + gain·(noise·r + coarse(B)),    r = √8·B / (n·s·ε),

where r is the standard deviation of a cell's noise (discrete Laplace of scale 2/ε₁) in units of the
average cell. ``mechanisms/mechanism.py`` has slope, gain, noise and coarse. The best s for each B
has a closed form, and the best B is taken. If that costs about as much as the ``gain``, a uniform
prior is taken, which spends nothing.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.errors import BudgetError
from labeldp_compile.mechanisms.mechanism import PriorUse

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
    data = f"with {rows:,} rows and {labels:,} labels at ε = {float(epsilon):g}"
    if cost > _WORTH_IT * use.gain(float(epsilon)):
        reason = (
            f"{data}, a private prior would cost about as much as it gains (it has noise, and the "
            "label has less ε): the prior is uniform, and all of ε is for the label"
        )
        return PriorPlan(Fraction(0), epsilon, None, False, reason)
    prior = rounded_down(share * float(epsilon), AUTO_DIGITS)
    over = "all labels" if cells == labels else f"{cells:,} cells of neighbouring labels"
    reason = (
        f"{data}, the least loss is expected from ε₁ = {float(prior):g} for a histogram over {over}"
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
