"""From the spec's prior to integer weights for every table, and what they spend together.

The number of rows of each table is public and known before a label is read. It decides which tables
have their own prior, and how ε is split (``plan.py``). Then labels are counted by table in one
pass. Noise is added to the histogram of all rows, and to those of all tables.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from labeldp_verify.forms import CategoricalDomain, Groups, RealDomain, columns_of, missing_label
from numpy.typing import NDArray

from labeldp_compile.errors import InputError, refused
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.prior.discrete_laplace import (
    Levels,
    NoisyHistogram,
    noisy_histogram,
    seeded_histogram,
)
from labeldp_compile.prior.group_cells import group_cells
from labeldp_compile.prior.histogram import count_labels, count_tables
from labeldp_compile.prior.plan import level_counts, needs_rows, plan_prior
from labeldp_compile.prior.priors import (
    PersonsSeen,
    Prior,
    PublicFacts,
    merge_equal_tables,
    priors_of,
)
from labeldp_compile.prior.saved_prior import (
    DataStamp,
    SavedPrior,
    read_saved_prior,
    write_saved_prior,
)
from labeldp_compile.prior.split import PriorPlan
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PersonUnit, PrivatePrior, PublicPrior, UniformPrior

if TYPE_CHECKING:
    from labeldp_compile.ledger.prior_account import PriorAccount
    from labeldp_compile.tabular.reader import TableReader


# Largest size of a ledger entry: fixed, per table, and per label of a table.
ANSWER_BYTES, TABLE_BYTES, COUNT_BYTES = 10_000, 2_500, 40


def estimate_prior(
    spec: Spec,
    directory: Path,
    *,
    test_seed: int | None = None,
    observer: Observer = QUIET,
    account: PriorAccount | None = None,
    keep: Path | None = None,
) -> Prior:
    """The priors of a spec whose paths are relative to ``directory``.

    ``observer.spending`` is called before any noise is drawn. A private prior spends ε₁ at each
    call, unless an ``account`` recalls an earlier answer, or the file ``keep`` has one. Without an
    account, the answer is kept there. With an account, ε₁ is written to its ledger before a label
    is read.

    If ``split: auto`` chooses a uniform prior, nothing is spent. No label is read then, if the
    number of rows is known without. Tables with equal priors are merged.

    Raises DataError for unusable data, BudgetError if ε is too small for the prior, and
    OverBudgetError if the prior would exceed the ledger's budget.
    """
    if test_seed is not None:
        if account is not None:
            raise InputError("a prior from a test seed is not private: remove the ledger, too")
        keep = None
    epsilon, weights = spec.privacy.per_label, spec.known_weights
    if weights is not None:
        observer.spending(PriorPlan(Fraction(0), epsilon), sum(weights))
        return Prior.of({"kind": spec.prior.kind, "weights": weights}, epsilon)
    source = PriorSource.of(spec, directory)
    if not isinstance(spec.prior, PrivatePrior):
        return merge_equal_tables(_estimated(source, None, None, observer, None, None))
    stamp = DataStamp.of(spec.prior.data, source.table.path)
    if keep is not None and (kept := read_saved_prior(keep)) is not None:
        return merge_equal_tables(_from_file(source, stamp, keep, kept, observer))
    return merge_equal_tables(_estimated(source, stamp, test_seed, observer, account, keep))


def counted_person(spec: Spec) -> PersonUnit | None:
    """The unit whose rows the prior bounds: a person, where labels are counted privately."""
    return spec.privacy.person if isinstance(spec.prior, PrivatePrior) else None


@dataclass(frozen=True)
class PriorSource:
    """The opened data of a spec's prior, and the cells of the spec."""

    spec: Spec
    asked: Groups
    table: TableReader

    @classmethod
    def of(cls, spec: Spec, directory: Path) -> PriorSource:
        """Reads no row of the data, but reads the file that assigns cells. Raises DataError."""
        from labeldp_compile.tabular.reader import open_table  # noqa: PLC0415  # pyarrow

        prior, person = spec.prior, counted_person(spec)
        assert isinstance(prior, PrivatePrior | PublicPrior) and prior.data is not None
        asked = group_cells(spec, directory)
        table = open_table(
            directory / prior.data,
            spec.label.names,
            spec.domain,
            all_columns=False,
            count_column=prior.counts if isinstance(prior, PrivatePrior) else None,
            group_columns=asked.columns,
            public_columns=() if person is None else (person.column,),
            form=prior.form,
        )
        return cls(spec, asked, table)

    @property
    def stated_rows(self) -> int | None:
        """n, if the spec states it."""
        return self.spec.prior.rows if isinstance(self.spec.prior, PrivatePrior) else None

    def known(self) -> PublicFacts:
        """The public facts of the data; reads their public columns, if any. Raises DataError."""
        rows = self.stated_rows if self.table.rows is None else self.table.rows
        person = counted_person(self.spec)
        if person is not None:
            from labeldp_compile.tabular.persons import PersonCounts  # noqa: PLC0415  # pyarrow

            persons = PersonCounts.of_table(self.table, person.column)
            require_rows(self.table.path, self.stated_rows, persons.rows)
            seen = PersonsSeen.of(persons, person)
            return PublicFacts(self.asked, count_tables(self.table, self.asked, person), seen)
        if self.asked.columns or (self.table.domain.keeps_nulls and rows is not None):
            sizes = count_tables(self.table, self.asked)
        elif rows is None:
            return PublicFacts(self.asked)
        else:
            sizes = [rows]
        require_rows(self.table.path, self.stated_rows, sum(sizes))
        return PublicFacts(self.asked, sizes)

    def count(
        self, known: PublicFacts, plan: PriorPlan, observer: Observer, spent: str = ""
    ) -> tuple[NDArray[np.int64], PublicFacts]:
        """[T + 1, k] counts of labels in the order of the plan's tables; and n, now known.

        ``spent`` is what to say of a table that has changed, if ε was spent before it was read.
        """
        groups, order = known.joined(plan)
        person = counted_person(self.spec)
        counts = count_labels(self.table, groups, observer, person)
        rows = int(counts.sum())
        if person is None:  # otherwise the rows of the file are more
            require_rows(self.table.path, self.stated_rows, rows)
        if not known.rows:
            known = PublicFacts(self.asked, [rows])
        elif rows != known.rows:
            raise refused(self.table.path, spent or _CHANGED)
        return counts[np.argsort(order)], known


_CHANGED = "changed while it was read; nothing was spent"
_CHANGED_LATE = "changed while it was read; the ε of this attempt stays spent in the ledger"
_NO_PLAN = PriorPlan(Fraction(0), Fraction(0))


def _estimated(
    source: PriorSource,
    stamp: DataStamp | None,
    test_seed: int | None,
    observer: Observer,
    account: PriorAccount | None,
    keep: Path | None,
) -> Prior:
    """The prior from the data; ``stamp`` is that of private data."""
    spec, path = source.spec, source.table.path
    known, counts = source.known(), None
    if not known.rows and needs_rows(spec):
        if account is not None:
            raise refused(
                path,
                f"the ledger records ε₁ before the file is read, but split: {spec.privacy.split} "
                "needs its number of rows: add rows: N beside data (the number is public), or give "
                "the parts yourself, as in split: {prior: …, label: …}",
            )
        counts, known = source.count(known, _NO_PLAN, observer)
    _warn(known, observer)
    plan = plan_prior(spec, known.sizes, known.asked)
    if account is not None and not plan.is_uniform:
        return _accounted(source, known, plan, observer, account)
    observer.spending(plan, known.rows or None)
    if stamp is not None:
        _explain(known, plan, observer)
        if plan.is_uniform:
            return priors_of(spec, known, plan, None)
    if counts is None:
        counts, known = source.count(known, plan, observer)
    if stamp is None:
        return priors_of(spec, known, plan, _levels(plan, counts, None))
    if DataStamp.of(stamp.name, path) != stamp:
        raise refused(path, _CHANGED)
    draw: Draw = noisy_histogram
    if test_seed is not None:
        # Two levels need two different seeds.
        draw = _seeded(2 * test_seed if known.asked.columns else test_seed)
    levels = _levels(plan, counts, draw)
    if keep is not None:
        question = known.question(spec, plan)
        write_saved_prior(keep, SavedPrior.of(question, stamp, known.sizes, levels))
        observer.say(
            f"ε₁ = {float(question.epsilon):g} is spent; {keep} keeps the noisy prior until the "
            "artifact is written"
        )
    return priors_of(spec, known, plan, levels)


def _from_file(
    source: PriorSource, stamp: DataStamp, keep: Path, kept: SavedPrior, observer: Observer
) -> Prior:
    """The prior that an earlier compile kept; no label is read."""
    spec, known = source.spec, PublicFacts(source.asked, kept.sizes)
    if len(kept.sizes) != source.asked.tables:
        kept.require(keep, None, stamp)
    if counted_person(spec) is None:
        require_rows(keep, source.stated_rows, known.rows)
    _warn(known, observer)
    plan = plan_prior(spec, known.sizes, known.asked)
    kept.require(keep, known.question(spec, plan), stamp)
    observer.say(
        f"{keep}: reusing the noisy prior of a compile that wrote no artifact "
        f"(ε₁ = {float(Fraction(kept.epsilon)):g} was spent then); nothing is spent, and no label "
        "is read"
    )
    return priors_of(spec, known, plan, kept.levels)


def _accounted(
    source: PriorSource,
    known: PublicFacts,
    plan: PriorPlan,
    observer: Observer,
    account: PriorAccount,
) -> Prior:
    """The priors through a ledger, which records ε₁ before a label is read."""
    spec, path = source.spec, source.table.path
    question, (groups, _) = known.question(spec, plan), known.joined(plan)
    answer = account.recall(question)
    if answer is None:
        observer.spending(plan, known.rows or None)
        each = TABLE_BYTES + COUNT_BYTES * spec.domain.size
        account.require_room(ANSWER_BYTES + (groups.tables + 1) * each)
        spent = account.spend(question)
        _explain(known, plan, observer)
        digest = account.require_same_data(path, spec.label.key)
        counts, known = source.count(known, plan, observer, _CHANGED_LATE)
        found = priors_of(spec, known, plan, _levels(plan, counts, noisy_histogram))
        account.keep(spent, question, digest, found.to_answer())
        return found
    _explain(known, plan, observer)
    found = Prior.of_answer(answer, plan, groups, spec.privacy.split_in_words)
    had = sum(one.size for one in found.tables)
    if known.rows not in (0, had):
        raise refused(
            path,
            f"has {known.rows:,} rows, but earlier data with this data_version had {had:,}: "
            "give other data another data_version",
        )
    if len(found.tables) != groups.tables:
        raise refused(
            path,
            "has other groups than earlier data with this data_version: give other data another "
            "data_version",
        )
    return found


def _explain(known: PublicFacts, plan: PriorPlan, observer: Observer) -> None:
    if plan.reason is not None:
        part = (
            "" if known.persons is None else f", of one of a person's {known.persons.most:,} labels"
        )
        observer.say(f"{'groups' if known.asked.columns else 'split: auto'}{part}: {plan.reason}")


def _warn(known: PublicFacts, observer: Observer) -> None:
    """Warn about odd groups, and rows beyond a person's labels, before a label is read."""
    if known.persons is not None and known.persons.extra:
        observer.say(f"persons: {known.persons.left_out()}")
    for text in known.odd:
        observer.say(f"warning: {text}")


Draw = Callable[[NDArray[np.int64], Fraction], NoisyHistogram]
"""From counts and ε to noisy counts."""


def _levels(plan: PriorPlan, counts: NDArray[np.int64], draw: Draw | None) -> Levels:
    """Noisy counts of all rows, and of the tables; for a public prior the exact counts."""
    everything, tables = level_counts(plan, counts)
    if draw is None:
        return NoisyHistogram(everything.tolist(), 0.0), NoisyHistogram(tables.tolist(), 0.0)
    pooled = draw(everything, plan.epsilon_pooled)
    return pooled, draw(tables, plan.epsilon_tables) if plan.tables else NoisyHistogram([], 0.0)


def _seeded(seed: int) -> Draw:
    """Draws with one seed after another."""
    seeds = itertools.count(seed)
    return lambda counts, epsilon: seeded_histogram(counts, epsilon, next(seeds))


def require_rows(path: Path, stated: int | None, rows: int) -> None:
    """Raise DataError if the file has no rows, or not the number that the spec states."""
    if not rows:
        raise refused(path, "has no rows")
    if stated is not None and stated != rows:
        raise refused(path, f"has {rows:,} rows, but the spec says rows: {stated}")


# Doubts whether a table's labels were read as they were meant.
#
# They come from the stated form of the table and from the noisy prior, which are public, and never
# from the labels.


MUCH = 0.9  # of the prior where labels count that cannot be read


def form_doubts(spec: Spec) -> list[str]:
    """A line where labels may have decimal commas, before anything is read."""
    if isinstance(spec.prior, UniformPrior) or all(
        isinstance(domain, CategoricalDomain) for domain in columns_of(spec.domain)
    ):
        return []
    return spec.prior.form.comma_warning()


def prior_doubts(spec: Spec, prior: Prior, directory: Path) -> list[str]:
    """A line for each label column of a text table whose noisy prior is nearly all at the label
    that cells have which cannot be read."""
    from labeldp_compile.tabular.formats import files_of, format_of  # noqa: PLC0415

    if not isinstance(spec.prior, PrivatePrior) or not prior.epsilon_prior:
        return []
    form = format_of(files_of(directory / spec.prior.data)[0])
    if form is None or not form.is_text:
        return []
    columns = columns_of(spec.domain)
    weights = np.array(prior.weights, float).reshape([column.size for column in columns])
    lines = []
    for axis, (name, column) in enumerate(zip(spec.label.names, columns, strict=True)):
        others = tuple(other for other in range(len(columns)) if other != axis)
        shares = weights.sum(axis=others) / weights.sum()
        label = missing_label(column)
        if isinstance(column, RealDomain):
            place = column.index(float(label))
        else:
            listed: list[Any] = list(column.listed)
            place = listed.index(label)
        # Labels that were counted in one cell have the same weight.
        edges = [0, *(np.flatnonzero(np.diff(shares)) + 1).tolist(), len(shares)]
        cell = next(slice(a, b) for a, b in itertools.pairwise(edges) if a <= place < b)
        share = float(shares[cell].sum())
        if share >= MUCH and 2 * (cell.stop - cell.start) <= len(shares):
            lines.append(
                f"{name!r}: {math.floor(100 * share)}% of the noisy prior is at {label}, where all "
                "cells count that cannot be read: if you expected other labels, check the decimal "
                "mark, the spelling and the encoding of the column (docs/tables.md)"
            )
    return lines
