"""ε(δ) of many labels by dp-accounting's privacy loss distributions."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis.composition import Part
from labeldp_verify.analysis.composition.compose import common_step, masses_of

from labeldp_compile.errors import InputError

MARGIN = 1e-6
"""δ is asked for smaller by this share. Convolutions in float64 can be off by more where δ is tiny:
what is found counts only once the integers prove it (``compose.py``)."""
_DIGITS = 6
_NO_PACKAGE = (
    "ε at a given δ is computed by dp-accounting, which is not installed: "
    "pip install 'labeldp[composition]'"
)


def require_accounting() -> None:
    """Raise InputError if dp-accounting is not installed; for use before anything is spent."""
    if importlib.util.find_spec("dp_accounting") is None:
        raise InputError(_NO_PACKAGE)


class Accounting:
    """The composed privacy loss distribution of all labels of one user."""

    def __init__(self, parts: Sequence[Part]) -> None:
        """Raises InputError if dp-accounting is not installed."""
        require_accounting()
        self._step = common_step(parts)
        self._composed: Any = None
        for part in parts:
            if part.ratio == 1:
                continue
            # Its accountant composes RandomizedResponse once, whatever the count: hence these.
            distribution = _distribution(masses_of(part, self._step)[0], self._step)
            composed = distribution.self_compose(part.labels)
            self._composed = (
                composed if self._composed is None else self._composed.compose(composed)
            )

    def epsilon(self, delta: float) -> Decimal:
        """ε at δ, rounded up to 6 digits; Infinity if the float64 arithmetic finds none."""
        if self._composed is None:
            return Decimal(0)
        found = float(self._composed.get_epsilon_for_delta(delta * (1 - MARGIN)))
        if not math.isfinite(found):
            return Decimal("Infinity")
        rounding = Context(prec=_DIGITS, rounding=ROUND_CEILING)
        return rounding.create_decimal(Decimal(max(found, 0.0)) * (1 + Decimal("1e-9")))


def _distribution(masses: dict[int, Fraction], step: Fraction) -> Any:
    """A distribution over multiples of the step; its estimates are pessimistic."""
    # It takes a second to import, and most commands do without.
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # noqa: PLC0415

    losses = {j: math.nextafter(float(mass), math.inf) for j, mass in masses.items() if mass}
    pmf = pld_pmf.create_pmf(losses, float(step), 0.0, True)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)
