"""What every mechanism is: options of a spec that know what they need, make and cost."""

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
    """The options of a mechanism, and all that the rest of the compiler asks of it.

    The docstring of a subclass is its description: editors and the reference show it.

    Attributes:
        kind: its name in a spec, which is the name of its file, too.
        form: the exact form that it compiles to.
        method: how it is solved, in words.
        seconds_a_label: what that takes, if it is as much for every label.
        needs_order: whether the labels must be numbers.
        joins: whether it takes labels of several columns, whose combinations have no order.
        answers: with the labels themselves, or with other numbers that are positive where the
            labels are, or that may lie anywhere; or with sets of labels.
        may_keep: whether an output can equal the label, so that the 0-1 loss has a meaning.
        certified_labels: up to how many labels a lower bound on the loss comes along.
        rehearsed_whole: whether its tables depend on the number of labels alone, so that a
            rehearsal takes all of them.
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
        """Short, and different for mechanisms that differ: ``laplace, clipped``, for instance."""
        return ", ".join([self.kind, *self.options_in_words()])

    def options_in_words(self) -> list[str]:
        """The options that are not the defaults."""
        return []

    @property
    def is_unbiased(self) -> bool:
        """Whether it keeps the mean of a label (but for clamping far out in the tails)."""
        return False

    @property
    def prior_use(self) -> PriorUse | None:
        """What it gains from the prior; None if its randomizer is the same for all priors."""
        return None

    def solver(self) -> str:
        """How it is solved with these options."""
        return self.method

    def misfit(self, labels: int, loss: str) -> tuple[tuple[str, ...], str] | None:
        """The key of the option that does not fit the rest of a spec, and the reason; or None."""
        return None

    def require_feasible(self, domain: Domain, loss: str, epsilon: Fraction) -> None:
        """Raise ValueError if ``build`` could not succeed whatever the prior; touches no label."""

    def least_entries(self, labels: int) -> int:
        """Of a lookup that a table shares with others: enough for it to lose nothing, mostly."""
        return 4 * labels

    @abstractmethod
    def build(self, problem: Problem) -> Solved:
        """The ε-DP randomizer; ValueError if there is none."""

    def rehearse(self, problem: Problem) -> Solved:
        """A randomizer of the same form on the same domain in closed form; ValueError if none is.

        It is the mechanism's own, or where that takes a solver, one that needs none.
        """
        return self.build(problem)

    def with_fewer_labels(self, labels: int) -> Self:
        """The same on so many labels, for a rehearsal."""
        return self

    @abstractmethod
    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """The tables that are possible; ``weights`` are the prior's, if they are known."""

    def most_table_bytes(self, domain: Domain, epsilon: Fraction, room: int) -> int:
        """The most bytes of tables, whatever the prior; what adapts takes no more than ``room``."""
        return max(it.bytes for it in self.layouts(domain, "squared", epsilon, None))

    def seconds(self, labels: int, loss: str, epsilon: float) -> tuple[float, float]:
        """What a solve takes, and checking its answer, without the tables: from … to.

        Right within a factor of three, says ``benchmarks/plan.py``.
        """
        seconds = self.seconds_a_label * labels
        return seconds, seconds

    def proof(self, loss: str, labels: int) -> Sequence[Proof]:
        """What a certificate lists label by label."""
        return ()

    @classmethod
    def compared(cls, own: Self | None, labels: int, loss: str) -> Iterable[Mechanism]:
        """What a sweep measures; ``own`` is what the spec says, if it names this mechanism."""
        return [cls.named() if own is None else own]

    @classmethod
    def frontier(cls) -> list[Mechanism]:
        """From unbiased to less and less weight on bias, for the squared loss; most have none."""
        return []

    @classmethod
    def named(cls, **options: object) -> Self:
        """The mechanism with these options, and defaults for the others."""
        (kind,) = get_args(cls.model_fields["kind"].annotation)
        return cls.model_validate({"kind": kind, **options})
