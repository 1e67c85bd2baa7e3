"""The base class of mechanisms: the options of a spec, what they need, build and spend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import ClassVar, Literal, Self, get_args

from labeldp_verify.forms import Domain

from labeldp_compile.mechanisms.prior_use import PriorUse
from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.mechanisms.tables import TableLayout
from labeldp_compile.yaml_model import Strict

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
        """The same mechanism for ``labels`` labels, for a rehearsal."""
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
