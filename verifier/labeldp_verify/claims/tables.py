"""What a certificate claims of each table, and of all together: stated, and held against integers.

Each table is checked as if it were a file of its own. ε is the largest of them, because a label's
group is public and decides which of them randomizes it (privacy.md, Theorem 14); losses and their
bounds are weighted with the public sizes of the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.bounds import exp_bounds
from labeldp_verify.analysis.joint import ColumnLoss
from labeldp_verify.analysis.range_bias import bias_in_words
from labeldp_verify.checks import CheckFailedError, agree, demand, short
from labeldp_verify.claims.certificate import Certificate, TableClaims
from labeldp_verify.claims.joint import SUM, stated_losses
from labeldp_verify.claims.lower_bound import check_optimality, penalised
from labeldp_verify.claims.record import rational
from labeldp_verify.claims.use import (
    Facts,
    Use,
    bound_facts,
    ratio_facts,
    together,
    use_facts,
    use_of,
    weighted,
)
from labeldp_verify.cost import charge_outputs
from labeldp_verify.forms import Domain, Integers, Randomizer, RealDomain
from labeldp_verify.rounded import at_most, up_to

MAX_EPSILON = 60
LOSSES = ("squared", "absolute", "poisson", "zero_one", SUM)


class _OneTable:
    """The steps rows to optimality for the certificate of one table.

    Each raises CheckFailedError, or says what was found in words; ``ratio`` and ``use`` are there
    after the steps privacy and utility.
    """

    ratio: Fraction
    use: Use

    def __init__(self, certificate: Certificate, domain: Domain, randomizer: Randomizer) -> None:
        self.certificate, self.domain, self.randomizer = certificate, domain, randomizer
        self.analysis: Any = analyse(randomizer)

    def tables(self) -> str:
        """What the integers are."""
        return f"the graph's constants decode to {self.analysis.description()}"

    def rows(self) -> str:
        """The integers are one distribution a row."""
        reason = self.analysis.why_not_distributions()
        demand(reason is None, str(reason))
        bits = self.randomizer.word_bits * self.randomizer.words_per_label
        return f"every label's probabilities are whole counts that sum to exactly 2^{bits}"

    def privacy(self) -> str:
        """No output is more than e^ε₂ times as probable under one label as under another."""
        certificate = self.certificate
        ratio = self.ratio = self.analysis.worst_ratio()
        epsilon = rational(certificate.exact.epsilon_label)
        demand(0 <= epsilon <= MAX_EPSILON, f"ε must lie in 0 … {MAX_EPSILON}")
        demand(
            ratio <= exp_bounds(epsilon)[0],
            f"an output can be {float(ratio):.6g} times as probable under one label as under "
            f"another, more than e^{float(epsilon):g}",
        )
        _agree_on(certificate, ratio_facts(ratio))
        return (
            f"whatever the two labels, no output is more than {up_to(ratio)} times as probable: "
            f"ε ≤ {_bound_in(certificate)}, declared {float(epsilon):.12g}"
        )

    def utility(self) -> str:
        """Bias and loss under the stated prior."""
        certificate, domain, loss = self.certificate, self.domain, self.certificate.utility.loss
        weights = certificate.prior.weights
        counts = all(type(w) is int and 0 <= w < 2**200 for w in weights)
        demand(counts and len(weights) == domain.size and sum(weights) > 0, "the prior is wrong")
        uniform = certificate.prior.kind == "uniform"
        demand(not uniform or len(set(weights)) == 1, "the prior is not uniform, as it claims")
        demand(loss in LOSSES, f"the loss {short(loss)} is unknown")
        charge_outputs(self.randomizer, domain.size)
        losses = stated_losses(certificate)
        try:
            self.use = use_of(domain, self.randomizer, loss, losses, weights)
        except ValueError as error:
            if losses is None:
                raise
            raise CheckFailedError(str(error)) from None
        if certificate.utility.biases is not None:
            if self.use.biases is None:
                raise CheckFailedError("categories and sets have no bias")
            agree(certificate, "utility.biases", self.use.biases.floats())
        return _check_use(certificate, domain, self.use)

    def optimality(self) -> str:
        """What proves the lower bound."""
        return check_optimality(self.certificate, self.domain, self.use.biases)


class Tables:
    """The steps tables to optimality of a whole file."""

    def __init__(self, certificate: Certificate, integers: Integers) -> None:
        """Nothing is checked yet."""
        self.certificate, self.integers = certificate, integers
        demand(
            len(certificate.tables) == len(integers.tables), "the claims are not one for each table"
        )
        self.parts = [
            _OneTable(certificate.of_table(i), integers.label, table)
            for i, table in enumerate(integers.tables)
        ]

    @property
    def ratios(self) -> list[Fraction]:
        """The largest of each table, after the step privacy."""
        return [part.ratio for part in self.parts]

    @property
    def uses(self) -> list[Use]:
        """Of each table, after the step utility."""
        return [part.use for part in self.parts]

    def tables(self) -> str:
        """What the integers are."""
        if only := self._only:
            return only.tables()
        certificate, integers = self.certificate, self.integers
        for i, (claims, table) in enumerate(zip(certificate.tables, integers.tables, strict=True)):
            same = claims.outputs == table.outputs
            same &= claims.utility.loss == certificate.utility.loss
            demand(same, f"{self._name(i)}: its outputs or its loss are misstated")
        widest = max(table.outputs for table in integers.tables)
        return (
            "the graph's constants decode to window randomizers by group: "
            f"{integers.groups.tables:,} tables (the last for all rows that are not listed), "
            f"{integers.label.size:,} labels, {integers.lookup.outputs:,} outputs, up to "
            f"{widest:,} in one table, words of {self._bits} bits"
        )

    def rows(self) -> str:
        """The integers are one distribution a row, in every table."""
        if words := self._each(_OneTable.rows):
            return words
        return (
            "in every table, every label's probabilities are whole counts that sum to exactly "
            f"2^{self._bits}"
        )

    def privacy(self) -> str:
        """Every table is ε₂-DP; what is stated of all is the largest."""
        if words := self._each(_OneTable.privacy):
            return words
        _agree_on(self.certificate, ratio_facts(max(self.ratios)))
        at = self.ratios.index(max(self.ratios))
        epsilon = float(rational(self.certificate.exact.epsilon_label))
        return (
            f"in every table, whatever the two labels: ε ≤ {_bound_in(self.certificate)}, which is "
            f"that of {self._name(at)}, declared {epsilon:.12g}"
        )

    def utility(self) -> str:
        """Bias and loss of every table, and of all."""
        if words := self._each(_OneTable.utility):
            return words
        agree(self.certificate, "utility.biases", None)
        pooled = self.certificate.tables[-1].prior
        demand(self.certificate.prior == pooled, "the prior is not that of all other groups")
        use = together(self._sizes, self.uses)
        words = _check_use(self.certificate, self.integers.label, use)
        return f"weighted with the stated sizes of the groups, {words}"

    def optimality(self) -> str:
        """What proves the bound of every table; the total follows from those."""
        if words := self._each(_OneTable.optimality):
            return words
        stated = self.certificate.tables
        bound, objective = total_bound(stated, self.uses)
        facts = bound_facts(bound, objective)
        _agree_on(self.certificate, facts)
        if bound is None:
            proved = sum(table.optimality is not None for table in stated)
            return f"{proved:,} of {len(self.parts):,} tables have a proved bound on the loss"
        gap = at_most(facts["utility.certified_gap"], 2)
        return f"all tables together are within {gap} (relatively) of the least possible"

    @property
    def _only(self) -> _OneTable | None:
        """The table that says everything, where there are no groups."""
        return None if self.integers.groups.columns else self.parts[0]

    @property
    def _bits(self) -> str:
        bits = [table.word_bits for table in self.integers.tables]
        return str(max(bits)) if min(bits) == max(bits) else f"({min(bits)} … {max(bits)})"

    @property
    def _sizes(self) -> list[int]:
        return [table.size for table in self.certificate.tables]

    def _name(self, table: int) -> str:
        return f"group {self.integers.groups.name(table)[:40]}"

    def _each(self, step: Callable[[_OneTable], str]) -> str | None:
        """One step for every table; an error names the group. In words what the only one says."""
        if only := self._only:
            return step(only)
        for i, part in enumerate(self.parts):
            try:
                step(part)
            except CheckFailedError as error:
                raise CheckFailedError(f"{self._name(i)}: {error}") from None
        return None


def total_bound(
    stated: Sequence[TableClaims], uses: Sequence[Use]
) -> tuple[Fraction | None, Fraction]:
    """The bound on the weighted loss, and what it is a bound of.

    It is None unless every table with rows has one over the same class.
    """
    sizes = [table.size for table in stated]
    objective = weighted(
        sizes,
        [
            penalised(table.optimality, use.loss[0], use.mean_square)
            for table, use in zip(stated, uses, strict=True)
        ],
    )
    with_rows = [table for table in stated if table.size]
    witnesses = [table.optimality for table in with_rows if table.optimality is not None]
    classes = {(witness.over, witness.amount) for witness in witnesses}
    if len(witnesses) < len(with_rows) or len(classes) != 1:
        return None, objective
    bounds = [rational(table.exact.loss_lower_bound or "") for table in with_rows]
    return weighted([table.size for table in with_rows], bounds), objective


def table_facts(
    domain: Domain,
    randomizer: Randomizer,
    loss: Any,
    losses: Sequence[ColumnLoss] | None,
    weights: Sequence[int],
    epsilon: Fraction,
) -> tuple[Fraction, Use, Facts]:
    """Ratio, use and fields of one table. Raises ValueError if it is not ε-DP."""
    ratio = analyse(randomizer).worst_ratio()
    if ratio > exp_bounds(epsilon)[0]:
        raise ValueError("the integers are not ε-DP for the declared ε")
    use = use_of(domain, randomizer, loss, losses, weights)
    stated = {"outputs": randomizer.outputs, "utility.loss": loss}
    return ratio, use, {**stated, **ratio_facts(ratio), **use_facts(use, loss)}


def _agree_on(certificate: Certificate, facts: Facts) -> None:
    for field, value in facts.items():
        agree(certificate, field, value)


def _check_use(certificate: Certificate, domain: Domain, use: Use) -> str:
    """Demand that the fields of utility state this; in words."""
    loss = certificate.utility.loss
    try:
        facts = use_facts(use, loss)
    except ValueError as error:
        raise CheckFailedError(str(error)) from None
    _agree_on(certificate, facts)
    which = " of the grid points" if isinstance(domain, RealDomain) else ""
    text = (
        f"the noisy label loss{which} under the stated prior is {float(use.loss[0]):.12g} ({loss})"
    )
    if use.largest_bias is None:
        return text
    rounding = Fraction(certificate.utility.output_rounding)
    return f"{text}; {bias_in_words(domain, use.largest_bias, rounding)}"


def _bound_in(certificate: Certificate) -> str:
    return decimals(rational(certificate.exact.epsilon_label_bound))


def decimals(bound: Fraction) -> str:
    """A multiple of 10^-12 in full."""
    whole, part = divmod(int(bound * 10**12), 10**12)
    return f"{whole}.{part:012d}".rstrip("0").rstrip(".")
