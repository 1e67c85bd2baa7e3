"""Estimates of a compile before it runs: outputs, bytes, seconds, and the use of its labels.

An estimate is a range if it depends on a prior that is not known yet. ``benchmarks/plan.py``
compares every estimate here with a real compile. The seconds were fitted to its results on two
cores of an AMD EPYC server, and are right within a factor of three.

A budget says how ε would be spent on the prior and on each label, without reading a label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from labeldp_verify import cost
from labeldp_verify.artifact import assess, randomizer_bias
from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    Domain,
    Randomizer,
    are_numbers,
    columns_of,
)
from labeldp_verify.usefulness.estimates import SHARES, most_belief
from labeldp_verify.usefulness.figures import ROWS, Usefulness
from labeldp_verify.usefulness.shortcomings import Shortcoming

from labeldp_compile.build.tables import entries_of_table, is_proved, problem_of
from labeldp_compile.errors import InputError
from labeldp_compile.ledger.entries import Question
from labeldp_compile.mechanisms.mechanism import TableLayout
from labeldp_compile.prior.discrete_laplace import L1_SENSITIVITY, deviation
from labeldp_compile.prior.group_cells import ONE_TABLE
from labeldp_compile.prior.obtain import PriorSource, counted_person
from labeldp_compile.prior.plan import PriorPlan, needs_rows, plan_prior
from labeldp_compile.prior.priors import PersonsSeen, PublicFacts
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PersonUnit, PrivatePrior, PublicPrior
from labeldp_compile.tabular.formats import files_of, require_format


class RowsUnknownError(InputError):
    """The split of ε needs the number of rows, which only the data contain."""


@dataclass(frozen=True)
class CountNoise:
    """The noise on each count of a label histogram.

    Attributes:
        scale: of the discrete Laplace distribution, 2/ε₁.
        deviation: its standard deviation, in rows.
        average_count: the average rows of a label (or a cell of labels); None if n is not known.
    """

    scale: float
    deviation: float
    average_count: float | None


@dataclass(frozen=True)
class TablesBudget:
    """The known facts about priors of several tables.

    Attributes:
        tables: T + 1, including that of all other rows.
        listed: the groups that the spec lists.
        epsilon: the part of ε₁ that is for the histograms of the tables.
        noise: on each of their counts; None if they spend nothing.
        cells: the number of cells of neighbouring labels in them, or None.
        odd: what is odd about the groups' public sizes, in words.
        smallest: the fewest rows of a table of its own, if there is any.
    """

    tables: int
    listed: int
    epsilon: Fraction
    noise: CountNoise | None
    cells: int | None
    odd: tuple[str, ...] = ()
    smallest: int | None = None


@dataclass(frozen=True)
class EpsilonBudget:
    """The exact parts of ε, and what the first part is spent on.

    Attributes:
        plan: how much is spent on which histograms.
        data: the file that is counted, or None.
        rows: n, or None if it does not matter or is not known.
        noise: on the histogram of all rows, for a private prior; else None.
        question: the question for a ledger; None if nothing is spent.
        groups: the same for the tables of public groups, if there are any.
        unit: of whom ε is, if it is that of a person; every other ε here is that of one label.
        persons: how many rows the persons of the table have, if they were counted.
    """

    plan: PriorPlan
    data: Path | None = None
    rows: int | None = None
    noise: CountNoise | None = None
    question: Question | None = None
    groups: TablesBudget | None = None
    unit: PersonUnit | None = None
    persons: PersonsSeen | None = None

    @property
    def total(self) -> Fraction:
        """ε."""
        return self.prior + self.label

    @property
    def prior(self) -> Fraction:
        """ε₁."""
        return self.plan.epsilon_prior

    @property
    def label(self) -> Fraction:
        """ε₂ = ε − ε₁."""
        return self.plan.epsilon_label


def find_budget(spec: Spec, directory: Path) -> EpsilonBudget:
    """The budget of a spec whose paths are relative to ``directory``.

    Reads at most the footer of a Parquet file, and public columns. Raises the DataError or
    BudgetError of ``compile``, as far as it can be known without the data.
    """
    prior = spec.prior
    name = prior.data if isinstance(prior, PrivatePrior | PublicPrior) else None
    if name is None:
        plan = PriorPlan(Fraction(0), spec.privacy.per_label)
        return EpsilonBudget(plan, unit=spec.privacy.person)
    path = directory / name
    known = _known(spec, directory, path)
    if not known.rows and needs_rows(spec):
        assert isinstance(prior, PrivatePrior)
        raise RowsUnknownError(
            f"{path}: plan does not read {'text' if prior.counts is None else 'a histogram'}, and "
            f"split: {spec.privacy.split} depends on the number of rows, which is public: add the "
            f"line `rows: N` under `data: {name}` in the spec (or give the parts of ε yourself, as "
            "in split: {prior: …, label: …})"
        )
    plan, rows = plan_prior(spec, known.sizes, known.asked), known.rows or None
    return EpsilonBudget(
        plan=plan,
        data=path,
        rows=rows,
        noise=_noise(plan.epsilon_pooled, rows, plan.pooled_cells or spec.domain.size),
        question=known.question(spec, plan) if plan.epsilon_prior else None,
        groups=_of_tables(spec, known, plan) if known.asked.columns else None,
        unit=spec.privacy.person,
        persons=known.persons,
    )


def _known(spec: Spec, directory: Path, path: Path) -> PublicFacts:
    """The public facts of the data. A text file without public columns is not read."""
    needs_no_column = spec.groups is None and counted_person(spec) is None
    if needs_no_column and require_format(files_of(path)[0]).is_text:
        stated = spec.prior.rows if isinstance(spec.prior, PrivatePrior) else None
        return PublicFacts(ONE_TABLE, [stated or 0])
    return PriorSource.of(spec, directory).known()


def _of_tables(spec: Spec, known: PublicFacts, plan: PriorPlan) -> TablesBudget:
    sizes = plan.by_table(np.array(known.sizes))[:-1]
    own = int(sizes.sum())
    counted = plan.tables * (plan.table_cells or spec.domain.size)
    return TablesBudget(
        tables=plan.tables + 1,
        listed=known.asked.own_tables,
        epsilon=plan.epsilon_tables,
        noise=_noise(plan.epsilon_tables, own, counted),
        cells=plan.table_cells,
        odd=tuple(known.odd),
        smallest=int(sizes.min()) if sizes.size else None,
    )


def is_unpaid(spec: Spec, budget: EpsilonBudget) -> bool:
    """Whether the spec asks for a private prior, but ``split: auto`` takes a uniform one."""
    return isinstance(spec.prior, PrivatePrior) and budget.prior == 0


def _noise(epsilon: Fraction, rows: int | None, counts: int) -> CountNoise | None:
    """The noise on ``counts`` counts of ``rows`` rows, if they spend something."""
    if not epsilon:
        return None
    scale = float(L1_SENSITIVITY / epsilon)
    return CountNoise(scale, deviation(scale), None if rows is None else rows / counts)


# Graph and self test: the two forms with alias tables have longer self tests.
_MODEL_BYTES = {"window": 3_300, "additive": 26_000, "table": 15_000}
_CERTIFICATE_BYTES = 1_900  # without anything that is listed by label
# Of one label's decimal, with quotes.
_PROOF_BYTES = {"dual": 23, "slope": 22, "bias": 22, "no slope": 6}
_ROWS_A_SECOND = 2e7  # counted for the prior
_SECONDS_A_MEGABYTE = 0.3  # of tables: written, rebuilt, run
_START_SECONDS = 0.02


@dataclass(frozen=True)
class Estimate:
    """A range for the estimate; both ends are equal if only rounding is unknown."""

    least: float
    most: float


@dataclass(frozen=True)
class Forecast:
    """The estimates for a compile, and for verifying the file if it has groups."""

    solver: str
    outputs: Estimate
    size: Estimate
    seconds: Estimate
    verify_seconds: float | None = None


def forecast(spec: Spec, budget: EpsilonBudget) -> Forecast:
    """The estimate for a spec; touches no label.

    Groups that do not differ from all rows share one table, and the prior decides which do: there
    is at least one table. Several tables share one lookup and are solved twice. Their file is
    verified before it is written.
    """
    mechanism, k, grouped = spec.named_mechanism, spec.domain.size, budget.groups is not None
    tables = 1 if budget.groups is None else budget.groups.tables
    weights = spec.known_weights
    if weights is None and is_unpaid(spec, budget):
        weights = [1] * k
    layouts = _extremes(mechanism.layouts(spec.domain, spec.loss, budget.label, weights))
    listed = _certificate_bytes(spec, budget, weights)
    uncounted = grouped or _is_counted(spec) or is_unpaid(spec, budget)
    counting = 0 if uncounted else (budget.rows or 0) / _ROWS_A_SECOND
    proved = is_proved(spec, tables) and bool(mechanism.proof(spec.loss, k))
    a_label = cost.seconds_a_label(spec.loss, spec.domain.kind, duals=proved, windows=True)
    quick, slow = mechanism.seconds(k, spec.loss, float(budget.label))
    sizes, seconds = [], []
    for count, part, each in zip(
        (1, tables), layouts, (quick, quick if grouped else slow), strict=True
    ):
        table, solving = part.bytes, each
        if grouped:
            room = 8 * entries_of_table(spec, count, budget.rows)
            table = min(part.bytes, room + 24 * k) + 16 * k
            solving = count * (2 * solving + k * a_label)
        size = _MODEL_BYTES[mechanism.form] + _names(spec) + count * (table + listed)
        sizes.append(size)
        seconds.append(_START_SECONDS + counting + solving + _SECONDS_A_MEGABYTE * size / 1e6)
    return Forecast(
        mechanism.solver(),
        Estimate(layouts[0].outputs, layouts[1].outputs),
        Estimate(*(float(f"{size:.2g}") for size in sizes)),
        Estimate(*(float(f"{part:.1g}") for part in seconds)),
        float(f"{tables * k * a_label:.1g}") if grouped else None,
    )


def _is_counted(spec: Spec) -> bool:
    """Whether the data are already counts, and no label is rounded at random."""
    is_histogram = isinstance(spec.prior, PrivatePrior) and spec.prior.counts is not None
    return is_histogram and spec.domain.words_per_label == 1


def _extremes(possible: Sequence[TableLayout]) -> tuple[TableLayout, TableLayout]:
    sizes, outputs = [part.bytes for part in possible], [part.outputs for part in possible]
    return TableLayout(min(outputs), min(sizes)), TableLayout(max(outputs), max(sizes))


def _certificate_bytes(spec: Spec, budget: EpsilonBudget, weights: Sequence[int] | None) -> int:
    """The certificate: fixed fields, the prior, and the proofs for each label."""
    k = spec.domain.size
    if weights is not None:
        prior = sum(len(str(weight)) + 1 for weight in weights)
    else:
        prior = round(k * (math.log10(budget.rows or 10**6) + 2))
    listed = sum(_PROOF_BYTES[part] for part in spec.named_mechanism.proof(spec.loss, k))
    return _CERTIFICATE_BYTES + prior + k * listed


def _names(spec: Spec) -> int:
    """Bytes of the categories: once in the graph's encoder, once in the certificate."""
    listed = (part for part in columns_of(spec.domain) if isinstance(part, CategoricalDomain))
    return sum(2 * (len(str(value).encode()) + 4) for part in listed for value in part.values)


# How useful private labels will be, said before a private prior is known.
#
# The figures are those of a rehearsal. If the prior cannot change the randomizer, or is stated in
# the spec, compile writes exactly this randomizer, so every bound of it holds for the file
# (``settled``). Otherwise no bound is known that is worth printing: an unbiased randomizer may have
# outputs far beyond its labels, and one that favours likely labels may never answer with a rare
# one. Then the figures are estimates, of labels that are spread evenly.


_UNKNOWN = 0.5  # a margin of error of a share that says nothing
MAX_SECONDS = 3.0  # of a solve that a plan waits for
MAX_LABELS = 1_000


@dataclass(frozen=True)
class ExpectedUse:
    """The figures of a rehearsal, and whether they will be those of the compiled file.

    Attributes:
        prior: of the rehearsal: that of the spec if it is stated there, else ``uniform``.
        settled: whether compile writes exactly this randomizer, for every prior that it may count.
        figures, shortcomings: of this randomizer.
        outputs: how many there are; ``span`` has the lowest and the highest, if they are numbers.
        shares: whether shares of labels can be estimated: over 1,000 rows, or all if there are
            more, to less than ±50%; None if the prior decides it.
        bias: upper bound of |E[output | label] − label| in the range, if outputs are numbers.
    """

    prior: str
    settled: bool
    figures: Usefulness
    shortcomings: list[Shortcoming]
    outputs: int
    span: tuple[float, float] | None = None
    bias: float | None = None
    shares: bool | None = None

    def times_wider(self, domain: Domain) -> float | None:
        """How many times as wide as the range of labels the span of the outputs is."""
        if self.span is None or isinstance(domain, CategoricalDomain):
            return None
        low, high = self.span
        return (high - low) / (domain.max - domain.min)

    def lines(self, rows: int | None, *, verbose: bool) -> list[tuple[str, str]]:
        """(name, text) of each line for people."""
        if self.settled:
            return self.figures.figures(rows, self.prior, verbose=verbose)
        return self.figures.estimates(rows, verbose=verbose)

    def to_json(self, rows: int | None) -> dict[str, Any]:
        """As ``Usefulness``; null for what is a bound of the rehearsal only."""
        facts = self.figures.to_json(rows, self.prior) | {"settled": self.settled}
        if not self.settled:
            facts["more_labels"] = None
            for key in ("deviation", "distance", "kept"):
                if facts[key] is not None:
                    facts[key] |= {"least": None, "most": None}
            for margin in facts["margins"]:
                margin["all_labels"] = None
        return facts


def expected_use(spec: Spec, budget: EpsilonBudget, forecast: Forecast) -> ExpectedUse | None:
    """The figures of a spec before it is compiled; None if the solve takes too long."""
    domain = spec.domain
    if forecast.seconds.least > MAX_SECONDS or domain.size > MAX_LABELS:
        return None
    known = spec.known_weights
    # Tables of groups share a lookup, so their integers differ from those of one table.
    settled = budget.groups is None and (
        known is not None or is_unpaid(spec, budget) or not spec.named_mechanism.follows_prior
    )
    weights = [1] * domain.size if known is None else list(known)
    problem = problem_of(spec, domain, weights, budget.label, budget.rows)
    try:
        randomizer = spec.named_mechanism.build(problem).randomizer
    except (ValueError, ArithmeticError, InputError):
        return None  # this prior is not the one that compile will have
    figures, shortcomings = assess(domain, randomizer, weights, budget.label, spec.loss)
    if not settled:  # another randomizer may use all of ε
        ratio = math.exp(budget.label)
        belief = tuple((share, most_belief(ratio, share)) for share in SHARES)
        figures = replace(figures, belief=belief)
    span = bias = None
    if are_numbers(domain, randomizer):
        span, bias = _span(randomizer), randomizer_bias(domain, randomizer)
    shares = None
    if settled:
        margin = figures.margin(max(ROWS, budget.rows or 0))
        if not spec.has_classes:
            of_shares, _ = assess(domain, randomizer, weights, budget.label, "zero_one")
            margin = of_shares.margin(max(ROWS, budget.rows or 0))
        shares = margin is not None and margin < _UNKNOWN
    prior = "uniform" if known is None else spec.prior.kind
    return ExpectedUse(
        prior, settled, figures, shortcomings, randomizer.outputs, span, bias, shares
    )


def _span(randomizer: Randomizer) -> tuple[float, float]:
    if isinstance(randomizer, AdditiveRandomizer):
        ends = randomizer.low, randomizer.high
        low, high = (end * randomizer.unit + randomizer.origin for end in ends)
        return low, high
    return float(min(randomizer.values)), float(max(randomizer.values))
