"""From the spec's prior to one for each public group, and what they cost together.

Sizes of groups are public, and known before a label is read: they decide which groups have tables
of their own, and how ε is divided (``group_plan.py``). Then labels are counted by table, in one
pass, and noise is drawn: on the histogram of all rows, and on those of all tables at once.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from labeldp_verify.forms import Groups
from numpy.typing import NDArray

from labeldp_compile.errors import InputError, refused
from labeldp_compile.ledger import PriorAccount, Question
from labeldp_compile.prior.asked_groups import asked_groups
from labeldp_compile.prior.discrete_laplace import (
    NoisyHistogram,
    noisy_histogram,
    seeded_histogram,
)
from labeldp_compile.prior.group_plan import (
    GroupPlan,
    level_counts,
)
from labeldp_compile.prior.group_priors import (
    GroupedPrior,
    GroupPrior,
    Levels,
    Public,
    priors_of,
    sharing,
)
from labeldp_compile.prior.histogram import count_groups, count_labels
from labeldp_compile.prior.kept import DataStamp, KeptGroups, KeptPrior, read_kept, write_kept
from labeldp_compile.prior.obtain import (
    ANSWER_BYTES,
    COUNT_BYTES,
    BeforeSpending,
    Keep,
    Prior,
    Say,
    require_rows,
    split_in_words,
)
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PrivatePrior, PublicPrior

if TYPE_CHECKING:
    from labeldp_compile.tabular import TableReader

_SEEDS = 2  # of the two levels: as different as the draws of one


def open_grouped(spec: Spec, directory: Path, asked: Groups) -> TableReader:
    """The data of a prior by group, opened."""
    from labeldp_compile.tabular import open_table  # noqa: PLC0415  # pyarrow

    prior = spec.prior
    assert isinstance(prior, PrivatePrior | PublicPrior) and prior.data is not None
    return open_table(
        directory / prior.data,
        spec.label.names,
        spec.domain,
        all_columns=False,
        count_column=prior.counts if isinstance(prior, PrivatePrior) else None,
        group_columns=asked.columns,
        form=prior.form,
    )


def look_at_groups(
    spec: Spec, directory: Path, progress: Callable[[int], None] = lambda rows: None
) -> tuple[Public, TableReader]:
    """The sizes of the groups that a spec asks for; reads no label. Raises DataError."""
    asked = asked_groups(spec, directory)
    table = open_grouped(spec, directory, asked)
    sizes = count_groups(table, asked, progress)
    stated = spec.prior.rows if isinstance(spec.prior, PrivatePrior) else None
    require_rows(table.path, stated, sum(sizes))
    return Public(asked, sizes), table


def estimate_group_priors(
    spec: Spec,
    directory: Path,
    *,
    test_seed: int | None = None,
    progress: Callable[[int], None] = lambda rows: None,
    before_spending: BeforeSpending = lambda epsilon_prior, epsilon_label, rows: None,
    before_tables: Callable[[int, int], None] = lambda tables, rows: None,
    account: PriorAccount | None = None,
    keep: Keep | None = None,
    say: Say = lambda line: None,
) -> GroupedPrior:
    """The priors of a spec with groups; arguments and errors are those of ``estimate_prior``.

    ``before_tables`` is called with T + 1 and n before anything is spent, and may raise. Groups
    whose priors came out alike share a table.
    """
    found = _estimated(
        spec, directory, test_seed, progress, before_spending, before_tables, account, keep, say
    )
    return sharing(found)


def _estimated(
    spec: Spec,
    directory: Path,
    test_seed: int | None,
    progress: Callable[[int], None],
    before_spending: BeforeSpending,
    before_tables: Callable[[int, int], None],
    account: PriorAccount | None,
    keep: Keep | None,
    say: Say,
) -> GroupedPrior:
    if test_seed is not None and account is not None:
        raise InputError("a test seed makes no private prior: leave out the ledger, too")
    stamp = None
    if isinstance(spec.prior, PrivatePrior):
        stamp = DataStamp.of(spec.prior.data, directory / spec.prior.data)
        kept = None if keep is None or test_seed is not None else read_kept(keep.path)
        if keep is not None and kept is not None:
            return _from_file(spec, asked_groups(spec, directory), stamp, keep, kept)
    public, table = look_at_groups(spec, directory)
    _warn(public, say)
    plan = public.plan(spec)
    before_tables(plan.tables + 1, public.rows)
    if isinstance(spec.prior, PublicPrior):
        before_spending(Fraction(0), plan.epsilon_label, public.rows)
        groups, order = public.joined(plan)
        levels = _drawn(plan, _by_plan(table, groups, order, progress), _no_noise)
        return priors_of(spec, public, plan, levels)
    assert stamp is not None
    say(f"groups: {plan.reason}")
    if plan.is_uniform:
        before_spending(Fraction(0), plan.epsilon_label, public.rows)
        return priors_of(spec, public, plan, None)
    if account is not None:
        return _accounted(spec, public, plan, table, progress, before_spending, account)
    before_spending(plan.epsilon_prior, plan.epsilon_label, public.rows)
    groups, order = public.joined(plan)
    counts = _by_plan(table, groups, order, progress)
    _require_same(table.path, public, int(counts.sum()))
    if DataStamp.of(stamp.name, table.path) != stamp:
        raise refused(table.path, "was changed while it was read; nothing was spent")
    levels = _drawn(plan, counts, _noise(test_seed))
    if keep is not None and test_seed is None:
        pooled, tables = levels
        others = KeptGroups(list(public.sizes), tables.counts, tables.scale)
        question = question_of(spec, public, plan).digest()
        write_kept(
            keep.path,
            KeptPrior(question, plan.epsilon_prior, stamp, public.rows, pooled, others),
        )
        keep.say(
            f"ε₁ = {float(plan.epsilon_prior):g} is spent; until the artifact is written, "
            f"{keep.path} keeps the noisy priors"
        )
    return priors_of(spec, public, plan, levels)


def _warn(public: Public, say: Say) -> None:
    """Before a label is read: groups that may be none."""
    for text in public.odd:
        say(f"warning: {text}")


Draw = Callable[[NDArray[np.int64], Fraction, int], NoisyHistogram]


def _by_plan(
    table: TableReader, groups: Groups, order: list[int], progress: Callable[[int], None]
) -> NDArray[np.int64]:
    """[T + 1, k] counts of labels in the order of the plan's tables."""
    counts = count_labels(table, progress, groups)
    in_order = np.zeros_like(counts)
    in_order[order] = counts
    return in_order


def _drawn(plan: GroupPlan, counts: NDArray[np.int64], draw: Draw) -> Levels:
    everything, tables = level_counts(plan, counts)
    pooled = draw(everything, plan.epsilon_pooled, 0)
    if not plan.tables:
        return pooled, NoisyHistogram([], 0.0)
    return pooled, draw(tables, plan.epsilon_groups, 1)


def _noise(test_seed: int | None) -> Draw:
    if test_seed is None:
        return lambda counts, epsilon, level: noisy_histogram(counts, epsilon)
    return lambda counts, epsilon, level: seeded_histogram(
        counts, epsilon, _SEEDS * test_seed + level
    )


def _no_noise(counts: NDArray[np.int64], epsilon: Fraction, level: int) -> NoisyHistogram:
    return NoisyHistogram([int(count) for count in counts], 0.0)


def _require_same(path: Path, public: Public, rows: int) -> None:
    if rows != public.rows:
        raise refused(path, "was changed while it was read; nothing was spent")


def question_of(spec: Spec, public: Public, plan: GroupPlan) -> Question:
    """What decides the noisy histograms, apart from the data."""
    facts = {
        "columns": [{"name": column.name, **column.to_json()} for column in public.asked.columns],
        "table_of_cell": list(public.asked.table_of_cell),
        "epsilon": str(plan.epsilon_groups),
        "cells": plan.group_cells,
        "tables": list(plan.table_of_cell),
    }
    return Question.of(spec, plan.epsilon_prior, plan.pooled_cells, facts)


def _from_file(
    spec: Spec, asked: Groups, stamp: DataStamp, keep: Keep, kept: KeptPrior
) -> GroupedPrior:
    """The priors that an earlier compile paid for; no label is read."""
    assert isinstance(spec.prior, PrivatePrior)
    if kept.groups is None or len(kept.groups.sizes) != asked.tables:
        kept.require(keep.path, None, stamp, len(kept.noisy.counts))
    assert kept.groups is not None
    require_rows(keep.path, spec.prior.rows, kept.rows)
    public = Public(asked, kept.groups.sizes)
    _warn(public, keep.say)
    plan = public.plan(spec)
    cells = plan.group_cells or spec.domain.size
    kept.require(
        keep.path,
        question_of(spec, public, plan),
        stamp,
        plan.pooled_cells or spec.domain.size,
        plan.tables * cells,
    )
    keep.say(
        f"{keep.path}: reusing the noisy priors of a compile that wrote no artifact "
        f"(ε₁ = {float(plan.epsilon_prior):g} was spent then); nothing is spent, and no label is "
        "read"
    )
    tables = NoisyHistogram(kept.groups.counts, kept.groups.scale)
    return priors_of(spec, public, plan, (kept.noisy, tables))


def _accounted(
    spec: Spec,
    public: Public,
    plan: GroupPlan,
    table: TableReader,
    progress: Callable[[int], None],
    before_spending: BeforeSpending,
    account: PriorAccount,
) -> GroupedPrior:
    """The same through a ledger, which is paid before a label is read."""
    question = question_of(spec, public, plan)
    groups, order = public.joined(plan)
    answer = account.recall(question)
    if answer is None:
        before_spending(plan.epsilon_prior, plan.epsilon_label, public.rows)
        size = (groups.tables + 1) * (ANSWER_BYTES // 4 + COUNT_BYTES * spec.domain.size)
        account.require_room(ANSWER_BYTES + size)
        spent = account.spend(question)
        digest = account.require_same_data(table.path, spec.label.key)
        counts = _by_plan(table, groups, order, progress)
        require_rows(table.path, public.rows, int(counts.sum()))
        found = priors_of(spec, public, plan, _drawn(plan, counts, _noise(None)))
        kept = [{"size": one.size, "prior": one.statement} for one in found.tables]
        answer = {**found.pooled.statement, "groups": kept}
        account.keep(spent, question, digest, answer)
        return found
    words = split_in_words(spec)
    tables = [GroupPrior(one["size"], {**one["prior"], "split": words}) for one in answer["groups"]]
    if len(tables) != groups.tables or sum(one.size for one in tables) != public.rows:
        raise refused(
            table.path,
            "has other groups than the data that had this data_version before: other data need "
            "another data_version",
        )
    last = tables[-1].statement
    pooled = Prior(last["weights"], plan.epsilon_prior, plan.epsilon_label, last)
    return GroupedPrior(groups, pooled, tables)
