"""The optimal unbiased randomizer (NeurIPS 2023), and its relatives with a bias budget.

For the squared loss over real outputs, it is the exact optimum with a proof (``outputs: exact``).
On given outputs, also for other losses, it is Algorithm 1 through HiGHS. In both cases the solver's
floats only choose outputs and base weights. Privacy and unbiasedness come from the integers
(``rounding/placed_windows.py``).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Annotated, Literal, Self, TypeVar

import numpy as np
from labeldp_verify.analysis import BiasRule, analyse, expected_loss, row_means
from labeldp_verify.forms import CategoricalDomain, Domain, ExactNumbers, WindowRandomizer
from labeldp_verify.graph import bucket_grid
from pydantic import Field, StrictInt, model_validator

from labeldp_compile.mechanisms.mechanism import (
    ANSWERS_THE_LIKELY,
    ENTRY_BYTES,
    KEEPS_MEANS,
    PRICES_BIAS,
    TOO_LARGE,
    DualBound,
    Mechanism,
    PriorUse,
    Problem,
    Proof,
    Solved,
    TableLayout,
)
from labeldp_compile.mechanisms.rr_on_bins import RRonBins
from labeldp_compile.rounding.windows import (
    MAX_OUTPUTS,
    Reach,
    ShortWordError,
    drop_rare_outputs,
    even_outputs,
    merge_rare_outputs,
    place_on_given,
    place_windows,
    randomized_response,
)
from labeldp_compile.solve.bin_costs import Floats
from labeldp_compile.solve.losses import LOSSES
from labeldp_compile.solve.optimal_unbiased.problem import BiasBudget
from labeldp_compile.yaml_model import Number, Strict

T = TypeVar("T")
_MERGE_BUDGET = Fraction(1, 10**9)  # of the loss
_GAP = 1e-9
# With many labels, a coarse level soon comes this close, and needs fewer outputs than the optimum.
_GAP_OF_MANY = 1e-7
_FEW_LABELS = 1000
_SHARES = (10, 30, 100, 1000, 10_000)  # the rarest kept output has this part of an average one
# If even that does not fit, the rarest output gets this many entries of the tables. A bucket is at
# least half as wide as the narrowest segment of its line, or its number would not fit beside a
# point. Then four buckets per segment are enough: ten per output in all, so the last one always
# fits.
_ENTRIES_AN_OUTPUT = (4, 8, 16)
_CARRIED = (Fraction(40), Fraction(36), Fraction(30), Fraction(24))
_SOLVABLE = (Fraction(20), Fraction(18), Fraction(14))  # ε at which HiGHS mostly succeeds
# If the loss is not squared, unbiased outputs come from a grid, by a linear program. Its time grows
# with the squares of both numbers; these limits keep it to seconds.
GRID_LABELS = 100
GRID_OUTPUTS = 101
_FRONTIER_EXPONENTS = range(8, -2, -1)  # of penalties 10^e; loss and squared bias share a unit
_LEAST_COLUMN = 1e-9  # of an LP's solution; smaller weights are within HiGHS's tolerance


class GivenOutputs(Strict):
    """Outputs to choose from: evenly spaced ones (Algorithm 2 of the paper), or a list."""

    grid: StrictInt | None = Field(None, ge=2, le=MAX_OUTPUTS, description="number of outputs")
    values: list[Number] | None = Field(None, min_length=2, description="the outputs")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.grid is None) == (self.values is None):
            raise ValueError("expected exact, {grid: n} or {values: [...]}")
        if self.values and len({float(value) for value in self.values}) < len(self.values):
            raise ValueError("the outputs must differ")
        return self

    @property
    def count(self) -> int:
        """How many outputs there are to choose from."""
        return self.grid or len(self.values or [])

    def in_order(self, labels: Sequence[Fraction], epsilon: Fraction) -> list[float]:
        """[count] The outputs in increasing order: no artifact returns another one."""
        if self.grid is not None:
            return even_outputs(labels, epsilon, self.grid)
        return sorted(float(value) + 0.0 for value in self.values or [])


class BiasSpec(Strict):
    """How much bias is allowed, or how it is penalized; exactly one of the three."""

    max: Annotated[Number, Field(ge=0)] | None = Field(
        None, description="the largest |E[output | label] − label|"
    )
    penalty: Annotated[Number, Field(ge=0)] | None = Field(
        None, description="λ: minimize the noisy label loss + λ·Σ prior·bias²"
    )
    sample_size: StrictInt | None = Field(
        None, ge=1, description="the penalty (n − 1)/2, for averages of n labels"
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(part is not None for part in (self.max, self.penalty, self.sample_size)) != 1:
            raise ValueError("a bias budget has exactly one of max, penalty and sample_size")
        return self

    def in_words(self) -> str:
        """The budget as a part of a title."""
        if self.max is not None:
            return f"max bias {self.max}"
        if self.sample_size is not None:
            return f"sample size {self.sample_size}"
        assert self.penalty is not None
        return f"penalty {float(self.penalty):g}"


class OptimalUnbiased(Mechanism):
    """The unbiased randomizer of least loss (NeurIPS 2023), or one within a bias budget."""

    kind: Literal["optimal_unbiased"]
    outputs: Literal["exact"] | GivenOutputs = Field(
        "exact", description="exact: real outputs, squared loss; or {grid: n}, or {values: [...]}"
    )
    bias: BiasSpec | None = None
    method = "interior-point method on the outputs, refined to the exact optimum"
    seconds_a_label = 1e-4
    needs_order = True
    answers = "positive"
    may_keep = False
    certified_labels = math.inf

    @model_validator(mode="after")
    def _bias_needs_exact_outputs(self) -> Self:
        if self.bias is not None and self.outputs != "exact":
            raise ValueError("a bias budget needs outputs: exact")
        return self

    @property
    def is_unbiased(self) -> bool:
        """Even with a bias budget, labels are rounded without bias."""
        return True

    @property
    def prior_use(self) -> PriorUse:
        """That of RR-on-Bins, as far as the budget allows bias for rare labels."""
        if self.bias is None or self.bias.max is not None:
            return KEEPS_MEANS
        is_free = self.bias.penalty == 0 or self.bias.sample_size == 1
        return ANSWERS_THE_LIKELY if is_free else PRICES_BIAS

    def options_in_words(self) -> list[str]:
        """Outputs and bias."""
        options = []
        if self.outputs != "exact" and self.outputs.grid is not None:
            options.append(f"grid {self.outputs.grid}")
        elif self.outputs != "exact":
            options.append(f"{self.outputs.count} given outputs")
        return options if self.bias is None else [*options, self.bias.in_words()]

    def solver(self) -> str:
        """A cone program with exact outputs, a linear one with given ones."""
        exact = self.outputs == "exact"
        return self.method if exact else "linear program on the given outputs (HiGHS)"

    def misfit(self, labels: int, loss: str) -> tuple[tuple[str, ...], str] | None:
        """Exact outputs with another loss."""
        if self.outputs != "exact" or LOSSES[loss].degree == 2:
            return None
        return (), f"outputs: exact needs loss: squared; with {loss}, use outputs: {{grid: n}}"

    def require_feasible(self, domain: Domain, loss: str, epsilon: Fraction) -> None:
        """Raise ValueError if no randomizer on the given outputs can be unbiased."""
        if self.outputs == "exact":
            return
        assert not isinstance(domain, CategoricalDomain)
        labels = domain.labels()
        values = self.outputs.in_order(labels, epsilon)
        if LOSSES[loss].positive and values[0] <= 0:
            low, _ = least_interval(labels, float(epsilon))
            raise ValueError(
                f"the {loss} loss needs positive outputs, but an unbiased randomizer of these "
                f"labels needs an output of at most {low:.6g}; if that is positive, list the "
                "outputs with outputs: {values: [...]}"
            )
        Reach.of(row_means(domain, labels), epsilon, len(values), None).require(values)

    def build(self, problem: Problem) -> Solved:
        """Solve, round, place the windows, and return the dual values, too.

        At a very large ε the rarest outputs would need less than one word of 2^62. Then a smaller ε
        is used. It is more private, and the additional loss is below float64's precision.
        """
        if self.outputs != "exact":
            return self._build(problem)
        return _at_smaller(problem, _CARRIED, ShortWordError, self._build)

    def rehearse(self, problem: Problem) -> Solved:
        """Two outputs at the ends: as unbiased as the optimum, and no solver is needed."""
        if self.outputs != "exact":
            return self._rehearse(problem)
        return _at_smaller(problem, _CARRIED, ShortWordError, self._rehearse)

    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """From equally likely outputs to the rarest that are allowed; these decide the grid."""
        k = domain.size
        most, fewest = 2 * k, max(k // 2, 1)
        if k > _FEW_LABELS:
            fewest = k // 16  # many labels are often solved coarsely
        if self.outputs != "exact":
            most, fewest = self.outputs.count, 2
        elif self.bias is not None:
            fewest = 1
        # Two segments an output, and a grid of even ones.
        least = k + 5 * (most if k <= _FEW_LABELS else fewest)
        widest = k + 2 * most + bucket_grid.COMFORTABLE_ENTRIES
        return [
            TableLayout(min(fewest, most), ENTRY_BYTES * least),
            TableLayout(most, ENTRY_BYTES * widest),
        ]

    def most_table_bytes(self, domain: Domain, epsilon: Fraction, room: int) -> int:
        """The bytes for as many outputs as a comfortable grid has room for."""
        k = domain.size
        outputs = 2 * k
        if self.outputs != "exact":
            outputs = self.outputs.count
        elif self.bias is not None and (self.bias.penalty == 0 or self.bias.sample_size == 1):
            return RRonBins.named().most_table_bytes(domain, epsilon, room)
        most = bucket_grid.COMFORTABLE_ENTRIES
        segments = min(2 * outputs, most + 4)  # a bucket has one end
        return ENTRY_BYTES * (k + most + segments)

    def seconds(self, labels: int, loss: str, epsilon: float) -> tuple[float, float]:
        """At most the time of the cone program or the linear program."""
        seconds = self.seconds_a_label * labels
        if self.outputs != "exact":
            return seconds, seconds + 5e-8 * labels**2 * self.outputs.count**2
        return seconds, seconds + (5e-4 if self.bias is None else 1e-3) * labels

    def proof(self, loss: str, labels: int) -> Sequence[Proof]:
        """Dual values with slopes; with a budget, also biases."""
        if self.outputs != "exact":
            return ()
        budgeted = self.bias is not None and self.bias.max != 0
        return ("dual", "slope", "bias") if budgeted else ("dual", "slope")

    @classmethod
    def compared(cls, own: Self | None, labels: int, loss: str) -> Iterable[Mechanism]:
        """Exact outputs, or a grid if the loss is not squared; and the spec's own."""
        mine = [] if own is None else [own]
        if LOSSES[loss].degree == 2:
            return [cls.named(), *mine]
        given = own is not None and own.outputs != "exact"
        if given or labels > GRID_LABELS:
            return mine if given else [cls.named(), *mine]
        return [cls.named(outputs={"grid": min(2 * labels + 1, GRID_OUTPUTS)}), *mine]

    @classmethod
    def frontier(cls) -> list[Mechanism]:
        """From unbiased to RR-on-Bins by falling penalties."""
        penalties = [*(Decimal(10) ** e for e in _FRONTIER_EXPONENTS), Decimal(0)]
        return [cls.named(), *(cls.named(bias={"penalty": penalty}) for penalty in penalties)]

    def _build(self, problem: Problem) -> Solved:
        from labeldp_compile.solve.optimal_unbiased.optimum import (  # noqa: PLC0415  # a second
            solve_optimal_unbiased,
        )

        domain = problem.domain
        if isinstance(domain, CategoricalDomain):
            raise ValueError("optimal_unbiased needs labels that are numbers")
        labels = domain.labels()
        y, prior = _floats(labels), problem.prior()
        if self.outputs != "exact":
            self.require_feasible(domain, problem.loss, problem.epsilon)
            values = self.outputs.in_order(labels, problem.epsilon)
            return Solved(_on_outputs(values, problem, labels, y, prior))
        budget, rule = bias_budget(self.bias)
        if rule.kind == "any":  # if bias costs nothing, RR-on-Bins is the optimum
            return RRonBins.named().build(problem)
        solution = solve_optimal_unbiased(
            y,
            prior,
            float(problem.epsilon),
            bias=budget,
            tolerance=_GAP if domain.size <= _FEW_LABELS else _GAP_OF_MANY,
            observer=problem.observer,
        )
        targets: Sequence[Fraction] = labels
        if not budget.unbiased:
            targets = [Fraction(float(mean)) for mean in np.maximum.accumulate(solution.means)]
            if rule.kind == "max":
                targets = _within(targets, labels, rule.amount, Fraction(solution.values[-1]))
        randomizer = _small(problem, labels, targets, solution.values, solution.weights)
        dual = DualBound(solution.alpha.tolist(), solution.beta.tolist(), rule)
        return Solved(randomizer, dual)

    def _rehearse(self, problem: Problem) -> Solved:
        domain, epsilon = problem.domain, float(problem.epsilon)
        assert not isinstance(domain, CategoricalDomain)
        if self.outputs == "exact" and bias_budget(self.bias)[1].kind == "any":
            return RRonBins.named().rehearse(problem)
        labels = domain.labels()
        if self.outputs != "exact":
            values = self.outputs.in_order(labels, problem.epsilon)
            return Solved(_on_two(values, problem, row_means(domain, labels)))
        ends = least_interval(labels, epsilon)
        weights = [1 / (1 + math.exp(epsilon))] * 2
        return Solved(place_windows(ends, weights, labels, problem.epsilon, problem.word_bits))


def _floats(labels: Sequence[Fraction]) -> Floats:
    return np.array(ExactNumbers.of(labels).floats())


def _at_smaller(
    problem: Problem,
    epsilons: Sequence[Fraction],
    failure: type[ValueError],
    make: Callable[[Problem], T],
) -> T:
    """The result at the problem's ε, or if that fails, at the first smaller ε that works."""
    *attempts, last = [problem.epsilon, *(e for e in epsilons if e < problem.epsilon)]
    for epsilon in attempts:
        try:
            return make(replace(problem, epsilon=epsilon))
        except failure:
            continue
    return make(replace(problem, epsilon=last))


def bias_budget(bias: BiasSpec | None) -> tuple[BiasBudget, BiasRule]:
    """The spec's bias budget for the solver, and for the certificate."""
    if bias is None or bias.max == 0:
        return BiasBudget(), BiasRule("unbiased")
    if bias.max is not None:
        return BiasBudget(most=float(bias.max)), BiasRule("max", Fraction(bias.max))
    if bias.sample_size is not None:
        penalty = Fraction(bias.sample_size - 1, 2)
    else:
        assert bias.penalty is not None
        penalty = Fraction(bias.penalty)
    rule = BiasRule("penalty", penalty) if penalty else BiasRule("any")
    return BiasBudget(penalty=float(penalty)), rule


def _within(
    targets: Sequence[Fraction], labels: Sequence[Fraction], most: Fraction, reach: Fraction
) -> list[Fraction]:
    """The targets, slightly inside the allowed bias, so that placement cannot exceed it."""
    hair = (abs(reach) + abs(labels[0]) + abs(labels[-1])) / 2**48
    room = max(most - hair, Fraction(0))
    return [min(max(t, y - room), y + room) for t, y in zip(targets, labels, strict=True)]


def least_interval(labels: Sequence[Fraction], epsilon: float) -> tuple[float, float]:
    """The smallest interval whose ends must be reached by the outputs of an unbiased randomizer.

    If every output is at least a, then E[ŷ − a | y_max] ≤ e^ε·E[ŷ − a | y_min] demands
    a ≤ y_min − (y_max − y_min)/(e^ε − 1), and the same from above. Two outputs there are enough.
    """
    low, high = float(labels[0]), float(labels[-1])
    reach = (high - low) / math.expm1(epsilon)
    return low - reach, high + reach


def _small(
    problem: Problem,
    labels: Sequence[Fraction],
    targets: Sequence[Fraction],
    values: Floats,
    weights: Floats,
    pillars: dict[float, float] | None = None,
) -> WindowRandomizer:
    """The integers, with rare outputs merged as far as the loss budget allows.

    The budget is exceeded only if the tables would not fit otherwise; the certified gap shows it.
    With ``pillars`` the outputs are given: rare ones are dropped, and none is moved.
    """

    # Outputs that float64 cannot tell apart are one.
    values, which = np.unique(values, return_inverse=True)
    weights = np.bincount(which, weights=weights).astype(np.float64)

    means = row_means(problem.domain, targets)

    def placed(v: Floats, c: Floats) -> WindowRandomizer:
        put = place_windows if pillars is None else partial(place_on_given, pillars=tuple(pillars))
        return put(v.tolist(), c.tolist(), means, problem.epsilon, word_bits=problem.word_bits)

    def fits(randomizer: WindowRandomizer) -> bool:
        grid = bucket_grid.choose_grid(randomizer, problem.entries)
        return grid is not None and problem.fits(randomizer)

    def merged(least: float) -> WindowRandomizer | None:
        """The integers without rarer outputs; None if nothing changes, or if it does not fit."""
        if pillars is None:
            v, c = merge_rare_outputs(values, weights, least)
        else:
            v, c = drop_rare_outputs(values, weights, least, pillars)
        if np.array_equal(v, values) and np.array_equal(c, weights):
            return None
        try:
            found = placed(v, c)
        except ValueError:
            return None
        return found if fits(found) else None

    if len(values) == 1:  # all weight on one label, and other bias costs nothing: a constant
        rows = [0] * len(labels)
        return randomized_response(values.tolist(), rows, problem.epsilon, problem.word_bits)
    whole = placed(values, weights)
    loss = partial(_loss, problem)
    bearable = loss(whole) * (1 + _MERGE_BUDGET)
    fitting = [whole] if fits(whole) else []
    for share in _SHARES:
        found = merged(1 / (share * len(values)))
        if found is not None and loss(found) <= bearable:
            return found
        fitting += [] if found is None else [found]
    for entries in _ENTRIES_AN_OUTPUT:
        found = None if fitting else merged(entries / problem.entries)
        fitting += [] if found is None else [found]
    if not fitting:
        raise ValueError(TOO_LARGE)
    return min(fitting, key=loss)


def _loss(problem: Problem, randomizer: WindowRandomizer) -> Fraction:
    labels = problem.domain.labels()
    return expected_loss(analyse(randomizer), labels, problem.weights, problem.loss)[0]


def _on_outputs(
    values: Sequence[float],
    problem: Problem,
    labels: Sequence[Fraction],
    y: Floats,
    prior: Floats,
) -> WindowRandomizer:
    """Algorithms 1 and 2 of the paper, as windows.

    A column's minimum over the labels is its low entry. By Claims 12 to 14, windows with the same
    means lose no more than the LP's own rows. Where HiGHS has no answer, two of the outputs have
    one that is as private and as unbiased.
    """
    from labeldp_compile.solve.optimal_unbiased.optimum import solve_lp_grid  # noqa: PLC0415

    outputs = np.array(values)
    cost = LOSSES[problem.loss].of(outputs[None, :], y[:, None])

    def column_minima(scaled: Problem) -> Floats:
        epsilon = float(scaled.epsilon)
        solution = solve_lp_grid(y, prior, epsilon, outputs, cost, observer=problem.observer)
        return solution.table.min(axis=0)

    means = row_means(problem.domain, labels)
    try:
        weights = _at_smaller(problem, _SOLVABLE, ValueError, column_minima)
    except ValueError as error:
        problem.observer.say(f"{error}: only two of the outputs are used")
        return _on_two(values, problem, means)
    reach = Reach.of(means, problem.epsilon, len(values), problem.word_bits)
    # A rarer output would have no word on the extra line.
    least = 2 / ((1 << reach.bits) * math.expm1(min(float(problem.epsilon), 1)))
    used = weights > max(_LEAST_COLUMN * weights.max(), least)
    found = outputs[used].tolist()
    several = [weights[used], *reach.exact_sums(found, weights[used].tolist())]
    made = []
    for pillars in reach.all_pillars(found, values):
        alone = dict(zip(pillars, reach.shares(*pillars), strict=True))
        kept = used | np.isin(outputs, pillars)
        for some in several:
            weights[used] = some
            with suppress(ValueError):
                made.append(_small(problem, labels, labels, outputs[kept], weights[kept], alone))
    return min(made, key=partial(_loss, problem)) if made else _on_two(values, problem, means)


def _on_two(
    values: Sequence[float], problem: Problem, means: Sequence[Fraction]
) -> WindowRandomizer:
    """The randomizer on two of the given outputs; ValueError if no two of them are enough."""
    reach = Reach.of(means, problem.epsilon, len(values), problem.word_bits)
    pillars = reach.require(values)
    weights = [0.0, 0.0]  # all comes from the pillars
    return place_on_given(pillars, weights, means, problem.epsilon, pillars, reach.bits)
