"""What a certificate claims of tables by group: of each by itself, and of all together.

Each table is checked as if it were a file of its own (``TableClaims``). ε is the largest of them
all, for a label meets one table only, which its public group names (privacy.md, Theorem 14).
Losses, their lower bounds and mean squares of bias are weighted with the groups' public sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from labeldp_verify.certificate import ASSIGNMENTS, Certificate, GroupsClaims, Optimality, rational
from labeldp_verify.forms import CategoricalDomain, Domain, GroupedWindows
from labeldp_verify.optimality import penalised
from labeldp_verify.report import CheckFailedError, agree, demand
from labeldp_verify.rounded import at_most
from labeldp_verify.table_claims import TableClaims, agree_on_ratio, agree_on_use, decimals

MAX_SIZE = 2**63


class GroupClaims:
    """The steps tables to optimality for a certificate of tables by group."""

    def __init__(
        self, certificate: Certificate, domain: Domain, randomizer: GroupedWindows
    ) -> None:
        """Nothing is checked yet."""
        assert certificate.groups is not None
        self.certificate, self.domain, self.randomizer = certificate, domain, randomizer
        self.stated: GroupsClaims = certificate.groups
        self.parts = [
            TableClaims(certificate.of_table(i), domain, window)
            for i, window in enumerate(randomizer.windows)
        ]

    @property
    def ratio(self) -> Fraction:
        """The largest of all tables, after the step privacy."""
        return max(part.ratio for part in self.parts)

    def tables(self) -> str:
        """What the integers are, and that the groups are stated as the format demands."""
        certificate, stated, r = self.certificate, self.stated, self.randomizer
        agree(certificate, "groups.assignment", ASSIGNMENTS[certificate.format_version])
        demand(
            certificate.label.column not in [column.name for column in stated.columns],
            "the group is the label itself: its table would tell the label",
        )
        demand(certificate.composition is None, "groups do not state what several labels pay")
        demand(len(stated.tables) == r.groups.tables, "the claims are not one for each table")
        for i, (table, window) in enumerate(zip(stated.tables, r.windows, strict=True)):
            same = table.outputs == window.outputs and table.utility.loss == self._loss
            demand(same, f"{self._name(i)}: its outputs or its loss are misstated")
            demand(0 <= table.size < MAX_SIZE, f"{self._name(i)}: its size is no count of rows")
        demand(sum(self._sizes) > 0, "no group has rows: there is nothing to weight losses with")
        widest = max(r.windows, key=lambda window: window.outputs)
        return (
            f"the graph's constants decode to window randomizers by group: {r.groups.tables:,} "
            f"tables (the last for all rows that are not listed), {r.labels:,} labels, "
            f"{r.outputs:,} outputs, up to {widest.outputs:,} in one table, words of "
            f"{self._bits} bits"
        )

    def rows(self) -> str:
        """The integers are one distribution a row, in every table."""
        self._each(TableClaims.rows)
        return (
            "in every table, every label's probabilities are whole counts that sum to exactly "
            f"2^{self._bits}"
        )

    def privacy(self) -> str:
        """Every table is ε₂-DP; what is stated of all is the largest."""
        self._each(TableClaims.privacy)
        ratio = self.ratio
        bound = agree_on_ratio(self.certificate, ratio)
        at = next(i for i, part in enumerate(self.parts) if part.ratio == ratio)
        epsilon = float(rational(self.certificate.exact.epsilon_label))
        return (
            f"in every table, whatever the two labels: ε ≤ {decimals(bound)}, which is that of "
            f"{self._name(at)}, declared {epsilon:.12g}"
        )

    def utility(self) -> str:
        """Bias and loss of every table, and of all."""
        self._each(TableClaims.utility)
        uses = [part.use for part in self.parts]
        low, high = (self._mean([use.loss[side] for use in uses]) for side in (0, 1))
        largest = None
        if not isinstance(self.domain, CategoricalDomain):
            largest = max(use.largest_bias or Fraction(0) for use in uses)
        square = self._mean([use.mean_square for use in uses])
        agree(self.certificate, "utility.biases", None)
        agree(self.certificate, "utility.output_rounding", 0.0)
        pooled = self.stated.tables[-1].prior
        demand(self.certificate.prior == pooled, "the prior is not that of all other groups")
        words = agree_on_use(self.certificate, self.domain, (low, high), largest, square)
        return f"weighted with the stated sizes of the groups, {words}"

    def optimality(self) -> str:
        """The dual values of every table prove its bound; the total follows from those."""
        self._each(TableClaims.optimality)
        agree(self.certificate, "optimality", None)
        bound = total_bound(self.stated)
        agree(self.certificate, "exact.loss_lower_bound", None if bound is None else str(bound))
        agree(self.certificate, "utility.loss_lower_bound", None if bound is None else float(bound))
        proved = sum(table.optimality is not None for table in self.stated.tables)
        if bound is None:
            agree(self.certificate, "utility.certified_gap", None)
            return f"{proved:,} of {len(self.parts):,} tables have a proved bound on the loss"
        objectives = [
            penalised(part.certificate.optimality, part.use.loss[0], part.use.mean_square)
            for part in self.parts
        ]
        gap = relative_gap(self._mean(objectives), bound)
        agree(self.certificate, "utility.certified_gap", gap)
        return (
            f"all tables together are within {at_most(gap, 2)} (relatively) of the least possible"
        )

    @property
    def _bits(self) -> str:
        least, most = min(self.randomizer.word_bits), max(self.randomizer.word_bits)
        return str(most) if least == most else f"({least} … {most})"

    @property
    def _loss(self) -> str:
        return self.certificate.utility.loss

    @property
    def _sizes(self) -> list[int]:
        return [table.size for table in self.stated.tables]

    def _mean(self, numbers: Sequence[Fraction]) -> Fraction:
        return weighted(self._sizes, numbers)

    def _name(self, table: int) -> str:
        return f"group {self.randomizer.groups.name(table)[:40]}"

    def _each(self, step: Callable[[TableClaims], str]) -> None:
        """One step for every table; an error names the group."""
        for i, part in enumerate(self.parts):
            try:
                step(part)
            except CheckFailedError as error:
                raise CheckFailedError(f"{self._name(i)}: {error}") from None


def weighted(sizes: Sequence[int], numbers: Sequence[Fraction]) -> Fraction:
    """Σ size·number / Σ size."""
    pairs = zip(sizes, numbers, strict=True)
    return sum((n * x for n, x in pairs if n), Fraction(0)) / sum(sizes)


def total_bound(stated: GroupsClaims) -> Fraction | None:
    """The bound on the weighted loss, if every table with rows has one over the same class."""
    with_rows = [table for table in stated.tables if table.size]
    witnesses: list[Optimality] = [t.optimality for t in with_rows if t.optimality is not None]
    classes = {(witness.over, witness.amount) for witness in witnesses}
    if len(witnesses) < len(with_rows) or len(classes) != 1:
        return None
    bounds = [rational(table.exact.loss_lower_bound or "") for table in with_rows]
    return weighted([table.size for table in with_rows], bounds)


def relative_gap(objective: Fraction, bound: Fraction) -> float:
    """(objective − bound)/objective, at least 0."""
    return float(max((objective - bound) / objective, Fraction(0))) if objective else 0.0
