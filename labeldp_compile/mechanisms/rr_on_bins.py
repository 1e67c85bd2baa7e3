"""RR-on-Bins: randomized response on the optimal intervals (ICLR 2023, Algorithms 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np
from labeldp_verify.analysis import LOSSES as EXACT
from labeldp_verify.analysis import BiasRule, Loss
from labeldp_verify.forms import CategoricalDomain, Domain, WindowRandomizer
from numpy.typing import NDArray

from labeldp_compile.mechanisms.mechanism import (
    ANSWERS_THE_LIKELY,
    GRID_OF_RESPONSE,
    DualBound,
    Mechanism,
    PriorUse,
    Problem,
    Proof,
    RadiusBound,
    Solved,
    TableLayout,
    adapted_bytes,
    response_layout,
)
from labeldp_compile.rounding.windows import randomized_response
from labeldp_compile.solve.losses import LOSSES, MAX_CERTIFIED_LABELS

if TYPE_CHECKING:
    from labeldp_compile.solve.rr_on_bins import BinsSolution

_CLOSE = 1e-6  # relative gap of the dual values up to which no radii are tried
_SLOW_DUALS = 10.0  # seconds
_WIDE_BINS_EPSILON = 4.0  # from here on the dual values may need linear programs


class RRonBins(Mechanism):
    """Randomized response on the optimal bins (RR-on-Bins, ICLR 2023, Algorithm 2)."""

    kind: Literal["rr_on_bins"]
    method = "dynamic program over bins"
    needs_order = True
    answers = "positive"
    may_keep = False
    certified_labels = math.inf

    @property
    def prior_use(self) -> PriorUse:
        """The bins are at the likely labels."""
        return ANSWERS_THE_LIKELY

    def least_entries(self, labels: int) -> int:
        """It adapts to the room for outputs, and rarely needs more."""
        return min(4 * labels, 64)

    def build(self, problem: Problem) -> Solved:
        """Solve for the bins and their outputs, then build the response in integers."""
        domain, loss = problem.domain, problem.loss
        if isinstance(domain, CategoricalDomain) or LOSSES[loss].bins is None:
            raise ValueError("rr_on_bins needs ordered labels and a loss that grows with distance")
        from labeldp_compile.solve.rr_on_bins import solve_rr_on_bins  # noqa: PLC0415

        labels = np.array(domain.labels().floats())
        prior = problem.prior()
        solution = solve_rr_on_bins(labels, prior, float(problem.epsilon), loss)
        values = [float(value) + 0.0 for value in solution.values]  # + 0.0 turns −0.0 into 0.0
        bins = np.searchsorted(solution.starts, np.arange(domain.size), side="right") - 1
        randomizer = _small(problem, values, bins.tolist())
        bound = _bound(labels, prior, float(problem.epsilon), loss, solution)
        return Solved(randomizer, bound)

    def rehearse(self, problem: Problem) -> Solved:
        """Two bins for any prior: no solver is needed."""
        labels = problem.domain.labels()
        low, high = Fraction(labels[0]), Fraction(labels[-1])
        values = [float((low + high) / 2), float(high)]
        rows = [2 * y // len(labels) for y in range(len(labels))]
        return Solved(randomized_response(values, rows, problem.epsilon, problem.word_bits))

    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """From two bins to about e^(ε/2) for a loss of two slopes, or e^(ε/3) for the others."""
        k = domain.size
        many = math.exp(min(float(epsilon) / (3 if LOSSES[loss].slopes is None else 2), 30))
        bins = sorted({min(k, 2), min(k, math.ceil(1.3 * many) + 1)})
        return [response_layout(k, m, epsilon) for m in bins]

    def most_table_bytes(self, domain: Domain, epsilon: Fraction, room: int) -> int:
        """The bytes for as many bins as fit."""
        k = domain.size
        return adapted_bytes(k, GRID_OF_RESPONSE * k + 8, 2 * k, room)

    def seconds(self, labels: int, loss: str, epsilon: float) -> tuple[float, float]:
        """Mostly the time of the proof, if there is one; longer for some priors at a large ε."""
        if not self.proof(loss, labels):
            return 2e-5 * labels, 2e-5 * labels
        seconds = (2e-5 + LOSSES[loss].seconds) * labels
        is_slow = epsilon >= _WIDE_BINS_EPSILON
        return seconds, seconds + (min(0.02 * labels, _SLOW_DUALS) if is_slow else 0.0)

    def proof(self, loss: str, labels: int) -> Sequence[Proof]:
        """Dual values, up to a number of labels that depends on the loss."""
        return ("dual", "no slope") if labels <= _most_certified(loss) else ()


def _most_certified(loss: str) -> int:
    """Labels with a dual value each."""
    return min(LOSSES[loss].certified, MAX_CERTIFIED_LABELS)


def _bound(
    labels: NDArray[np.float64],
    prior: NDArray[np.float64],
    epsilon: float,
    loss: Loss,
    solution: BinsSolution,
) -> DualBound | RadiusBound | None:
    """The larger of two bounds: of dual values if a file has room for them, and of radii."""
    dual, largest = None, 0.0
    if labels.size <= _most_certified(loss):
        # SciPy takes a third of a second to import, and only the proofs need it.
        from labeldp_compile.solve.rr_on_bins import dual_of_rr_on_bins  # noqa: PLC0415

        alpha = dual_of_rr_on_bins(labels, prior, epsilon, loss, solution)
        # Without slopes, the bound holds for every ε-DP randomizer, biased or not.
        dual = DualBound(alpha.tolist(), [0.0] * labels.size, BiasRule("any"))
        largest = float(alpha.sum())
    if EXACT[loss].radii is None or largest >= solution.loss * (1.0 - _CLOSE):
        return dual
    from labeldp_compile.solve.rr_on_bins_radii import radii_of_rr_on_bins  # noqa: PLC0415

    found = radii_of_rr_on_bins(labels, prior, epsilon, loss, solution)
    if found is None or found.bound <= largest:
        return dual
    return RadiusBound(found.knots.tolist(), found.radii.tolist())


def _small(problem: Problem, values: Sequence[float], bins: Sequence[int]) -> WindowRandomizer:
    """Join bins in pairs until the file is small enough, which only very many labels need."""
    while True:
        randomizer = randomized_response(values, bins, problem.epsilon, problem.word_bits)
        if len(values) == 1 or problem.fits(randomizer):
            return randomizer
        values, bins = values[::2], [b // 2 for b in bins]
