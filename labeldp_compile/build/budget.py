"""How ε would be spent on the prior and on each label, without reading a label."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.entries import Question
from labeldp_compile.prior.discrete_laplace import L1_SENSITIVITY, deviation
from labeldp_compile.prior.group_cells import ONE_TABLE
from labeldp_compile.prior.obtain import PriorSource, counted_person
from labeldp_compile.prior.plan import needs_rows, plan_prior
from labeldp_compile.prior.priors import PersonsSeen, PublicFacts
from labeldp_compile.prior.split import PriorPlan
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
