"""The ε-DP randomizer with the least expected cost, for any table of costs, by linear program.

Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy mechanisms" (STOC 2009)
state the program for a known prior. Only the least probability m_o of each output is taken from its
solution. A row of the table has probabilities between m_o and e^ε·m_o, and costs least if its
cheapest outputs get the most. So rows are filled in integers, exactly, and every table that results
is ε-DP, however wrong the solution is. m_o is rounded up: where e^ε·m_o is nearly 1, words that are
missing there would go to outputs that cost much more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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
from labeldp_compile.observer import Observer
from labeldp_compile.solve.bin_costs import Floats
from labeldp_compile.solve.losses import LOSSES

_RARE = (1e-6, 1e-9, 0.0)  # largest probability of an output that is left out
_BEARABLE = 1 + Fraction(1, 10**9)  # of the loss, for fewer outputs
_AT_ONCE = 10  # outputs that are added to a program
_EXACT, _PROGRESS = 1e-9, 1e-6  # of the loss
_MOST_CELLS = 40_000  # of a program: its labels, times its outputs; or those that can get more
_MOST_PROGRAMS, _REPAIRS = 25, 8


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
        """Measured: 0.3 s for 100 labels and 14 s for 1,000 at ε = 1; longer at a larger ε."""
        seconds = 1e-4 * labels**1.7 * min(math.exp(0.4 * epsilon), 20.0)
        return seconds, 4 * seconds

    def proof(self, loss: str, labels: int) -> Sequence[Proof]:
        """Dual values of the sums of rows."""
        return "dual", "no slope"

    def build(self, problem: Problem) -> Solved:
        """The rounded solution, unless something simpler costs less; and the dual values."""
        costs, prior = LOSSES[problem.loss].costs, problem.prior()
        if costs is None:
            raise ValueError("least_cost needs a matrix or a tree of costs")
        growth, minima, bound = math.exp(problem.epsilon), [], None
        with suppress(ValueError):  # HiGHS gives up
            least, duals = _solved(costs, prior, float(problem.epsilon), problem.observer)
            minima = [least * (least * growth > rare) for rare in _RARE]
            bound = DualBound(duals.tolist(), [0.0] * len(prior), BiasRule("any"))
        # A single output, and randomized response: near the best for a tiny and for a large ε.
        minima += [np.eye(len(prior))[(prior @ costs).argmin()], np.zeros(len(prior))]
        minima[-1][costs.argmin(axis=1)] = 1 / (growth + len(prior) - 1)
        made = _tables(minima, costs, problem)
        labels, weights = problem.domain.labels(), problem.weights
        losses = [expected_loss(analyse(m), labels, weights, problem.loss)[0] for m in made]
        pairs = zip(made, losses, strict=True)
        return Solved(next(m for m, loss in pairs if loss <= min(losses) * _BEARABLE), bound)

    def rehearse(self, problem: Problem) -> Solved:
        """Randomized response as a table, or a single output if words are too short for it."""
        each = np.eye(problem.domain.size)
        response = np.full(len(each), 1 / (math.exp(problem.epsilon) + len(each) - 1))
        return Solved(_tables([response, each[0]], 1 - each, problem)[0])

    @classmethod
    def compared(cls, own: Self | None, labels: int, loss: str) -> Iterable[Mechanism]:
        """Only where outputs have costs."""
        return [] if LOSSES[loss].costs is None else [cls.named()]

    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """From a single output to all labels."""
        return [table_layout(domain.size, outputs) for outputs in (1, domain.size)]


def _solved(
    costs: Floats, prior: Floats, epsilon: float, observer: Observer
) -> tuple[Floats, Floats]:
    """Least probabilities of the outputs [k], and dual values [k] of the sums of rows.

    Few outputs are worth using. So the program is solved for some of the outputs, and those are
    added whose F, which ``lower_bound.py`` of the verifier defines, is below 0 for its dual values,
    until the bound for all outputs meets the cost. Dual values leap from one program to the next,
    so F is also taken for their mean with the best ones so far. A large ε needs many outputs, and
    gives few of them more than the least to one label: then only the cheapest of each label can get
    more, those with h < 0 in the program before and some others. Raises ValueError if HiGHS gives
    up.
    """
    from labeldp_compile.solve.optimal_unbiased.dual import local_places  # noqa: PLC0415
    from labeldp_compile.solve.optimal_unbiased.optimum import (  # noqa: PLC0415  # a second
        solve_lp_costs,
    )

    k, weighted, growth = len(prior), prior[:, None] * costs, math.expm1(epsilon)
    outputs, added = np.array([(prior @ costs).argmin()]), np.arange(0, k, max(k // _AT_ONCE, 1))
    least, loss, bound, best, last = prior, np.inf, -np.inf, np.zeros(0), np.zeros(k)
    for _ in range(_MOST_PROGRAMS):
        outputs = np.union1d(outputs, added)
        more, at_once = np.ones((k, outputs.size), bool), _AT_ONCE
        if best.size and more.size > _MOST_CELLS:
            cheaper = costs[:, outputs].argsort(axis=1, kind="stable").argsort(axis=1)
            below = weighted[:, outputs] < last[:, None]
            more, at_once = cheaper < below.sum(axis=1)[:, None] + _AT_ONCE, 4 * _AT_ONCE
        if best.size and more.sum() > _MOST_CELLS:
            break
        found = solve_lp_costs(costs[:, outputs], prior, epsilon, observer, more)
        least, last, lowest = np.zeros(k), found.duals, []
        least[outputs] = found.minima
        for alpha in [last, (last + best) / 2] if best.size else [last]:
            price = _prices(weighted - alpha[:, None], growth)
            low = _lowered(weighted, alpha, growth, _EXACT * found.loss)
            if low.sum() > bound:
                bound, best = low.sum(), low
            places = local_places(price, 0.0)
            lowest.append(places[price[places].argsort()][:at_once])
        missing = (weighted[:, outputs] < last[:, None])[~more].any()
        if found.loss < loss * (1 - _PROGRESS) and not missing:  # else they would come and go
            loss, outputs = found.loss, np.flatnonzero(least)
        added = np.setdiff1d(np.concatenate(lowest), outputs)
        if bound >= found.loss * (1 - _EXACT) or not (added.size or missing):
            break
    return least, best


def _prices(h: Floats, growth: float) -> Floats:
    """F [n] of h [k, n]."""
    return np.asarray(h.sum(axis=0) + growth * np.minimum(h, 0).sum(axis=0))


def _lowered(weighted: Floats, alpha: Floats, growth: float, rest: float) -> Floats:
    """Dual values [k] with F ≥ −rest: all lowered, or first those of least h, if that loses less.

    Where h < 0, F rises by e^ε times the fall of a dual value.
    """
    made = []
    for _ in range(_REPAIRS):
        h = weighted - alpha[:, None]
        price = _prices(h, growth)
        made.append(alpha + min(price.min() + rest, 0) / alpha.size)
        low, falls = np.flatnonzero(price < 0), np.zeros(alpha.size)
        np.maximum.at(falls, h[:, low].argmin(axis=0), -price[low] / (1 + growth))
        alpha = alpha - falls
    return max(made, key=np.sum)


def _tables(every: Sequence[Floats], costs: Floats, problem: Problem) -> list[TableRandomizer]:
    """The cheapest tables with least probabilities [n], rounded up; none that are impossible.

    Costs are [k, n]. An output whose least probability is 0 is none.
    """
    bits = WORD_BITS if problem.word_bits is None else problem.word_bits
    ratio, words, made = exp_lower(problem.epsilon), 1 << bits, []
    values = output_values(problem.domain)
    for minima in every:
        base = {int(o): math.ceil(minima[o] * 2.0**bits) for o in np.flatnonzero(minima)}
        most = {o: n * ratio.numerator // ratio.denominator for o, n in base.items()}
        free = words - sum(base.values())
        if not 0 <= free <= sum(most.values()) - sum(base.values()):
            continue
        rows = []
        for own in costs:
            row, left = dict(base), free
            for o in sorted(base, key=own.__getitem__):
                more = min(left, most[o] - base[o])
                row[o], left = row[o] + more, left - more
            rows.append(tuple(row.values()))
        made.append(TableRandomizer(bits, tuple(rows), tuple(values[o] for o in base)))
    return made
