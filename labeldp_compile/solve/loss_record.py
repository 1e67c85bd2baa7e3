"""The record of a loss: what the compiler knows of it, in addition to what the verifier knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from labeldp_verify.analysis import LOSSES as EXACT

from labeldp_compile.solve.bin_costs import BinCosts, Divergence, Floats

MAX_CERTIFIED_LABELS = 20_000  # beyond, dual values would be larger than the tables
CONVEX_LABELS = 1_000  # beyond, intervals times labels take too long to check
CONVEX_SECONDS = 8e-3  # for each label
CONVEX_REPAIR = -7


@dataclass(frozen=True)
class LossRecord:
    """Everything that the compiler knows of a loss ℓ(v, y), in addition to what the verifier knows.

    Attributes:
        name: as in a spec.
        formula: in words, for the reference.
        mean: its expectation in words, for pages and pictures.
        less: a smaller expectation in words.
        of: ℓ of outputs v and labels y that broadcast.
        training: the kind of mechanism that a model learns best from, and why.
        degree: d if ℓ = |v − y|^d / d, and 0 if ℓ = [v ≠ y]; None if it is another. Additive noise,
            exact unbiased outputs and the bounds of RR-on-Bins know only such losses.
        slopes: u and o if ℓ = u·(y − v)⁺ + o·(v − y)⁺; None if it is another.
        bins: the costs of bins, from labels [n] that increase, their positive prior [n] of sum 1,
            and ε > 0; None if it is not for RR-on-Bins.
        divergence: ℓ(v, y) − ℓ(y, y) of label and output, accurate relative to itself; None if it
            is ``of``.
        positive: whether labels must be at least 0, and outputs positive.
        costs: [k, k] of labels and outputs if there are no others; None if ``of`` has them.
        certified: up to this many labels, dual values prove a bound for RR-on-Bins.
        seconds: to find and to check such a dual value.
        repair: dual values are first lowered by 10 to this power, relative to the loss; None if
            they are first tried as they are. The narrower a gap, the longer its check takes.
    """

    name: str
    formula: str
    mean: str
    less: str
    of: Callable[[Floats, Floats | float], Floats]
    training: tuple[str, str]
    degree: int | None = None
    slopes: tuple[float, float] | None = None
    bins: Callable[[Floats, Floats, float], BinCosts] | None = None
    divergence: Divergence | None = None
    positive: bool = False
    costs: Floats | None = None
    certified: int = 0
    seconds: float = 0.0
    repair: int | None = None

    @property
    def equality(self) -> bool:
        """Whether it only asks if output and label are the same."""
        return EXACT[self.name].equality

    @property
    def needs_numbers(self) -> bool:
        """Whether labels must be numbers."""
        return EXACT[self.name].needs_numbers

    def apart(self, v: Floats, y: Floats) -> Floats:
        """ℓ(v, y) − ℓ(y, y) ≥ 0 of outputs and labels that broadcast."""
        return self.of(v, y) if self.divergence is None else self.divergence(y, v)


@dataclass(frozen=True)
class FamilyRecord:
    """Losses with parameters.

    Attributes:
        formula: in words, for the reference.
        make: the record of a name and of parameters, as ``LossFamily`` of the verifier has them.
    """

    formula: str
    make: Callable[..., LossRecord]
