"""The record of a loss, and the names of losses with parameters, as in ``quantile(9/10)``."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis.analysis import Analysis, Losses, Rows
from labeldp_verify.analysis.lower_bound import Duals
from labeldp_verify.forms.exact_numbers import Whole
from labeldp_verify.strict import rational

_NAME = re.compile(r"([a-z_]+)\(([-0-9/,]{1,200})\)")
_LARGEST = 10**30  # of a numerator or denominator


@dataclass(frozen=True)
class ExactLoss:
    """Everything that the verifier knows of a loss ℓ(ŷ, y).

    Attributes:
        name: as in a spec, or as ``LossFamily.name_of`` writes it.
        expected: bounds [n] of E[ℓ(ŷ, labels[j])] in the row rows[j], from what ``Analysis``
            answers. Raises ValueError where the loss is infinite, or not defined.
        seconds: of the expectation for one label, on one core.
        dual: whether dual values prove a lower bound; None if they cannot.
        dual_seconds: of the lower bound for one label.
        radii: Σ w·g(r) if radii prove a lower bound (see ``lower_bound``); None if they cannot.
        equality: whether it only asks if ŷ = y.
        needs_numbers: whether labels must be numbers.
        rational: whether the two bounds are the same.
        has_slopes: whether dual values may have slopes.
        of_columns: whether a column of a joint label may have it.
        is_signed: whether it may be negative.
    """

    name: str
    expected: Callable[[Analysis[Any], Rows, Any], Losses]
    seconds: float = 200e-6
    dual: Callable[[Duals], bool] | None = None
    dual_seconds: float = 0.0
    radii: Callable[[Whole, Whole, Whole, int, Fraction], Fraction | None] | None = None
    equality: bool = False
    needs_numbers: bool = True
    rational: bool = True
    has_slopes: bool = False
    of_columns: bool = True
    is_signed: bool = False


@dataclass(frozen=True)
class LossFamily:
    """Losses that differ in parameters.

    Attributes:
        name: of the family.
        parameters: their keys in a spec, in order.
        make: the record of a name and of the parameters, or the name of the loss without parameters
            that is the same. Raises ValueError, in words for a spec, if there is no such loss.
    """

    name: str
    parameters: tuple[str, ...]
    make: Callable[..., ExactLoss | str]

    def name_of(self, values: Sequence[Fraction]) -> str:
        """The only name of the loss with these parameters. Raises ValueError if there is none."""
        for key, value in zip(self.parameters, values, strict=True):
            if max(abs(value.numerator), value.denominator) > _LARGEST:
                raise ValueError(f"{key} has too many digits: use at most 30")
        name = f"{self.name}({','.join(map(str, values))})"
        found = self.make(name, *values)
        return found if isinstance(found, str) else name


def parsed(name: str) -> tuple[str, list[Fraction]] | None:
    """The family and the parameters that a name states; None if it states none."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        return match[1], [rational(text) for text in match[2].split(",")]
    except (ValueError, ZeroDivisionError):
        return None
