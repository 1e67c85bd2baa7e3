"""All labels of one user together: from the parts to δ(ε), which is never below the truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from labeldp_verify.analysis.bounds import exp_bounds, least_log_bound
from labeldp_verify.analysis.composition.divergence import divergences
from labeldp_verify.analysis.composition.dominating_pair import SLACK, Lattice, dominating_masses
from labeldp_verify.analysis.composition.losses import ONE, Losses, from_masses
from labeldp_verify.forms import Randomizer

MAX_LABELS_PER_USER = 10_000
_FINEST, _COARSEST = 256, 8  # steps of the largest ε of the parts
_WIDTH = 1 << 15  # steps of all labels together
_UNIT = 1 << 160


@dataclass(frozen=True)
class Part:
    """``labels`` labels of one user, each through one of the tables; ``ratio`` bounds their e^ε.

    A file has several tables where groups have their own.
    """

    tables: Sequence[Randomizer]
    ratio: Fraction
    labels: int


@dataclass(frozen=True)
class Composed:
    """The composition of the dominating pairs of all parts.

    ``own_tables`` is false if Randomized Response stood in for one that was too large.
    """

    losses: Losses
    step: Fraction
    labels: int
    own_tables: bool

    def delta(self, epsilon: Fraction) -> Fraction:
        """An upper bound of δ(ε), ε ≥ 0: Σ (P − e^ε·Q)⁺ over all outputs of all labels."""
        # Losses may lie above their lattice points by a hair.
        least = max(epsilon - self.labels * SLACK, Fraction(0))
        start = max(least // self.step + 1, self.losses.first)  # the first loss above ε
        masses = self.losses.masses[start - self.losses.first :]
        kept = _decays(least - start * self.step, self.step, len(masses))
        finite = sum(m * (_UNIT - d) for m, d in zip(masses, kept, strict=True))
        return (Fraction(finite, _UNIT) + self.losses.infinite) / ONE


def compose_parts(parts: Sequence[Part]) -> Composed:
    """The composition of all labels of one user, through any randomizers."""
    step = common_step(parts)
    losses, own = Losses(0, [ONE], 0), True  # the loss 0 for sure
    for part in parts:
        if part.ratio > 1:
            masses, is_own = masses_of(part, step)
            losses = losses.plus(from_masses(masses).times(part.labels))
            own = own and is_own
    return Composed(losses, step, sum(part.labels for part in parts), own)


def masses_of(part: Part, step: Fraction) -> tuple[dict[int, Fraction], bool]:
    """The dominating pair of one label of a part on the lattice, and whether it is its tables'."""
    lattice = Lattice(step, part.ratio)
    bounds, own = divergences(part.tables, lattice)
    return dominating_masses(bounds, lattice), own


def common_step(parts: Sequence[Part]) -> Fraction:
    """The step of the lattice: the largest ε of a part is 8 to 256 steps, exactly."""
    epsilons = [least_log_bound(part.ratio) for part in parts]
    largest = max(epsilons)
    if not largest:
        return Fraction(1)
    total = sum(part.labels * epsilon for part, epsilon in zip(parts, epsilons, strict=True))
    return largest / min(max(int(_WIDTH * largest / total), _COARSEST), _FINEST)


def _decays(exponent: Fraction, step: Fraction, count: int) -> list[int]:
    """[count] lower bounds of e^(exponent − j·step), j ≥ 0, in units of 2^-160; exponent ≤ 0."""
    low = [exp_bounds(x)[0] for x in (exponent, -step)]
    first, factor = (x.numerator * _UNIT // x.denominator for x in low)
    powers = accumulate(range(count - 1), lambda x, _: x * factor // _UNIT, initial=first)
    return list(powers)[:count]
