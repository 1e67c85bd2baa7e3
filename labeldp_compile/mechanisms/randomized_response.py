"""Randomized response over all labels, debiased, and over the likeliest labels.

Warner (1965) and Definitions 21 and 23 of the optimal unbiased randomizers paper (2023); RRTop-k
and RRWithPrior are Algorithms 1 and 2 of "Deep learning with label differential privacy" (2021).
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import ClassVar, Literal, Self

import numpy as np
from labeldp_verify.analysis import BiasRule, exp_lower, row_means
from labeldp_verify.forms import CategoricalDomain, Domain, WindowRandomizer, output_values
from pydantic import Field, StrictInt

from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms.mechanism import (
    KEEPS_THE_LIKELIEST,
    DualBound,
    Mechanism,
    PriorUse,
    Problem,
    Proof,
    Solved,
    TableLayout,
    adapted_bytes,
    response_layout,
    window_layout,
)
from labeldp_compile.rounding.windows import randomized_response, rr_top_k
from labeldp_compile.solve.bin_costs import Floats
from labeldp_compile.solve.losses import LOSSES, MAX_CERTIFIED_LABELS


class RandomizedResponse(Mechanism):
    """Randomized response over all labels (Warner 1965)."""

    kind: Literal["randomized_response"]
    joins = True

    def build(self, problem: Problem) -> Solved:
        """Every label is an output; the prior and the loss are not used."""
        values = output_values(problem.domain)
        rows = range(problem.domain.size)
        return Solved(randomized_response(values, rows, problem.epsilon, problem.word_bits))

    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """One layout: nothing depends on the prior."""
        return [response_layout(domain.size, domain.size, epsilon)]


class DebiasedRR(RandomizedResponse):
    """Randomized response whose outputs are moved apart to be unbiased (Definition 23)."""

    kind: Literal["debiased_rr"]  # type: ignore[assignment]  # another name
    seconds_a_label = 3e-5
    needs_order = True
    joins = False
    answers = "anywhere"
    may_keep = False

    @property
    def is_unbiased(self) -> bool:
        """Always."""
        return True

    def build(self, problem: Problem) -> Solved:
        """Randomized response whose outputs are moved apart so that means are kept.

        The outputs undo the probabilities of the integers (not e^ε). With base weight b and window
        X, v_y = (2^B·y − b·Σy′)/X has E[v | y] = (b·Σv + X·v_y)/2^B = y, because Σv = Σy.
        """
        domain = problem.domain
        if isinstance(domain, CategoricalDomain):
            raise ValueError("debiased_rr needs labels that are numbers")
        labels = row_means(domain, domain.labels())
        plain = randomized_response(
            [float(y) for y in labels], range(len(labels)), problem.epsilon, problem.word_bits
        )
        base, window, total = plain.base[0], plain.window, sum(labels, Fraction(0))
        if window == 0:
            raise ValueError("ε is too small for an unbiased randomizer with words of this size")
        values = [float((plain.words * y - base * total) / window) + 0.0 for y in labels]
        rows = range(len(labels))
        return Solved(randomized_response(values, rows, problem.epsilon, plain.word_bits))


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
        certified = LOSSES[loss].equality and labels <= MAX_CERTIFIED_LABELS
        return ("dual", "no slope") if certified else ()

    def keep(self, problem: Problem, k: int) -> WindowRandomizer:
        """RRTop-k over the k likeliest labels."""
        kept = sorted(by_weight(problem.weights)[:k])
        return rr_top_k(output_values(problem.domain), kept, problem.epsilon, problem.word_bits)

    def proved(self, problem: Problem, randomizer: WindowRandomizer) -> Solved:
        """With the 0-1 loss, add dual values that bound every ε-DP randomizer (Theorem 3)."""
        if not LOSSES[problem.loss].equality or problem.domain.size > MAX_CERTIFIED_LABELS:
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
        """This mechanism with a smaller k, if needed."""
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


_GRID = 36  # entries of the lookup grid for each label, at most


class RRWithPrior(KeepsLikeliest):
    """RRTop-k with the best k under the prior (RRWithPrior, NeurIPS 2021, Algorithm 2)."""

    kind: Literal["rr_with_prior"]

    def least_entries(self, labels: int) -> int:
        """It adapts to the room for outputs, and rarely needs more."""
        return min(4 * labels, 64)

    def build(self, problem: Problem) -> Solved:
        """Keep the best number of likeliest labels."""
        k = best_k(problem.weights, problem.epsilon)
        randomizer = self.keep(problem, k)
        # Only with very many labels is the file too large; then fewer labels are kept.
        while k > 1 and not problem.fits(randomizer):
            k = best_k(problem.weights, problem.epsilon, most=k // 2)
            randomizer = self.keep(problem, k)
        return self.proved(problem, randomizer)

    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """The layout of the best k, or of powers of two if the prior is not known."""
        k = domain.size
        if weights is not None:
            return [kept_layout(k, best_k(weights, epsilon), epsilon)]
        powers = (1 << e for e in range(k.bit_length()))
        return [kept_layout(k, kept, epsilon) for kept in sorted({*powers, k})]

    def most_table_bytes(self, domain: Domain, epsilon: Fraction, room: int) -> int:
        """The bytes for any k, as long as they fit."""
        return adapted_bytes(domain.size, _GRID * domain.size + 64, 3 * domain.size, room)


def best_k(weights: Sequence[int], epsilon: Fraction, most: int | None = None) -> int:
    """argmax over k of e^ε/(e^ε + k − 1)·Σ (the k largest weights); the smallest k if several.

    ``most`` is the largest k to try. Compared as integers, with e^ε replaced by a rational within
    2^-200 of it.
    """
    ratio = exp_lower(epsilon)
    sums = accumulate(weights[y] for y in by_weight(weights)[:most])
    best, best_sum, best_cost = 1, 0, 1
    for k, total in enumerate(sums, start=1):
        cost = ratio.numerator + (k - 1) * ratio.denominator
        if total * best_cost > best_sum * cost:
            best, best_sum, best_cost = k, total, cost
    return best
