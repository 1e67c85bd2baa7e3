"""The exponential mechanism over the labels, with the scores −ℓ (McSherry and Talwar 2007).

Pr[v | y] ∝ exp(−λ·ℓ(v, y)). The textbook uses λ = ε/(2Δ) with the sensitivity Δ of the scores. This
bounds the parts of the scores and of the normalization in the worst case, and mostly spends less
than ε. Here λ is the largest rate for which the ratio of the integers is at most e^ε.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from labeldp_verify.analysis import Loss, analyse, exp_lower
from labeldp_verify.forms import TABLE_WORD_BITS as WORD_BITS
from labeldp_verify.forms import (
    CategoricalDomain,
    Domain,
    TableRandomizer,
    check_table,
    output_values,
)
from labeldp_verify.graph import require_small_table

from labeldp_compile.mechanisms.mechanism import (
    Mechanism,
    Problem,
    Solved,
    TableLayout,
    table_layout,
)
from labeldp_compile.rounding.additive_noise import whole_counts
from labeldp_compile.solve.bin_costs import Floats
from labeldp_compile.solve.losses import LOSSES

_BISECTIONS = 60
_BACK = (0.0, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-6, 1e-3, 0.5)  # steps down from the largest λ


class Exponential(Mechanism):
    """The exponential mechanism over the labels, with the scores −loss, spending all of ε."""

    kind: Literal["exponential"]
    form: ClassVar[Literal["window", "additive", "table"]] = "table"
    method = "bisection for the largest rate"

    def seconds(self, labels: int, loss: str, epsilon: float) -> tuple[float, float]:
        """In proportion to the entries of the table."""
        return 6e-6 * labels**2, 6e-6 * labels**2

    def require_feasible(self, domain: Domain, loss: str, epsilon: Fraction) -> None:
        """Raise ValueError if the table would be too large; this reads no label."""
        require_small_table(domain.size, domain.size)

    def build(self, problem: Problem) -> Solved:
        """The table with the largest λ that is ε-DP in whole counts."""
        self.require_feasible(problem.domain, problem.loss, problem.epsilon)
        losses = _losses(problem.domain, problem.loss)
        bits = WORD_BITS if problem.word_bits is None else problem.word_bits
        allowed = exp_lower(problem.epsilon)
        values = tuple(output_values(problem.domain))
        largest = _largest_rate(losses, float(problem.epsilon))
        for back in _BACK:
            table = _table(losses, largest * (1 - back), bits)
            randomizer = TableRandomizer(bits, table, values)
            check_table(randomizer)
            if analyse(randomizer).worst_ratio() <= allowed:
                return Solved(randomizer)
        raise ValueError(
            f"words of {bits} bits are too short for an exponential mechanism at this ε"
        )

    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """One layout: the table does not depend on the prior."""
        return [table_layout(domain.size, domain.size)]


def _losses(domain: Domain, loss: Loss) -> Floats:
    """[k, k] ℓ(v, y), a row for each label y, a column for each output v."""
    costs = LOSSES[loss].costs
    if costs is not None:
        return costs
    if isinstance(domain, CategoricalDomain) or LOSSES[loss].equality:
        return 1.0 - np.eye(domain.size)
    labels = np.array([float(y) for y in domain.labels()])
    v, y = labels[None, :], labels[:, None]
    # A constant per label changes no probability. Without y − y·log y, close outputs stay distinct.
    return LOSSES[loss].apart(v, y)


def _largest_rate(losses: Floats, epsilon: float) -> float:
    """The largest λ with a ratio of at most e^ε, to float64 precision, by bisection."""

    def spent(rate: float) -> float:
        exponents = -rate * losses
        peaks = exponents.max(axis=1, keepdims=True)
        normalizers = np.log(np.exp(exponents - peaks).sum(axis=1, keepdims=True)) + peaks
        logs = exponents - normalizers
        return float((logs.max(axis=0) - logs.min(axis=0)).max())

    low = epsilon / (2 * np.ptp(losses, axis=0).max())  # the textbook rate
    high = 2 * low
    while spent(high) <= epsilon:
        low, high = high, 2 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= epsilon else (low, middle)
    return float(low)


def _table(losses: Floats, rate: float, bits: int) -> tuple[tuple[int, ...], ...]:
    """[k][m] counts in proportion to exp(−λ·ℓ)."""
    exponents = -rate * losses
    shares = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    # A float64 times 2^200 is a whole number for every share that matters.
    rows = ([int(share) for share in row] for row in (shares * 2.0**200).tolist())
    return tuple(tuple(whole_counts(row, 1 << bits)) for row in rows)
