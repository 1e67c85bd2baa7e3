"""From the spec's prior to integer weights, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeldp_compile.errors import InputError, refused
from labeldp_compile.histogram_noise import NOISE
from labeldp_compile.ledger import PriorAccount, Question
from labeldp_compile.prior.discrete_laplace import (
    L1_SENSITIVITY,
    NoisyHistogram,
    coarse,
    noisy_histogram,
    seeded_histogram,
    weights_of,
)
from labeldp_compile.prior.histogram import count_labels
from labeldp_compile.prior.kept import DataStamp, KeptPrior, read_kept, write_kept
from labeldp_compile.prior.split import PriorPlan, needs_rows, plan_prior
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PrivatePrior, PublicPrior

if TYPE_CHECKING:
    from labeldp_compile.tabular import TableReader

ANSWER_BYTES, COUNT_BYTES = 10_000, 40  # of a ledger's entry, at most: fixed, and for each label
BeforeSpending = Callable[[Fraction, Fraction, int | None], None]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Prior:
    """Integer weights [k] in proportion to the prior, and the budget.

    ``statement`` is the certificate's ``prior``: it says what ε₁ was spent on.
    """

    weights: list[int]
    epsilon_prior: Fraction
    epsilon_label: Fraction
    statement: dict[str, Any]

    @property
    def rows(self) -> int | None:
        """n, where it is stated."""
        rows: int | None = self.statement.get("rows")
        return rows


@dataclass(frozen=True)
class Keep:
    """Where a draw that no ledger remembers is kept, and who is told; see ``prior/kept.py``."""

    path: Path
    say: Callable[[str], None] = lambda line: None


def estimate_prior(
    spec: Spec,
    directory: Path,
    *,
    test_seed: int | None = None,
    progress: Callable[[int], None] = lambda rows: None,
    before_spending: BeforeSpending = lambda epsilon_prior, epsilon_label, rows: None,
    account: PriorAccount | None = None,
    keep: Keep | None = None,
    say: Say = lambda line: None,
) -> Prior:
    """The prior of a spec whose paths are relative to ``directory``.

    ``before_spending`` is called with ε₁, ε₂ and n (None if it is not known yet) before any noise
    is drawn, and may raise. Raises DataError for unusable data and BudgetError if ε cannot pay for
    the prior. A private prior spends ε₁ each time this is called, unless an ``account`` recalls
    what it answered before, or the file of ``keep`` has it; without an account it is kept there.
    With an account ε₁ is written to its ledger before a label is read, and OverBudgetError is
    raised if the ledger's budget cannot pay. ``say`` is told what ``split: auto`` chose, and why;
    where that is a uniform prior, nothing is spent, and no label is read if the number of rows is
    known without.
    """
    domain, prior, epsilon = spec.domain, spec.prior, Fraction(spec.privacy.epsilon)
    if isinstance(prior, PrivatePrior):
        from labeldp_compile.tabular import open_table  # noqa: PLC0415  # pyarrow

        table = open_table(
            directory / prior.data,
            spec.label.names,
            domain,
            all_columns=False,
            count_column=prior.counts,
            form=prior.form,
        )
        if table.rows is not None:
            require_rows(table.path, prior.rows, table.rows)
        if account is None:
            if test_seed is not None:
                keep = None
            return _private(spec, table, test_seed, progress, before_spending, keep, say)
        if test_seed is not None:
            raise InputError("a test seed makes no private prior: leave out the ledger, too")
        return _accounted(spec, table, progress, before_spending, account, say)
    if isinstance(prior, PublicPrior):
        if prior.weights is not None:
            weights = integer_weights(prior.weights)
        else:
            from labeldp_compile.tabular import open_table  # noqa: PLC0415  # pyarrow

            assert prior.data is not None
            path = directory / prior.data
            table = open_table(path, spec.label.names, domain, all_columns=False, form=prior.form)
            weights = [int(count) for count in _counts(table, progress)]
    else:
        weights = [1] * domain.size
    before_spending(Fraction(0), epsilon, sum(weights))
    statement = {"kind": prior.kind, "weights": weights}
    return Prior(weights, Fraction(0), epsilon, statement)


def integer_weights(weights: Sequence[Decimal]) -> list[int]:
    """Decimals as integers in the same proportion."""
    exact = [Fraction(weight) for weight in weights]
    unit = math.lcm(*(weight.denominator for weight in exact))
    integers = [int(weight * unit) for weight in exact]
    common = math.gcd(*integers)
    return [weight // common for weight in integers]


def _private(
    spec: Spec,
    table: TableReader,
    test_seed: int | None,
    progress: Callable[[int], None],
    before_spending: BeforeSpending,
    keep: Keep | None,
    say: Say,
) -> Prior:
    assert isinstance(spec.prior, PrivatePrior)
    stamp = DataStamp.of(spec.prior.data, table.path)
    kept = None if keep is None else read_kept(keep.path)
    if keep is not None and kept is not None:
        return _from_file(spec, stamp, keep, kept)
    rows = spec.prior.rows if table.rows is None else table.rows
    plan = plan_prior(spec, rows or 0) if rows or not needs_rows(spec) else None
    if plan is not None and plan.is_uniform:
        return _unpaid(spec, plan, rows, before_spending, say)
    counts = _counts(table, progress)
    rows = int(counts.sum())
    require_rows(table.path, spec.prior.rows, rows)
    plan = plan_prior(spec, rows)
    if plan.is_uniform:
        return _unpaid(spec, plan, rows, before_spending, say)
    before_spending(plan.epsilon_prior, plan.epsilon_label, rows)
    if DataStamp.of(spec.prior.data, table.path) != stamp:
        raise refused(table.path, "was changed while it was read; nothing was spent")
    noisy = _draw(counts, plan, test_seed)
    if keep is not None:
        question = Question.of(spec, plan.epsilon_prior, plan.cells).digest()
        write_kept(keep.path, KeptPrior(question, plan.epsilon_prior, stamp, rows, noisy))
        keep.say(
            f"ε₁ = {float(plan.epsilon_prior):g} is spent; until the artifact is written, "
            f"{keep.path} keeps the noisy prior"
        )
    _explain(plan, say)
    return _paid(spec, plan, noisy, rows)


def _unpaid(
    spec: Spec, plan: PriorPlan, rows: int | None, before_spending: BeforeSpending, say: Say
) -> Prior:
    """A uniform prior, where a private one is not worth its ε."""
    before_spending(plan.epsilon_prior, plan.epsilon_label, rows)
    _explain(plan, say)
    weights = [1] * spec.domain.size
    statement = {"kind": "uniform", "weights": weights}
    return Prior(weights, plan.epsilon_prior, plan.epsilon_label, statement)


def _paid(spec: Spec, plan: PriorPlan, noisy: NoisyHistogram, rows: int) -> Prior:
    statement = _statement(spec, plan, noisy, rows)
    return Prior(statement["weights"], plan.epsilon_prior, plan.epsilon_label, statement)


def _explain(plan: PriorPlan, say: Say) -> None:
    if plan.reason is not None:
        say(f"split: auto: {plan.reason}")


def _draw(counts: NDArray[np.int64], plan: PriorPlan, test_seed: int | None) -> NoisyHistogram:
    """Noise on the counts of labels, or of cells of them."""
    if plan.cells is not None:
        counts = coarse(counts, plan.cells)
    if test_seed is None:
        return noisy_histogram(counts, plan.epsilon_prior)
    return seeded_histogram(counts, plan.epsilon_prior, test_seed)


def _from_file(spec: Spec, stamp: DataStamp, keep: Keep, kept: KeptPrior) -> Prior:
    """The prior that an earlier compile paid for; no label is read."""
    assert isinstance(spec.prior, PrivatePrior)
    require_rows(keep.path, spec.prior.rows, kept.rows)
    plan = plan_prior(spec, kept.rows)
    question = Question.of(spec, plan.epsilon_prior, plan.cells)
    kept.require(keep.path, question, stamp, plan.cells or spec.domain.size)
    keep.say(
        f"{keep.path}: reusing the noisy prior of a compile that wrote no artifact "
        f"(ε₁ = {float(plan.epsilon_prior):g} was spent then); nothing is spent, and no label is "
        "read"
    )
    return _paid(spec, plan, kept.noisy, kept.rows)


def _accounted(
    spec: Spec,
    table: TableReader,
    progress: Callable[[int], None],
    before_spending: BeforeSpending,
    account: PriorAccount,
    say: Say,
) -> Prior:
    """The same through a ledger, which is paid before a label is read: n must be known by then."""
    assert isinstance(spec.prior, PrivatePrior)
    rows = spec.prior.rows if table.rows is None else table.rows
    if rows is None and needs_rows(spec):
        raise refused(
            table.path,
            f"the ledger is paid before the file is read, and split: {spec.privacy.split} needs "
            "its number of rows: say rows: N beside data (the number is public), or give the parts "
            "yourself, as in split: {prior: …, label: …}",
        )
    plan = plan_prior(spec, rows or 0)
    if plan.is_uniform:
        return _unpaid(spec, plan, rows, before_spending, say)
    question = Question.of(spec, plan.epsilon_prior, plan.cells)
    statement = account.recall(question)
    if statement is None:
        before_spending(plan.epsilon_prior, plan.epsilon_label, rows)
        account.require_room(ANSWER_BYTES + COUNT_BYTES * spec.domain.size)
        spent = account.spend(question)
        digest = account.require_same_data(table.path, spec.label.key)
        counts = _counts(table, progress)
        require_rows(table.path, rows, int(counts.sum()))
        noisy = _draw(counts, plan, None)
        statement = _statement(spec, plan, noisy, int(counts.sum()))
        account.keep(spent, question, digest, statement)
    elif rows is not None and rows != statement["rows"]:
        raise refused(
            table.path,
            f"has {rows:,} rows, but the data that were called "
            f"{spec.prior.data_version!r} had {statement['rows']:,}: other data need another "
            "data_version",
        )
    _explain(plan, say)
    statement = {**statement, "split": split_in_words(spec)}
    return Prior(statement["weights"], plan.epsilon_prior, plan.epsilon_label, statement)


def _statement(spec: Spec, plan: PriorPlan, noisy: NoisyHistogram, rows: int) -> dict[str, Any]:
    """The certificate's ``prior``."""
    weights = weights_of(noisy, rows, spec.domain.size, shrunk=plan.shrunk)
    return {
        "kind": "private",
        "weights": weights,
        "rows": rows,
        "labels": len(weights),
        "mechanism": NOISE,
        "l1_sensitivity": L1_SENSITIVITY,
        "scale": noisy.scale,
        "post_processing": post_processing(plan.cells, shrunk=plan.shrunk),
        "split": split_in_words(spec),
    }


def post_processing(cells: int | None, *, shrunk: bool) -> str:
    """What was done with the noisy counts, and what they are counts of where not of labels."""
    steps = "projection onto counts >= 0 that sum to the rows"
    if shrunk:
        steps = f"shrinking towards even counts, then {steps}"
    if cells is not None:
        steps = f"{cells} cells of neighbouring labels: {steps}, each cell spread evenly"
    return steps


def split_in_words(spec: Spec) -> str:
    """How ε was divided: auto, paper or given."""
    return spec.privacy.split if isinstance(spec.privacy.split, str) else "given"


def _counts(table: TableReader, progress: Callable[[int], None]) -> NDArray[np.int64]:
    counts = count_labels(table, progress)
    require_rows(table.path, None, int(counts.sum()))
    return counts


def require_rows(path: Path, stated: int | None, rows: int) -> None:
    """Raise DataError if the file has no rows, or not the number that the spec states."""
    if not rows:
        raise refused(path, "has no rows")
    if stated is not None and stated != rows:
        raise refused(path, f"has {rows:,} rows, but the spec says rows: {stated}")
