"""How ε would be spent: on the prior, whose data nobody reads here, and on each label."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from labeldp_compile.errors import InputError
from labeldp_compile.histogram_noise import deviation
from labeldp_compile.ledger import Question
from labeldp_compile.prior.discrete_laplace import L1_SENSITIVITY
from labeldp_compile.prior.obtain import require_rows
from labeldp_compile.prior.obtain_groups import look_at_groups, question_of
from labeldp_compile.prior.split import needs_rows, plan_prior
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PrivatePrior, PublicPrior
from labeldp_compile.tabular.formats import require_format
from labeldp_compile.tabular.parts import files_of


class RowsUnknownError(InputError):
    """The split of ε needs the number of rows, which only reading the data could tell."""


@dataclass(frozen=True)
class Noise:
    """The noise on each count of the label histogram.

    Attributes:
        scale: of the discrete Laplace distribution, 2/ε₁.
        deviation: its standard deviation, in rows.
        average_count: the rows that a label (or a cell of labels) has on average; None if n is not
            known.
    """

    scale: float
    deviation: float
    average_count: float | None


@dataclass(frozen=True)
class GroupBudget:
    """What is known of priors by group.

    Attributes:
        tables: T + 1, with that of all other rows.
        listed: the groups that the spec lists.
        epsilon: the part of ε₁ that is for the histograms of the groups.
        noise: on each of their counts; None if they cost nothing.
        cells: of neighbouring labels that are counted together in them, or None.
        question: what a ledger would be asked; None if nothing is spent.
        odd: what is odd of the groups' public sizes, in words.
    """

    tables: int
    listed: int
    epsilon: Fraction
    noise: Noise | None
    cells: int | None
    question: Question | None
    odd: tuple[str, ...] = ()


@dataclass(frozen=True)
class Budget:
    """The exact parts of ε, and what the first one pays for.

    Attributes:
        total, prior, label: ε, ε₁ and ε₂ = ε − ε₁.
        data: the file that is counted, or None.
        rows: n, or None where it does not matter or is not known.
        noise: of a private prior, else None.
        cells: of neighbouring labels that are counted together, or None.
        reason: why ``split: auto`` chose this; None if it had nothing to choose.
        groups: the same by group, if there are groups.
    """

    total: Fraction
    prior: Fraction
    label: Fraction
    data: Path | None
    rows: int | None
    noise: Noise | None
    cells: int | None = None
    reason: str | None = None
    groups: GroupBudget | None = None


def find_budget(spec: Spec, directory: Path) -> Budget:
    """The budget of a spec whose paths are relative to ``directory``.

    Reads at most the footer of a Parquet file, and columns of public groups. Raises DataError and
    BudgetError as ``compile`` would, as far as that can be told without the data.
    """
    total, prior = Fraction(spec.privacy.epsilon), spec.prior
    if spec.groups is not None:
        return _of_groups(spec, directory)
    name = prior.data if isinstance(prior, PrivatePrior | PublicPrior) else None
    if name is None:
        return Budget(total, Fraction(0), total, None, None, None)
    path = directory / name
    rows = _stated_rows(spec, path)
    if not isinstance(prior, PrivatePrior):
        return Budget(total, Fraction(0), total, path, rows, None)
    if rows is not None:
        require_rows(path, prior.rows, rows)
    elif prior.rows is None and needs_rows(spec):
        raise RowsUnknownError(
            f"{path}: plan does not read {'text' if prior.counts is None else 'a histogram'}, and "
            f"split: {spec.privacy.split} depends on the number of rows, which is public: add the "
            f"line `rows: N` under `data: {name}` in the spec (or give the parts of ε yourself, as "
            "in split: {prior: …, label: …})"
        )
    rows = prior.rows if rows is None else rows
    plan, noise = plan_prior(spec, rows or 0), None
    if not plan.is_uniform:
        counted = plan.cells or spec.domain.size
        noise = _noise(plan.epsilon_prior, None if rows is None else rows / counted)
    parts = plan.epsilon_prior, plan.epsilon_label
    return Budget(total, *parts, path, rows, noise, plan.cells, plan.reason)


def _of_groups(spec: Spec, directory: Path) -> Budget:
    public, table = look_at_groups(spec, directory)
    plan, noise, group_noise = public.plan(spec), None, None
    chosen = zip(public.sizes, plan.table_of_cell, strict=False)
    in_groups = sum(size for size, table in chosen if table < plan.tables)
    if plan.epsilon_pooled:
        noise = _noise(plan.epsilon_pooled, public.rows / (plan.pooled_cells or spec.domain.size))
    if plan.epsilon_groups:
        counted = plan.tables * (plan.group_cells or spec.domain.size)
        group_noise = _noise(plan.epsilon_groups, in_groups / counted)
    return Budget(
        total=Fraction(spec.privacy.epsilon),
        prior=plan.epsilon_prior,
        label=plan.epsilon_label,
        data=table.path,
        rows=public.rows,
        noise=noise,
        cells=plan.pooled_cells,
        reason=plan.reason,
        groups=GroupBudget(
            plan.tables + 1,
            public.asked.own_tables,
            plan.epsilon_groups,
            group_noise,
            plan.group_cells,
            question_of(spec, public, plan) if plan.epsilon_prior else None,
            tuple(public.odd),
        ),
    )


def is_unpaid(spec: Spec, budget: Budget) -> bool:
    """Whether a private prior was asked for, and ``split: auto`` takes a uniform one."""
    return isinstance(spec.prior, PrivatePrior) and budget.prior == 0


def _stated_rows(spec: Spec, path: Path) -> int | None:
    """The rows that a Parquet footer states; a CSV file only has to be there.

    The rows of a histogram file are no rows of the data, so that it states none.
    """
    if require_format(files_of(path)[0]).is_text:
        return None
    from labeldp_compile.tabular import open_table  # noqa: PLC0415  # pyarrow

    counts = spec.prior.counts if isinstance(spec.prior, PrivatePrior) else None
    table = open_table(path, spec.label.names, spec.domain, all_columns=False, count_column=counts)
    if table.rows is not None:
        require_rows(path, None, table.rows)
    return table.rows


def _noise(epsilon: Fraction, average_count: float | None) -> Noise:
    scale = float(L1_SENSITIVITY / epsilon)
    return Noise(scale, deviation(scale), average_count)
