"""The total ε of all labels of one user, through one or several randomizers."""

import importlib.util
import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from labeldp_verify.analysis import (
    MAX_LABELS_PER_USER,
    Composed,
    Part,
    analyse,
    common_step,
    compose_parts,
    least_log_bound,
    masses_of,
)
from labeldp_verify.claims import DELTAS, CompositionClaims, EpsilonAtDelta
from labeldp_verify.forms import Randomizer

from labeldp_compile.errors import require_installed

MARGIN = 1e-6
"""δ is requested smaller by this share. For tiny δ, convolutions in float64 can be off by more: a
result counts only if the integers prove it (``Composition.epsilon``)."""
_UPWARDS = Context(prec=6, rounding=ROUND_CEILING)


def has_accounting() -> bool:
    """Whether dp-accounting is installed."""
    return importlib.util.find_spec("dp_accounting") is not None


def require_accounting() -> None:
    """Raise InputError if dp-accounting is not installed. Call it before anything is spent."""
    require_installed("ε at a given δ", "dp_accounting", install="pip install dp-accounting")


def _loss_distribution(parts: Sequence[Part]) -> Any:
    """dp-accounting's composed privacy loss distribution; None if there is no privacy loss."""
    require_accounting()
    # It takes a second to import, and most commands do not need it.
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # noqa: PLC0415

    step, composed = common_step(parts), None
    for part in parts:
        if part.ratio == 1:
            continue
        # Its accountant composes RandomizedResponse only once, for any count. So these are losses
        # in multiples of the step, with masses rounded up.
        masses = masses_of(part, step)[0]
        losses = {j: math.nextafter(float(mass), math.inf) for j, mass in masses.items() if mass}
        pmf = pld_pmf.create_pmf(losses, float(step), 0.0, True)
        own = privacy_loss_distribution.PrivacyLossDistribution(pmf).self_compose(part.labels)
        composed = own if composed is None else composed.compose(own)
    return composed


_STEPS_UP = 10


class Composition:
    """The ε of a user's labels together; ``parts`` say how many labels use which file."""

    def __init__(self, parts: Sequence[Part]) -> None:
        """Each part has the probability ratio of its integers, and 1 … 10,000 labels."""
        self.parts = tuple(parts)

    @cached_property
    def pure(self) -> Fraction:
        """Σ L·ε over the parts, where ε is the bound that the integers prove: (pure, 0)-DP."""
        bounds = (part.labels * least_log_bound(part.ratio) for part in self.parts)
        return sum(bounds, Fraction(0))

    def epsilon(self, delta: Decimal) -> Decimal | None:
        """An ε with 6 digits, for which the labels together are (ε, δ)-DP, 1e-12 ≤ δ < 1.

        It is that of dp-accounting, if the integers prove it (Theorem 12). None if no ε smaller
        than ``pure`` is proved. Raises ValueError for another δ, and InputError without
        dp-accounting.
        """
        if not Decimal("1e-12") <= delta < 1:
            raise ValueError(f"δ must be between 1e-12 and 1; it is {delta}")
        epsilon = self.accounted(float(delta))
        for step in range(_STEPS_UP):
            if not epsilon.is_finite() or Fraction(epsilon) >= self.pure:
                return None
            if self.exact.delta(Fraction(epsilon)) <= Fraction(delta):
                return epsilon
            epsilon = _UPWARDS.multiply(epsilon, 1 + Decimal("1e-5") * 4**step)
        return None

    @cached_property
    def _losses(self) -> Any:
        return _loss_distribution(self.parts)

    def accounted(self, delta: float) -> Decimal:
        """dp-accounting's ε at δ, rounded up to 6 digits; Infinity if its floats find none.

        Raises InputError if dp-accounting is not installed.
        """
        if self._losses is None:
            return Decimal(0)
        epsilon = float(self._losses.get_epsilon_for_delta(delta * (1 - MARGIN)))
        if not math.isfinite(epsilon):
            return Decimal("Infinity")
        return _UPWARDS.create_decimal(Decimal(max(epsilon, 0.0)) * (1 + Decimal("1e-9")))

    @cached_property
    def exact(self) -> Composed:
        """The composition in integers, as ``verify`` computes it."""
        return compose_parts(self.parts)


def compose(files: Sequence[Sequence[Randomizer]], counts: Sequence[int]) -> Composition:
    """The composition of one user's labels through each of the files, which are lists of tables.

    ``counts`` are the labels in each file. Raises ValueError for a number of labels that is not
    1 … 10,000, or if there is not one per randomizer.
    """
    if not files or len(counts) != len(files):
        raise ValueError("expected at least one randomizer, and one number of labels for each")
    if not all(1 <= count <= MAX_LABELS_PER_USER for count in counts):
        raise ValueError(f"a user has 1 … {MAX_LABELS_PER_USER:,} labels")
    return Composition(
        [
            Part(tables, max(analyse(table).worst_ratio() for table in tables), count)
            for tables, count in zip(files, counts, strict=True)
        ]
    )


_STATEMENT_UPWARDS = Context(prec=30, rounding=ROUND_CEILING)


def composition_statement(
    tables: Sequence[Randomizer],
    labels_per_user: int,
    epsilon_label: Fraction,
    epsilon_prior: Fraction,
) -> CompositionClaims:
    """L·ε₂, L·ε₁ of the prior, and ε at five δ, none of them above L·ε₂."""
    composition = compose([tables], [labels_per_user])
    pure = labels_per_user * epsilon_label
    at = []
    for delta in DELTAS:
        epsilon = composition.epsilon(Decimal(delta))
        if epsilon is None or Fraction(epsilon) >= pure:
            epsilon = _STATEMENT_UPWARDS.divide(Decimal(pure.numerator), Decimal(pure.denominator))
        at.append(EpsilonAtDelta(delta, format(epsilon.normalize(), "f")))
    return CompositionClaims(
        labels_per_user=labels_per_user,
        epsilon_pure=str(pure),
        epsilon_prior=str(labels_per_user * epsilon_prior),
        pair="table" if composition.exact.own_tables else "randomized response",
        epsilon_at_delta=at,
    )
