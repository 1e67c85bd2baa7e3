"""From the spec's prior to integer weights for every table, and what they spend together.

The number of rows of each table is public and known before a label is read. It decides which tables
have their own prior, and how ε is split (``plan.py``). Then labels are counted by table in one
pass. Noise is added to the histogram of all rows, and to those of all tables.

The noisy histogram is kept in a file beside the output until the artifact is written. Without a
ledger, only this file remembers it. ε₁ is spent as soon as anyone can see the noisy counts, so they
are on the disk before they are used. If something fails later (a solver, the disk, the power), the
next compile with the same question and data finds them and spends nothing. If the file cannot be
written, the counts are deleted unseen.

The counts in it are ε₁-DP and not secret, but the size of the data is exact: the file is for its
owner alone. Only size and time of change show that the data are the same: with a plain digest,
anyone could confirm a guess of all labels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from labeldp_verify.errors import readable
from labeldp_verify.forms import CategoricalDomain, Groups, RealDomain, columns_of, missing_label
from numpy.typing import NDArray

from labeldp_compile.errors import DataError, InputError, refused
from labeldp_compile.ledger.entries import Question
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.prior.discrete_laplace import (
    Levels,
    NoisyHistogram,
    noisy_histogram,
    seeded_histogram,
)
from labeldp_compile.prior.group_cells import group_cells
from labeldp_compile.prior.histogram import count_labels, count_tables
from labeldp_compile.prior.plan import PriorPlan, level_counts, needs_rows, plan_prior
from labeldp_compile.prior.priors import (
    PersonsSeen,
    Prior,
    PublicFacts,
    merge_equal_tables,
    priors_of,
)
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PersonUnit, PrivatePrior, PublicPrior, UniformPrior
from labeldp_compile.tabular.formats import files_of
from labeldp_compile.whole_file import name_held_in, read_record, write_record
from labeldp_compile.yaml_model import Strict

if TYPE_CHECKING:
    from labeldp_compile.ledger.prior_account import PriorAccount
    from labeldp_compile.tabular.reader import TableReader


class DataStamp(Strict):
    """Which data were counted: the name in the spec, size in bytes, time of change in ns.

    For a folder: the size of its parts, and the latest time of the folder and its parts.
    """

    name: str
    size: int
    modified_ns: int

    @classmethod
    def of(cls, name: str, path: Path) -> DataStamp:
        """The stamp of a file or folder as it is now; raises DataError."""
        with readable(path, DataError):
            files = [file.stat() for file in files_of(path)]
            latest = max(status.st_mtime_ns for status in (path.stat(), *files))
        size = sum(status.st_size for status in files)
        return cls(name=name, size=size, modified_ns=latest)


class SavedPrior(Strict):
    """The file's JSON: noisy histograms with their question, data and ε₁.

    Attributes:
        question_sha256: digest of column, counts, domain and ε₁ (``Question.digest``).
        epsilon: ε₁, exact.
        data: what was counted.
        sizes: [T + 1] public rows of each table.
        levels: noisy counts of all rows, and of all tables one after the other.
    """

    format_version: Literal["1.0"] = "1.0"
    question_sha256: str
    epsilon: str
    data: DataStamp
    sizes: list[int]
    levels: tuple[NoisyHistogram, NoisyHistogram]

    @classmethod
    def of(
        cls, question: Question, data: DataStamp, sizes: Sequence[int], levels: Levels
    ) -> SavedPrior:
        """From the sizes of tables [T + 1], and their noisy counts."""
        return cls(
            question_sha256=question.digest(),
            epsilon=str(question.epsilon),
            data=data,
            sizes=list(sizes),
            levels=levels,
        )

    def require(self, path: Path, question: Question | None, data: DataStamp) -> None:
        """Raise DataError unless this answers the question about these data; ``path`` is its file.

        None as a question never matches.

        Nothing is spent then: a kept prior is never ignored without a message.
        """
        paid = (
            f"{path}: holds a noisy prior on which ε₁ = {float(Fraction(self.epsilon)):g} was "
            "spent, but"
        )
        if question is None or self.question_sha256 != question.digest():
            raise DataError(
                f"{paid} for another column, domain, counts, groups, data or ε₁: restore these to "
                "use it, or delete the file and spend ε₁ again"
            )
        if self.data != data:
            raise DataError(
                f"{paid} the data file now has another name, size or time of change: restore the "
                "old data to use it, or delete the file and spend ε₁ again"
            )


def saved_prior_path(directory: Path, name: str) -> Path:
    """Where a compile of the spec ``name`` into the directory keeps its noisy prior."""
    return directory / f"{name}.prior.json"


def hold_saved_prior(directory: Path, name: str) -> AbstractContextManager[None]:
    """Only the holder spends on, keeps or removes that prior; DataError if another one holds it.

    Two compiles at the same time would spend twice, and one would remove the other's file.
    """
    # Not the name of an output: the process that holds this name writes the outputs.
    return name_held_in(directory, f"{name}.compile")


def read_saved_prior(path: Path) -> SavedPrior | None:
    """The prior that an earlier compile left, or None. Raises DataError for a damaged file."""
    if not path.exists():
        return None
    record = read_record(path, SavedPrior)
    if record is None:
        raise DataError(
            f"{path}: expected the noisy prior that an earlier compile kept, but the file is "
            "damaged or something else: delete it, and the next compile spends ε₁ again; nothing "
            "is spent now"
        )
    return record


def write_saved_prior(path: Path, kept: SavedPrior) -> None:
    """Put the file on the disk, whole or not at all; DataError if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_record(path, kept, secret=True)
    except (OSError, InputError) as error:
        path.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"{path}: cannot keep the noisy prior, so it was deleted unseen and nothing was spent: "
            f"{reason}"
        ) from error


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
            ""
            if known.persons is None
            else f" for each of a person's {known.persons.most:,} labels"
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
