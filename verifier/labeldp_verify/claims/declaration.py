"""What a file cannot prove about itself, and the compiler declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from labeldp_verify.analysis.column_losses import ColumnLoss

if TYPE_CHECKING:
    from labeldp_verify.claims.composition import CompositionClaims


@dataclass(frozen=True)
class Declaration:
    """What the file cannot prove about itself.

    Attributes:
        name: of the spec.
        mechanism: kind, as in the spec.
        column: of the label; None where it has several.
        epsilon_label: ε₂, the budget of one randomized label (exact).
        epsilon_prior: ε₁, spent on the prior by the compile (exact).
        prior: what ε₁ was spent on, as the JSON of ``PriorClaims``; holds the ``weights`` [k].
        spec_digest: SHA-256 of the spec's bytes.
        tools: versions that took part.
        auto: why ``mechanism: auto`` chose this one, or None.
        insecure: why the artifact must not be used, or None.
        labels_per_user: how many labels one user has, if the certificate is to speak of that.
        person_column: the column of persons, if that many labels of one are the spec's unit.
        columns: of the label, where it has several.
        losses: what is summed up, of each of them, where the loss is that sum.
        sets: whether the certificate is to speak of what private labels say of classes.
        composes: whether the certificate is to state what these labels spend at δ.
        composition: what ``labels_per_user`` labels spend, found by an accountant.
    """

    name: str
    mechanism: str
    column: str | None
    epsilon_label: Fraction
    epsilon_prior: Fraction
    prior: dict[str, Any]
    spec_digest: str
    tools: dict[str, str]
    auto: str | None = None
    insecure: str | None = None
    labels_per_user: int | None = None
    person_column: str | None = None
    columns: tuple[str, ...] = ()
    losses: Sequence[ColumnLoss] | None = None
    sets: bool = False
    composes: bool = True
    composition: CompositionClaims | None = None
