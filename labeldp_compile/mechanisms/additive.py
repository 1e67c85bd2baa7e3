"""What Laplace and staircase noise share (Definitions 17 to 20 of the unbiased paper, 2023)."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

from labeldp_verify.forms import CategoricalDomain, Domain
from labeldp_verify.graph import MAX_PERIOD, column_bits
from pydantic import Field, StrictBool

from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.mechanisms.tables import ENTRY_BYTES, TableLayout
from labeldp_compile.rounding.additive_noise import (
    MAX_REACH,
    LabelLattice,
    Magnitudes,
    additive_noise,
    require_reachable,
)
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
        if problem.loss == "poisson":
            raise ValueError(
                "the poisson loss needs positive outputs, but added noise can make them negative"
            )
        self.require_feasible(problem.domain, problem.loss, problem.epsilon)
        lattice = label_lattice(problem.domain, self.lattice)
        found = self.magnitudes(problem, lattice)
        return Solved(additive_noise(found, lattice, problem.epsilon, self.clip, problem.word_bits))

    def require_feasible(self, domain: Domain, loss: str, epsilon: Fraction) -> None:
        """Raise ValueError if the noise would need too large tables, or ε is too small."""
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
