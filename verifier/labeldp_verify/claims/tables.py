"""Claims about each table and about all together, checked against the integers.

Each table is checked as if it were a file of its own. ε is the largest of them, because a label's
group is public and decides which of them randomizes it (privacy.md, Theorem 14); losses and their
bounds are weighted with the public sizes of the groups.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.grid_labels import bias_in_words
from labeldp_verify.claims.label import stated_losses
from labeldp_verify.claims.records import Certificate, TableClaims
from labeldp_verify.claims.utility import (
    OVER,
    Use,
    agree_on,
    bound_facts,
    check_optimality,
    how_near,
    penalised,
    ratio_facts,
    together,
    use_facts,
    use_of,
    weighted,
)
from labeldp_verify.cost import charge_outputs
from labeldp_verify.errors import CheckFailedError, agree, demand
from labeldp_verify.forms import Integers, RealDomain
from labeldp_verify.forms.exact_numbers import exp_bounds
from labeldp_verify.printable import clipped, up_to
from labeldp_verify.strict import rational

MAX_EPSILON = 60
T = TypeVar("T")


class Tables:
    """The steps tables to optimality of a file, each for every table and for all together.

    Each raises CheckFailedError, or says what was found in words; ``ratios`` and ``uses`` [T + 1]
    are there after the steps privacy and utility.
    """

    ratios: list[Fraction]
    uses: list[Use]

    def __init__(self, certificate: Certificate, integers: Integers) -> None:
        """Nothing is checked yet."""
        self.certificate, self.integers = certificate, integers
        demand(
            len(certificate.tables) == len(integers.tables),
            "there must be one claim for each table",
        )
        self._stated = [certificate.of_table(i) for i in range(len(integers.tables))]
        self._analyses: list[Any] = [analyse(table) for table in integers.tables]
        self._by_group = bool(integers.groups.columns)

    def tables(self) -> str:
        """A description of the integers."""
        tables, many = self.integers.tables, ""
        widest = max(range(len(tables)), key=lambda i: tables[i].outputs)
        if self._by_group:
            self._each(self._check_counts)
            many = (
                f"{len(tables):,} tables (the last for all rows that are not listed) with "
                f"{self.integers.lookup.outputs:,} outputs, words of {self._bits} bits; the one "
                "with most outputs is "
            )
        return f"the graph's constants decode to {many}{self._analyses[widest].description()}"

    def _check_counts(self, table: int) -> None:
        stated = self._stated[table]
        same = stated.utility.loss == self.certificate.utility.loss
        same &= stated.outputs == self.integers.tables[table].outputs
        demand(same, "its outputs or its loss are misstated")

    def rows(self) -> str:
        """The integers are one distribution a row, in every table."""
        self._each(self._check_distributions)
        return (
            f"{self._where}every label's probabilities are whole counts that sum to exactly "
            f"2^{self._bits}"
        )

    def _check_distributions(self, table: int) -> None:
        reason = self._analyses[table].why_not_distributions()
        demand(reason is None, str(reason))

    def privacy(self) -> str:
        """No output is more than e^ε₂ times as probable under one label as under another."""
        self.ratios = self._each(self._ratio)
        largest = max(self.ratios)
        agree_on(self.certificate, ratio_facts(largest))
        exact = self.certificate.exact
        whose = f" ({self._name(self.ratios.index(largest))})" if self._by_group else ""
        return (
            f"{self._where}for any two labels, output probabilities differ by a factor of at most "
            f"{up_to(largest)}{whose}: ε ≤ {decimals(rational(exact.epsilon_label_bound))}, "
            f"declared {float(rational(exact.epsilon_label)):.12g}"
        )

    def _ratio(self, table: int) -> Fraction:
        ratio: Fraction = self._analyses[table].worst_ratio()
        epsilon = rational(self.certificate.exact.epsilon_label)
        demand(0 <= epsilon <= MAX_EPSILON, f"ε must lie in 0 … {MAX_EPSILON}")
        demand(
            ratio <= exp_bounds(epsilon)[0],
            f"an output can be {float(ratio):.6g} times as probable under one label as under "
            f"another, more than e^{float(epsilon):g}",
        )
        agree_on(self._stated[table], ratio_facts(ratio))
        return ratio

    def utility(self) -> str:
        """Bias and loss under the stated priors, of every table and of all."""
        self.uses = self._each(self._use)
        certificate, domain = self.certificate, self.integers.label
        pooled = certificate.tables[-1].prior
        demand(certificate.prior == pooled, "the prior is not that of all other groups")
        if self._by_group:
            agree(certificate, "utility.biases", None)
        use = together([table.size for table in certificate.tables], self.uses)
        agree_on(certificate, use_facts(use, certificate.utility.loss))
        weighted_by = "weighted with the stated sizes of the groups, " if self._by_group else ""
        which = " of the grid points" if isinstance(domain, RealDomain) else ""
        text = (
            f"{weighted_by}the noisy label loss{which} under the stated prior is "
            f"{float(use.loss[0]):.12g} ({certificate.utility.loss})"
        )
        if use.largest_bias is None:
            return text
        rounding = Fraction(certificate.utility.output_rounding)
        return f"{text}; {bias_in_words(domain, use.largest_bias, rounding)}"

    def _use(self, table: int) -> Use:
        stated, domain = self._stated[table], self.integers.label
        weights, loss = stated.prior.weights, stated.utility.loss
        counts = all(type(w) is int and 0 <= w < 2**200 for w in weights)
        demand(
            counts and len(weights) == domain.size and sum(weights) > 0,
            "the prior is not one non-negative whole weight for each label",
        )
        uniform = stated.prior.kind == "uniform"
        demand(not uniform or len(set(weights)) == 1, "the prior is not uniform, as it claims")
        randomizer = self.integers.tables[table]
        charge_outputs(randomizer, domain.size)
        losses = stated_losses(stated)
        try:
            use = use_of(domain, randomizer, loss, losses, weights)
            facts = use_facts(use, loss)
        except ValueError as error:
            raise CheckFailedError(str(error)) from None
        if stated.utility.biases is not None:
            demand(use.biases is not None, "private labels that are not numbers have no bias")
            agree(stated, "utility.biases", use.biases and use.biases.floats())
        agree_on(stated, facts)
        return use

    def optimality(self) -> str:
        """The proofs of the bounds of all tables; the total follows from those."""
        self._each(self._check_bound)
        stated = self.certificate.tables
        bound, objective = total_bound(stated, self.uses)
        facts = bound_facts(bound, objective)
        agree_on(self.certificate, facts)
        proved = [table.optimality for table in stated if table.optimality is not None]
        if bound is None:
            if len(stated) == 1:
                return "no bound on the loss is proved"
            return f"{len(proved):,} of {len(stated):,} tables have a proved bound on the loss"
        all_of_them = "of all tables together, " if self._by_group else ""
        near = how_near(self.certificate.utility, OVER[proved[0].over])
        return f"{all_of_them}the loss is {near}"

    def _check_bound(self, table: int) -> None:
        check_optimality(self._stated[table], self.integers.label, self.uses[table])

    @property
    def _bits(self) -> str:
        """The random bits of a label, in all tables."""
        bits = [table.word_bits * table.words_per_label for table in self.integers.tables]
        return str(max(bits)) if min(bits) == max(bits) else f"({min(bits)} … {max(bits)})"

    @property
    def _where(self) -> str:
        return "in every table, " if self._by_group else ""

    def _name(self, table: int) -> str:
        return f"group {clipped(self.integers.groups.name(table), 40)}"

    def _each(self, step: Callable[[int], T]) -> list[T]:
        """The results of a step for every table; an error names the group, if there are groups."""
        found = []
        for table in range(len(self._stated)):
            try:
                found.append(step(table))
            except CheckFailedError as error:
                if not self._by_group:
                    raise
                raise CheckFailedError(f"{self._name(table)}: {error}") from None
        return found


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


def decimals(bound: Fraction) -> str:
    """A multiple of 10^-12 in full."""
    whole, part = divmod(int(bound * 10**12), 10**12)
    return f"{whole}.{part:012d}".rstrip("0").rstrip(".")
