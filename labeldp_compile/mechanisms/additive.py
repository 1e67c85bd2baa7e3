"""Laplace and staircase noise (Definitions 17 to 20 of the unbiased randomizers paper, 2023)."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from labeldp_verify.analysis import Loss
from labeldp_verify.forms import CategoricalDomain, Domain
from labeldp_verify.graph import MAX_PERIOD, column_bits
from pydantic import Field, StrictBool

from labeldp_compile.mechanisms.mechanism import (
    ENTRY_BYTES,
    Mechanism,
    Problem,
    Solved,
    TableLayout,
)
from labeldp_compile.rounding.additive_noise import (
    MAX_REACH,
    LabelLattice,
    Magnitudes,
    additive_noise,
    laplace_magnitudes,
    require_reachable,
    staircase_magnitudes,
)
from labeldp_compile.solve.bin_costs import Floats
from labeldp_compile.solve.losses import LOSSES
from labeldp_compile.yaml_model import Number

_REACH_BITS = 60  # unclipped noise ends when this many bits of the word are used up


class AdditiveNoise(Mechanism):
    """Noise added to the label; Δ is the range of the domain."""

    clip: StrictBool = Field(
        False, description="whether outputs are clamped to the range of the labels (biased)"
    )
    lattice: Annotated[Number, Field(gt=0)] | None = Field(
        None,
        description="use a lattice at least this fine for the noise (default: one step per label)",
    )
    form: ClassVar[Literal["window", "additive", "table"]] = "additive"
    seconds_a_label = 5e-5
    needs_order = True
    answers = "anywhere"
    rehearsed_whole = True

    @abstractmethod
    def magnitudes(self, problem: Problem, lattice: LabelLattice) -> Magnitudes:
        """The ideal distribution for any ε."""

    @property
    def is_unbiased(self) -> bool:
        """Unless outputs are clamped."""
        return not self.clip

    def options_in_words(self) -> list[str]:
        """Clipped or not, and the lattice."""
        lattice = [] if self.lattice is None else [f"lattice {self.lattice}"]
        return [*(["clipped"] if self.clip else []), *lattice]

    def build(self, problem: Problem) -> Solved:
        """The noise in whole counts, on the lattice that the spec asks for."""
        self.require_feasible(problem.domain, problem.loss, problem.epsilon)
        lattice = label_lattice(problem.domain, self.lattice)
        found = self.magnitudes(problem, lattice)
        return Solved(additive_noise(found, lattice, problem.epsilon, self.clip, problem.word_bits))

    def require_feasible(self, domain: Domain, loss: str, epsilon: Fraction) -> None:
        """Raise ValueError for a loss that is no power of the distance, large tables or small ε."""
        if LOSSES[loss].degree is None:
            raise ValueError(f"the {loss} loss is not for added noise")
        lattice = label_lattice(domain, self.lattice)
        if lattice.period > MAX_PERIOD:
            raise ValueError(_too_large(lattice, domain))
        if not self.clip:
            require_reachable(epsilon)

    def layouts(
        self, domain: Domain, loss: str, epsilon: Fraction, weights: Sequence[int] | None
    ) -> list[TableLayout]:
        """One layout: the noise does not depend on the prior."""
        reach = self._reach(epsilon)
        period = label_lattice(domain, self.lattice).period
        entries = (1 << column_bits(2 * reach + 2)) + (2 << column_bits(period))
        return [TableLayout((2 * reach - 1) * period + 1, ENTRY_BYTES * entries)]

    def _reach(self, epsilon: Fraction) -> int:
        """Blocks on each side of zero."""
        if self.clip:
            return 1
        return min(max(math.ceil(_REACH_BITS * math.log(2) / float(epsilon)), 2), MAX_REACH)

    def seconds(self, labels: int, loss: str, epsilon: float) -> tuple[float, float]:
        """Clipped noise on a fine lattice is slow: its weights are rounded one by one."""
        slow = 5e-4 * labels if self.clip and self.lattice is not None else 0.0
        return self.seconds_a_label * labels, self.seconds_a_label * labels + slow

    @classmethod
    def compared(cls, own: Self | None, labels: int, loss: str) -> Iterable[Mechanism]:
        """Clipped and unclipped, on the spec's own lattice if it names one."""
        lattice = None if own is None else own.lattice
        return [cls.named(clip=clip, lattice=lattice) for clip in (False, True)]


def label_lattice(domain: Domain, finest: Decimal | None) -> LabelLattice:
    """The lattice of a domain whose step is at most ``finest``; one step per label if None.

    The steps per label are a power of two, so that lattice points between integers are exact in
    float64. Raises ValueError for categories.
    """
    if isinstance(domain, CategoricalDomain):
        raise ValueError("additive noise needs labels that are numbers")
    step = (Fraction(domain.max) - Fraction(domain.min)) / (domain.size - 1)
    wanted = 1 if finest is None else math.ceil(step / Fraction(finest))
    spacing = 1 << (wanted - 1).bit_length() if wanted > 1 else 1
    origin = float(domain.min) + 0.0  # + 0.0 turns −0.0 into 0.0
    return LabelLattice(domain.size, spacing, origin, float(step / spacing))


def _too_large(lattice: LabelLattice, domain: Domain) -> str:
    too_many = f"the tables for additive noise on {lattice.period:,} lattice steps are too large"
    if domain.size - 1 > MAX_PERIOD:
        return f"{too_many}; use at most {MAX_PERIOD + 1:,} labels"
    spacing = 1 << ((MAX_PERIOD // (domain.size - 1)).bit_length() - 1)
    finest = lattice.unit * lattice.spacing / spacing
    return f"{too_many}; use lattice: {_rounded_up(finest)} or coarser, or fewer labels"


def _rounded_up(number: float) -> str:
    """Slightly above ``number``, with three digits."""
    return str(float(f"{number * 1.01:.3g}"))


# The best width of the staircase for a loss.
#
# With weights h(m) = 1 for m < ρ and b = e^−ε after that, the expected loss of the noise is a ratio
# of two sums, which prefix sums give for all widths ρ at once. The width only chooses among private
# noises, so float64 is enough. Geng and Viswanath (2014) proved that a staircase of some width is
# the best of all unclipped additive noises.


def staircase_width(
    period: int, spacing: int, prior: Floats, epsilon: float, loss: Loss, clip: bool
) -> int:
    """The width ρ in 1 … D with the least expected loss; O(D + k).

    ``period`` D and ``spacing`` are in lattice steps, ``prior`` is [k]. Without ``clip``, the loss
    is that of the noise, for any prior. With ``clip``, it is that of the label plus noise, clamped
    to the range of the labels. The loss depends only on the distance.
    """
    if clip:
        above = _clipped(period, spacing, prior, epsilon, loss)
        below = _clipped(period, spacing, prior[::-1], epsilon, loss)
    else:
        above = below = _unclipped(period, epsilon, loss)
    b = math.exp(-epsilon)
    widths = np.arange(1, period + 1)
    # Distances 0 … D − 1 from zero upwards, and 1 … D below: a width covers ρ and ρ − 1 of them.
    covered = np.cumsum(above[:period]) + np.concatenate([[0.0], np.cumsum(below[1:period])])
    everything = above[:period].sum() + below[1:].sum()
    expected = b * everything + (1 - b) * covered
    weight = b * 2 * period + (1 - b) * (2 * widths - 1)
    return int(np.argmin(expected / weight)) + 1


def _unclipped(period: int, epsilon: float, loss: Loss) -> Floats:
    """[D + 1] Σ over j of e^(−ε·j)·ℓ(j·D + m)."""
    b, rest = math.exp(-epsilon), -math.expm1(-epsilon)
    zeroth, first, second = 1 / rest, b / rest**2, b * (1 + b) / rest**3
    m = np.arange(period + 1, dtype=np.float64)
    if LOSSES[loss].degree == 2:
        squares = period**2 * second + 2 * period * first * m + zeroth * m * m
        return np.asarray(squares / 2)
    if LOSSES[loss].degree == 1:
        return np.asarray(period * first + zeroth * m)
    return np.asarray(LOSSES[loss].of(m, 0.0) + b * zeroth)


def _clipped(period: int, spacing: int, prior: Floats, epsilon: float, loss: Loss) -> Floats:
    """[D + 1] Σ over j of e^(−ε·j)·E ℓ(clamp(y + j·D + m) − y), y a random label."""
    m = np.arange(period + 1)
    room = period - spacing * np.arange(float(len(prior)))  # steps from each label to the highest
    fully = (period - m) // spacing + 1  # labels that m more steps do not push over the end
    mass = np.concatenate([[0.0], np.cumsum(prior)])
    stopped = np.concatenate([[0.0], np.cumsum((prior * LOSSES[loss].of(room, 0.0))[::-1])])[::-1]
    losses = LOSSES[loss].of(m.astype(np.float64), 0.0) * mass[fully] + stopped[fully]
    b = math.exp(-epsilon)
    # From one period on every label is pushed to the end.
    return np.asarray(losses + b / -math.expm1(-epsilon) * losses[period])


class Laplace(AdditiveNoise):
    """Discrete Laplace noise (Definition 17), or on a fine lattice the continuous one (18)."""

    kind: Literal["laplace"]

    def magnitudes(self, problem: Problem, lattice: LabelLattice) -> Magnitudes:
        """The magnitudes of the definition."""
        return partial(laplace_magnitudes, period=lattice.period)


class Staircase(AdditiveNoise):
    """Staircase noise of the width that is best for the loss (Definitions 19 and 20)."""

    kind: Literal["staircase"]
    method = "closed form, after a search for the best width"

    @property
    def follows_prior(self) -> bool:
        """Only where noise is clamped does its best width depend on the labels."""
        return self.clip

    def magnitudes(self, problem: Problem, lattice: LabelLattice) -> Magnitudes:
        """The magnitudes of the best width."""
        width = staircase_width(
            lattice.period,
            lattice.spacing,
            problem.prior(),
            float(problem.epsilon),
            problem.loss,
            self.clip,
        )
        return partial(staircase_magnitudes, period=lattice.period, width=width)
