"""From the spec's prior to integer weights, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from labeldp_compile.prior.discrete_laplace import (
    L1_SENSITIVITY,
    NOISE,
    noisy_histogram,
    seeded_histogram,
)
from labeldp_compile.prior.histogram import count_labels
from labeldp_compile.prior.projection import project_to_total
from labeldp_compile.prior.rows import require_rows
from labeldp_compile.prior.split import split_epsilon
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PrivatePrior, PublicPrior
from labeldp_compile.tabular import TableReader, open_table


@dataclass(frozen=True)
class Prior:
    """Integer weights [k] in proportion to the prior, and the budget.

    ``statement`` is the certificate's ``prior``: it says what ε₁ was spent on.
    """

    weights: list[int]
    epsilon_prior: Fraction
    epsilon_label: Fraction
    statement: dict[str, Any]


def estimate_prior(
    spec: Spec,
    directory: Path,
    *,
    test_seed: int | None = None,
    progress: Callable[[int], None] = lambda rows: None,
    before_spending: Callable[[Fraction], None] = lambda epsilon_label: None,
) -> Prior:
    """The prior of a spec whose paths are relative to ``directory``.

    ``before_spending`` is called with ε₂ before any noise is drawn, and may raise.
    Raises DataError for unusable data and BudgetError if ε cannot pay for the prior. A private
    prior spends ε₁ each time this is called.
    """
    domain, prior, epsilon = spec.domain, spec.prior, Fraction(spec.privacy.epsilon)
    if isinstance(prior, PrivatePrior):
        table = open_table(
            directory / prior.data,
            spec.label.column,
            domain,
            all_columns=False,
            count_column=prior.counts,
        )
        if table.rows is not None:
            require_rows(table.path, prior.rows, table.rows)
        return _private(spec, table, test_seed, progress, before_spending)
    if isinstance(prior, PublicPrior):
        if prior.weights is not None:
            weights = integer_weights(prior.weights)
        else:
            assert prior.data is not None
            path = directory / prior.data
            table = open_table(path, spec.label.column, domain, all_columns=False)
            weights = [int(count) for count in _counts(table, progress)]
    else:
        weights = [1] * domain.size
    before_spending(epsilon)
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
    before_spending: Callable[[Fraction], None],
) -> Prior:
    assert isinstance(spec.prior, PrivatePrior)
    counts = _counts(table, progress)
    rows = int(counts.sum())
    require_rows(table.path, spec.prior.rows, rows)
    epsilon_prior, epsilon_label = split_epsilon(spec.privacy, rows, len(counts))
    before_spending(epsilon_label)
    if test_seed is None:
        noisy = noisy_histogram(counts, epsilon_prior)
    else:
        noisy = seeded_histogram(counts, epsilon_prior, test_seed)
    weights = project_to_total(noisy.counts, rows)
    statement = {
        "kind": "private",
        "weights": weights,
        "rows": rows,
        "labels": len(counts),
        "mechanism": NOISE,
        "l1_sensitivity": L1_SENSITIVITY,
        "scale": noisy.scale,
        "post_processing": "projection onto counts >= 0 that sum to the rows",
        "split": "auto" if spec.privacy.split == "auto" else "given",
    }
    return Prior(weights, epsilon_prior, epsilon_label, statement)


def _counts(table: TableReader, progress: Callable[[int], None]) -> Any:
    counts = count_labels(table, progress)
    require_rows(table.path, None, int(counts.sum()))
    return counts
