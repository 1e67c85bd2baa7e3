"""The ε-DP randomizer with the least expected cost, for any table of costs, by linear program.

Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy mechanisms" (STOC 2009)
state the program for a known prior. Only the least probability m_o of each output is taken from its
solution. A row of the table has probabilities between m_o and e^ε·m_o, and costs least if its
cheapest outputs get the most. So rows are filled in integers, exactly, and every table that results
is ε-DP, however wrong the solution is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import ClassVar, Literal, Self

import numpy as np
from labeldp_verify.analysis import BiasRule, analyse, exp_lower, expected_loss
from labeldp_verify.forms import TABLE_WORD_BITS as WORD_BITS
from labeldp_verify.forms import Domain, TableRandomizer, output_values

from labeldp_compile.mechanisms.mechanism import (
    KEEPS_THE_LIKELIEST,
    DualBound,
    Mechanism,
    PriorUse,
    Problem,
    Proof,
    Solved,
    TableLayout,
    table_layout,
)
from labeldp_compile.solve.bin_costs import Floats
from labeldp_compile.solve.losses import LOSSES

_RARE = (1e-6, 1e-9, 1e-12, 0.0)  # largest probability of an output that is left out
_BEARABLE = 1 + Fraction(1, 10**9)  # of the loss, for fewer outputs
_SOLVABLE = (20.0, 12.0)  # a smaller ε, where HiGHS has no answer


class LeastCost(Mechanism):
    """The least expected cost of all ε-DP randomizers, for a matrix or a tree of costs."""

    kind: Literal["least_cost"]
    form: ClassVar[Literal["window", "additive", "table"]] = "table"
    method = "linear program (HiGHS)"

    @property
    def prior_use(self) -> PriorUse:
        """Outputs that are rarely the cheapest are left out, as with the likeliest labels."""
        return KEEPS_THE_LIKELIEST

    def seconds(self, labels: int, loss: str, epsilon: float) -> tuple[float, float]:
        """Measured: 0.1 s for 20 labels, 2 to 4 s for 100, and 20 to 45 s for 200."""
        seconds = 2e-7 * labels**3.5
        return seconds, 2 * seconds

    def proof(self, loss: str, labels: int) -> Sequence[Proof]:
        """Dual values of the sums of rows."""
        return "dual", "no slope"

    def build(self, problem: Problem) -> Solved:
        """The rounded solution, or a single output if that costs less; and the dual values."""
        from labeldp_compile.solve.optimal_unbiased.optimum import (  # noqa: PLC0415  # a second
            solve_lp_costs,
        )

        costs, prior, asked = _costs(problem), problem.prior(), float(problem.epsilon)
        minima, bound = [], None
        for epsilon in (asked, *(e for e in _SOLVABLE if e < asked)):
            with suppress(ValueError):
                found = solve_lp_costs(costs, prior, epsilon, problem.observer)
                minima = [found.minima * (found.minima * math.exp(epsilon) > e) for e in _RARE]
                bound = DualBound(found.duals.tolist(), [0.0] * len(prior), BiasRule("any"))
                break
        constant = np.eye(len(prior))[(prior @ costs).argmin()]
        made = [table for m in (*minima, constant) for table in _filled(m, costs, problem)]
        labels, weights = problem.domain.labels(), problem.weights
        losses = [expected_loss(analyse(m), labels, weights, problem.loss)[0] for m in made]
        pairs = zip(made, losses, strict=True)
        return Solved(next(m for m, loss in pairs if loss <= min(losses) * _BEARABLE), bound)

    def rehearse(self, problem: Problem) -> Solved:
        """Randomized response as a table."""
        k = problem.domain.size
        minima = np.full(k, 1 / (math.exp(problem.epsilon) + k - 1))
        return Solved(next(_filled(minima, 1 - np.eye(k), problem)))

    @classmethod
    def compared(cls, own: Self | None, labels: int, loss: str) -> Iterable[Mechanism]:
        """Only where outputs have costs."""
        return [] if LOSSES[loss].costs is None else [cls.named()]

    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """From a single output to all labels."""
        return [table_layout(domain.size, outputs) for outputs in (1, domain.size)]


def _costs(problem: Problem) -> Floats:
    costs = LOSSES[problem.loss].costs
    if costs is None:
        raise ValueError("least_cost needs a matrix or a tree of costs")
    return costs


def _filled(minima: Floats, costs: Floats, problem: Problem) -> Iterator[TableRandomizer]:
    """The cheapest table with these least probabilities [n], rounded down; none if too small."""
    bits = WORD_BITS if problem.word_bits is None else problem.word_bits
    ratio, words = exp_lower(problem.epsilon), 1 << bits
    base = {int(o): int(minima[o] * 2.0**bits) for o in np.flatnonzero(minima)}
    base = {o: count for o, count in base.items() if count}
    if not base:
        return
    largest = max(base, key=base.__getitem__)
    base[largest] -= max(sum(base.values()) - words, 0)
    room = {o: count * ratio.numerator // ratio.denominator - count for o, count in base.items()}
    free = words - sum(base.values())
    if sum(room.values()) < free or min(base.values()) < 1:
        return
    rows = []
    for own in costs:
        row, left = dict(base), free
        for o in sorted(base, key=own.__getitem__):
            more = min(left, room[o])
            row[o], left = row[o] + more, left - more
        rows.append(tuple(row.values()))
    values = output_values(problem.domain)
    yield TableRandomizer(bits, tuple(rows), tuple(values[o] for o in base))
