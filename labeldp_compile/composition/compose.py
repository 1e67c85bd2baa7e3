"""All labels of one user through one randomizer or several."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property

from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.bounds import least_log_bound
from labeldp_verify.analysis.composition import (
    MAX_LABELS_PER_USER,
    Composed,
    Part,
    compose_parts,
)
from labeldp_verify.forms import Randomizer

from labeldp_compile.composition.accounting import Accounting

_UPWARDS = Context(prec=6, rounding=ROUND_CEILING)
_STEPS_UP = 10


class Composition:
    """What a user pays for all labels together; ``parts`` say how many go through which file."""

    def __init__(self, parts: Sequence[Part]) -> None:
        """Each part has the ratio that its integers realise, and 1 … 10,000 labels."""
        self.parts = tuple(parts)

    @cached_property
    def pure(self) -> Fraction:
        """Σ L·ε over the parts, ε being the bound that the integers prove: (pure, 0)-DP."""
        bounds = (part.labels * least_log_bound(part.ratio) for part in self.parts)
        return sum(bounds, Fraction(0))

    def epsilon(self, delta: Decimal) -> Decimal | None:
        """An ε, of 6 digits, with which the labels together are (ε, δ)-DP, 1e-12 ≤ δ < 1.

        dp-accounting's, once the integers prove it (Theorem 12); None if only ``pure`` is proved,
        i.e. no smaller ε is. Raises ValueError for another δ, and InputError without dp-accounting.
        """
        if not Decimal("1e-12") <= delta < 1:
            raise ValueError(f"δ must lie between 1e-12 and 1; it is {delta}")
        found = self._accounting.epsilon(float(delta))
        for step in range(_STEPS_UP):
            if not found.is_finite() or Fraction(found) >= self.pure:
                return None
            if self.exact.delta(Fraction(found)) <= Fraction(delta):
                return found
            found = _UPWARDS.multiply(found, 1 + Decimal("1e-5") * 4**step)
        return None

    @cached_property
    def exact(self) -> Composed:
        """The same composition in integers, as ``verify`` computes it."""
        return compose_parts(self.parts)

    @cached_property
    def _accounting(self) -> Accounting:
        return Accounting(self.parts)


def compose(randomizers: Sequence[Randomizer], labels_per_user: int | Sequence[int]) -> Composition:
    """The composition of so many labels of one user through each of the randomizers.

    One number of labels is for each randomizer alike. Raises ValueError for numbers of labels that
    are not 1 … 10,000, or not one a randomizer.
    """
    counts = (
        [labels_per_user] * len(randomizers)
        if isinstance(labels_per_user, int)
        else list(labels_per_user)
    )
    if not randomizers or len(counts) != len(randomizers):
        raise ValueError("expected at least one randomizer, and one number of labels for each")
    if not all(1 <= count <= MAX_LABELS_PER_USER for count in counts):
        raise ValueError(f"a user has 1 … {MAX_LABELS_PER_USER:,} labels")
    pairs = zip(randomizers, counts, strict=True)
    return Composition([Part(r, analyse(r).worst_ratio(), count) for r, count in pairs])
