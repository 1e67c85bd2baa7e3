"""A file among the other mechanisms: one list, least loss first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labeldp_verify.forms import CategoricalDomain
from labeldp_verify.printable import clipped

from labeldp_compile.inspection import Decoded
from labeldp_compile.report.comparison import Comparison

_TITLE_COLUMNS = 60
UNBIASED = 1e-9  # of the range of the labels: what rounding to whole counts can do


@dataclass(frozen=True)
class Standing:
    """The loss of one mechanism.

    Attributes:
        title: of the mechanism.
        loss: the noisy label loss.
        largest_bias: None for categories.
        unbiased: whether the largest bias is nothing but rounding.
        own: whether it is the file's.
    """

    title: str
    loss: float
    largest_bias: float | None
    unbiased: bool
    own: bool

    @property
    def biased(self) -> bool:
        """Whether it has a bias that is more than rounding; categories have none."""
        return self.largest_bias is not None and not self.unbiased


def standings(decoded: Decoded, comparison: Comparison) -> list[Standing]:
    """The file and all that it was compared with, least loss first; of equal ones the file."""
    certificate = decoded.certificate
    utility = certificate["utility"]
    own = Standing(
        title=f"{clipped(certificate['mechanism'], _TITLE_COLUMNS)} (this file)",
        loss=utility["noisy_label_loss"],
        largest_bias=utility["largest_bias"],
        unbiased=is_unbiased(decoded),
        own=True,
    )
    others = [
        Standing(point.mechanism, point.loss, point.largest_bias, point.unbiased, False)
        for point in comparison.points
    ]
    return sorted([own, *others], key=lambda standing: standing.loss)


def is_unbiased(decoded: Decoded) -> bool:
    """Whether the largest bias of the file is nothing but rounding to whole counts."""
    domain, bias = decoded.domain, largest_bias(decoded.certificate)
    if isinstance(domain, CategoricalDomain) or bias is None:
        return False
    return bias <= UNBIASED * (domain.max - domain.min)


def largest_bias(certificate: dict[str, Any]) -> float | None:
    """Of the certificate; None for categories."""
    bias: float | None = certificate["utility"]["largest_bias"]
    return bias
