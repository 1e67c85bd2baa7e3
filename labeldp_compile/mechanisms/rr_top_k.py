"""RRTop-k: randomized response over the k likeliest labels (NeurIPS 2021, Algorithm 1)."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import ClassVar, Literal, Self

import numpy as np
from labeldp_verify.analysis import BiasRule
from labeldp_verify.forms import Domain, WindowRandomizer, output_values
from pydantic import Field, StrictInt

from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms.mechanism import Mechanism, Proof
from labeldp_compile.mechanisms.prior_use import KEEPS_THE_LIKELIEST, PriorUse
from labeldp_compile.mechanisms.problem import DualBound, Problem, Solved
from labeldp_compile.mechanisms.tables import MAX_CERTIFIED_LABELS, TableLayout, window_layout
from labeldp_compile.rounding.randomized_response import rr_top_k
from labeldp_compile.solve.losses import Floats

MAX_KEPT_LABELS = 1_000_000


class KeepsLikeliest(Mechanism):
    """Randomized response over some of the likeliest labels."""

    method = "closed form, after sorting the prior"
    joins = True
    certified_labels: ClassVar[float] = MAX_CERTIFIED_LABELS

    @property
    def prior_use(self) -> PriorUse:
        """Labels that are not among the likeliest are lost."""
        return KEEPS_THE_LIKELIEST

    def proof(self, loss: str, labels: int) -> Sequence[Proof]:
        """Dual values of the 0-1 loss."""
        certified = loss == "zero_one" and labels <= MAX_CERTIFIED_LABELS
        return ("dual", "no slope") if certified else ()

    def keep(self, problem: Problem, k: int) -> WindowRandomizer:
        """RRTop-k over the k likeliest labels."""
        kept = sorted(by_weight(problem.weights)[:k])
        return rr_top_k(output_values(problem.domain), kept, problem.epsilon, problem.word_bits)

    def proved(self, problem: Problem, randomizer: WindowRandomizer) -> Solved:
        """With the 0-1 loss, add dual values that bound every ε-DP randomizer (Theorem 3)."""
        if problem.loss != "zero_one" or problem.domain.size > MAX_CERTIFIED_LABELS:
            return Solved(randomizer)
        alpha = dual_of_zero_one(problem.prior(), float(problem.epsilon))
        return Solved(randomizer, DualBound(alpha.tolist(), [0.0] * len(alpha), BiasRule("any")))


class RRTopK(KeepsLikeliest):
    """Randomized response over the k likeliest labels (RRTop-k, NeurIPS 2021, Algorithm 1)."""

    kind: Literal["rr_top_k"]
    k: StrictInt = Field(ge=1, le=MAX_KEPT_LABELS, description="number of labels kept as outputs")

    def options_in_words(self) -> list[str]:
        """The k."""
        return [f"k {self.k}"]

    def misfit(self, labels: int, loss: str) -> tuple[tuple[str, ...], str] | None:
        """A k above the number of labels does not fit."""
        return (("k",), f"there are only {labels:,} labels") if self.k > labels else None

    def build(self, problem: Problem) -> Solved:
        """Keep the k likeliest labels."""
        return self.proved(problem, self.keep(problem, self.k))

    def with_fewer_labels(self, labels: int) -> Self:
        """The same with a smaller k, if needed."""
        return self.model_copy(update={"k": min(self.k, labels)})

    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """One layout: it does not depend on which labels are kept."""
        return [kept_layout(domain.size, self.k, epsilon)]

    @classmethod
    def compared(cls, own: Self | None, labels: int, loss: str) -> Iterable[Mechanism]:
        """The spec's own; otherwise there is no k."""
        if own is None:
            raise InputError("--mechanisms: rr_top_k needs a k, such as rr_top_k:5")
        return [own]


def kept_layout(labels: int, kept: int, epsilon: Fraction) -> TableLayout:
    """The layout of RRTop-k."""
    return window_layout(rr_top_k(range(labels), range(kept), epsilon))


def by_weight(weights: Sequence[int]) -> list[int]:
    """Label indices from the heaviest to the lightest; equal weights keep their order."""
    return sorted(range(len(weights)), key=lambda y: -weights[y])


def dual_of_zero_one(prior: Floats, epsilon: float) -> Floats:
    """[k] α that prove how often every ε-DP randomizer changes a label; ``prior`` [k] sums to 1.

    With h_y(v) = p_y·[v ≠ y] − α_y and F(v) = Σ h_y(v) + (e^ε − 1)·Σ min(h_y(v), 0), F ≥ 0 makes
    Σ α a lower bound on the loss (``docs/privacy.md``, Theorem 5). For 0 ≤ α ≤ p only h_v is
    negative at v, so F(v) = 1 − Σα − p_v − (e^ε − 1)·α_v. With c = 1 − Σα the best choice is
    α_y = min(p_y, (c − p_y)/(e^ε − 1)), and c = w_k of RRWithPrior (Algorithm 2) is the fixed
    point.
    """
    e = math.exp(epsilon)
    ranked = np.sort(prior)[::-1]
    c = np.max(e * np.cumsum(ranked) / (e + np.arange(len(prior))))
    if epsilon == 0:
        return np.where(prior > c, 0.0, prior)
    return np.minimum(prior, (c - prior) / math.expm1(epsilon))
