"""The interface of mechanisms: their options, problem and solution, and the bytes of their tables.

It also says what it gains from the prior, and what less ε costs it. ``split: auto``
(``prior/plan.py``) compares the two. Shares are of the noisy label loss. The numbers were set by
hand from the output of ``benchmarks/split.py``, for real tables and (``--landscape``) for flat,
geometric, spiked and two-humped distributions. They choose between private histograms, and have no
influence on privacy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal, Self, get_args

import numpy as np
from labeldp_verify.analysis import BiasRule, Loss
from labeldp_verify.forms import Domain, Randomizer, WindowRandomizer
from labeldp_verify.graph import bucket_grid, column_bits
from numpy.typing import NDArray

from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.rounding.windows import randomized_response
from labeldp_compile.yaml_model import Strict


@dataclass(frozen=True)
class PriorUse:
    """How the noisy label loss depends on prior and ε.

    Attributes:
        gain: by ε, the share of the loss under a uniform prior that the true prior would save.
        noise: the share of the gain that is lost for each standard deviation of a cell's noise, in
            units of the average cell.
        coarse: the share of the gain that is lost with this number of cells of neighbouring labels
            instead of all labels; None if labels have no neighbours.
        slope: by ε, −d log(loss)/d log ε: the relative loss per relative decrease of ε.
    """

    gain: Callable[[float], float]
    noise: float
    coarse: Callable[[int], float] | None
    slope: Callable[[float], float]


def _slope_unbiased(epsilon: float) -> float:
    """For the smallest variance of two outputs that keep the mean, ∝ 1/sinh²(ε/2)."""
    return epsilon / math.tanh(epsilon / 2)


def _slope_biased(epsilon: float) -> float:
    """For two bins that explain a share ρ, the loss is 1 − ρ·tanh²(ε/2); here ρ ≈ 2/3."""
    return 2 / 3 * epsilon * math.tanh(epsilon / 2)


KEEPS_MEANS = PriorUse(
    gain=lambda epsilon: epsilon**2 / (2 * (epsilon**2 + 8)),
    noise=0.3,
    coarse=lambda cells: 2.5 / cells,
    slope=_slope_unbiased,
)
"""Unbiased: at a small ε, all priors need the same outputs, far out on both sides."""
ANSWERS_THE_LIKELY = PriorUse(
    gain=lambda epsilon: 0.5, noise=0.3, coarse=lambda cells: 3 / cells**2, slope=_slope_biased
)
"""Outputs are at the likely labels: without the prior the loss can be many times larger."""
PRICES_BIAS = replace(ANSWERS_THE_LIKELY, slope=_slope_unbiased)
"""A penalty on bias, which is small for rare labels: gains like one, and loses like the other."""
KEEPS_THE_LIKELIEST = PriorUse(
    gain=lambda epsilon: 0.4, noise=0.25, coarse=None, slope=_slope_biased
)
"""Randomized response over the likeliest labels: neighbouring labels do not matter."""


ENTRY_BYTES = 8
GRID_OF_RESPONSE = 10  # entries for each output of randomized response, at most
TOO_LARGE = "the lookup tables would be too large; use fewer labels"


@dataclass(frozen=True)
class TableLayout:
    """Number of outputs, and bytes of the tables."""

    outputs: int
    bytes: int


def window_layout(randomizer: WindowRandomizer) -> TableLayout:
    """The layout of a window randomizer. Raises ValueError if it is too large."""
    tables = bucket_grid.table_bytes(randomizer)
    if tables is None:
        raise ValueError(TOO_LARGE)
    return TableLayout(randomizer.outputs, tables)


def table_layout(labels: int, outputs: int) -> TableLayout:
    """The layout of a table randomizer."""
    return TableLayout(outputs, ENTRY_BYTES * ((labels << column_bits(outputs)) + outputs))


def response_layout(labels: int, outputs: int, epsilon: Fraction) -> TableLayout:
    """The layout of randomized response over ``outputs`` outputs."""
    rows = [y * outputs // labels for y in range(labels)]
    return window_layout(randomized_response(range(outputs), rows, epsilon))


def adapted_bytes(labels: int, grid: int, segments: int, room: int) -> int:
    """The bytes of a mechanism that drops outputs until it fits, down to a single output."""
    least = ENTRY_BYTES * (labels + 64)
    grid = min(max(grid, bucket_grid.SINGLE_GRID_ENTRIES), bucket_grid.MAX_ENTRIES)
    return max(min(ENTRY_BYTES * (labels + grid + segments), room), least)


@dataclass(frozen=True)
class Problem:
    """The problem that a mechanism must solve.

    Attributes:
        domain: of the labels.
        weights: [k] integers in proportion to the prior.
        epsilon: ε₂, exact.
        loss: to be minimized under the prior.
        word_bits: size of the random word; None for the largest that fits (tests enumerate small
            ones).
        observer: gets the steps of a long solve.
        fits: whether a file with this randomizer is small enough.
        entries: of the lookup grid, if a mechanism has a choice.
    """

    domain: Domain
    weights: Sequence[int]
    epsilon: Fraction
    loss: Loss
    word_bits: int | None = None
    observer: Observer = QUIET
    fits: Callable[[WindowRandomizer], bool] = lambda randomizer: True
    entries: int = bucket_grid.COMFORTABLE_ENTRIES

    def prior(self) -> NDArray[np.float64]:
        """[k] the prior as float64, summing to about one."""
        total = sum(self.weights)
        return np.array([weight / total for weight in self.weights])


@dataclass(frozen=True)
class DualBound:
    """Dual values α, β [k] of the squared loss, and the class of randomizers that they bound.

    With them, optimality can be proved without the solver.
    """

    alpha: Sequence[float]
    beta: Sequence[float]
    rule: BiasRule


@dataclass(frozen=True)
class RadiusBound:
    """Radii [n] at some labels, the knots [n]: a bound on the loss of every ε-DP randomizer.

    They replace the dual values if there are very many labels (``radii_of`` of the verifier).
    """

    knots: Sequence[int]
    radii: Sequence[float]


@dataclass(frozen=True)
class Solved:
    """A randomizer in exact integers, and a proof of how much better another one could be.

    The proof is a bound on the loss, or that the randomizer treats all ``classes`` alike. Then the
    certificate states the noise of their shares.
    """

    randomizer: Randomizer
    bound: DualBound | RadiusBound | None = None
    classes: bool = False


Proof = Literal["dual", "no slope", "slope", "bias"]
"""A decimal that a certificate lists for each label."""


class Mechanism(Strict, ABC):
    """The options of a mechanism, and everything that the rest of the compiler needs from it.

    The docstring of a subclass is its description, which editors and the reference show.

    Attributes:
        kind: its name in a spec, and the name of its file.
        form: the exact form that it compiles to.
        method: how it is solved, in words.
        seconds_a_label: the time per label, if it is the same for all labels.
        needs_order: whether the labels must be numbers.
        joins: whether it takes labels of several columns, whose combinations have no order.
        answers: what outputs are: the labels themselves, numbers that are positive if the labels
            are, any numbers, or sets of labels.
        may_keep: whether an output can equal the label, so that the 0-1 loss has a meaning.
        certified_labels: up to this many labels, the file has a lower bound on the loss.
        rehearsed_whole: whether its tables depend only on the number of labels, so that a rehearsal
            uses all labels.
    """

    kind: str
    form: ClassVar[Literal["window", "additive", "table"]] = "window"
    method: ClassVar[str] = "closed form"
    seconds_a_label: ClassVar[float] = 2e-5
    needs_order: ClassVar[bool] = False
    joins: ClassVar[bool] = False
    answers: ClassVar[Literal["labels", "positive", "anywhere", "sets"]] = "labels"
    may_keep: ClassVar[bool] = True
    certified_labels: ClassVar[float] = 0
    rehearsed_whole: ClassVar[bool] = False

    @property
    def title(self) -> str:
        """A short name that differs for different mechanisms, for example ``laplace, clipped``."""
        return ", ".join([self.kind, *self.options_in_words()])

    def options_in_words(self) -> list[str]:
        """The options that differ from the defaults."""
        return []

    @property
    def is_unbiased(self) -> bool:
        """Whether it keeps the mean of a label (except for clamping far out in the tails)."""
        return False

    @property
    def prior_use(self) -> PriorUse | None:
        """The gain from knowing the prior; None if that is nothing, or hardly anything."""
        return None

    @property
    def follows_prior(self) -> bool:
        """Whether different priors can give different randomizers."""
        return self.prior_use is not None

    def solver(self) -> str:
        """How it is solved with these options."""
        return self.method

    def misfit(self, labels: int, loss: str) -> tuple[tuple[str, ...], str] | None:
        """The key of an option that does not fit the rest of a spec, and the reason; or None."""
        return None

    def require_feasible(self, domain: Domain, loss: str, epsilon: Fraction) -> None:
        """Raise ValueError if ``build`` would fail for every prior; this reads no label."""

    def least_entries(self, labels: int) -> int:
        """Entries of a shared lookup that are mostly enough for this table to lose nothing."""
        return 4 * labels

    @abstractmethod
    def build(self, problem: Problem) -> Solved:
        """The ε-DP randomizer. Raises ValueError if there is none."""

    def rehearse(self, problem: Problem) -> Solved:
        """A randomizer of the same form and domain that needs no solver.

        It is the mechanism's own, unless that needs a solver. Raises ValueError if there is none.
        """
        return self.build(problem)

    def with_fewer_labels(self, labels: int) -> Self:
        """This mechanism for ``labels`` labels, for a rehearsal."""
        return self

    @abstractmethod
    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """The possible tables; ``weights`` are those of the prior, if they are known."""

    def most_table_bytes(self, domain: Domain, epsilon: Fraction, room: int) -> int:
        """The most bytes of tables for any prior; mechanisms that adapt use at most ``room``."""
        return max(it.bytes for it in self.layouts(domain, "squared", epsilon, None))

    def seconds(self, labels: int, loss: str, epsilon: float) -> tuple[float, float]:
        """Time to solve and to check the answer, without the tables: from … to.

        It is right within a factor of three (``benchmarks/plan.py``).
        """
        seconds = self.seconds_a_label * labels
        return seconds, seconds

    def proof(self, loss: str, labels: int) -> Sequence[Proof]:
        """The decimals that a certificate lists for each label."""
        return ()

    @classmethod
    def compared(cls, own: Self | None, labels: int, loss: str) -> Iterable[Mechanism]:
        """The variants that a sweep measures; ``own`` is the spec's, if it names this kind."""
        return [cls.named() if own is None else own]

    @classmethod
    def frontier(cls) -> list[Mechanism]:
        """Mechanisms from unbiased to ever smaller penalties on bias; most kinds have none."""
        return []

    @classmethod
    def named(cls, **options: object) -> Self:
        """The mechanism with these options and defaults for the others."""
        (kind,) = get_args(cls.model_fields["kind"].annotation)
        return cls.model_validate({"kind": kind, **options})
