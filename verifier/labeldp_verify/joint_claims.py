"""What a certificate claims of the columns of a joint label, held against the integers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from labeldp_verify.analysis.joint import ColumnLoss, column_losses
from labeldp_verify.certificate import Certificate, JointClaims, JointColumnClaims, rational
from labeldp_verify.forms import Domain, JointDomain, Randomizer
from labeldp_verify.report import CheckFailedError, demand

SUM = "sum"


def state_joint(
    names: Sequence[str],
    losses: Sequence[ColumnLoss] | None,
    found: Sequence[Fraction] | None,
) -> JointClaims:
    """The claims of columns; with ``loss: sum`` each has a loss, and what was ``found`` of it."""
    if losses is None or found is None:
        return JointClaims([JointColumnClaims(name, None, None, None) for name in names])
    return JointClaims(
        [
            JointColumnClaims(name, own.loss, str(own.weight), float(loss))
            for name, own, loss in zip(names, losses, found, strict=True)
        ]
    )


def total_loss(losses: Sequence[ColumnLoss], found: Sequence[Fraction]) -> Fraction:
    """The weighted sum of the columns' losses."""
    weighted = (own.weight * loss for own, loss in zip(losses, found, strict=True))
    return sum(weighted, Fraction(0))


def require_joint(certificate: Certificate, domain: Domain) -> None:
    """Demand that the columns are claimed of a label that has them, and of no other."""
    claims, joint = certificate.joint, isinstance(domain, JointDomain)
    demand((claims is not None) == joint, "the columns of the label are misstated")
    demand((certificate.label.column is None) == joint, "the label's column is misstated")
    sums = certificate.utility.loss == SUM
    if claims is None or not isinstance(domain, JointDomain):
        demand(not sums, "a label of one column has no sum of losses")
        return
    demand(certificate.groups is None, "tables by group are of one label column")
    demand(sums or certificate.utility.loss == "zero_one", "a joint label has no such loss")
    demand(len(claims.columns) == len(domain.parts), "the label's columns are not as many")
    names = [column.name for column in claims.columns]
    demand(len(set(names)) == len(names), "a column of the label stands there twice")
    for column in claims.columns:
        stated = (column.loss, column.weight, column.noisy_label_loss)
        demand(
            all((part is not None) == sums for part in stated),
            "a column has a loss where the losses are summed, and only there",
        )


def check_joint(certificate: Certificate, domain: JointDomain, randomizer: Randomizer) -> Fraction:
    """Demand what is claimed of the columns' losses; returns their weighted sum."""
    assert certificate.joint is not None
    columns = certificate.joint.columns
    losses = [ColumnLoss(column.loss, rational(str(column.weight))) for column in columns]  # type: ignore[arg-type]  # checked next
    demand(all(own.weight > 0 for own in losses), "the weight of a column is not positive")
    try:
        kinds = [own.loss for own in losses]
        found = column_losses(domain, randomizer, kinds, certificate.prior.weights)
    except ValueError as error:
        raise CheckFailedError(str(error)) from None
    derived = state_joint([column.name for column in columns], losses, found)
    demand(certificate.joint == derived, "the losses of the columns are misstated")
    return total_loss(losses, found)
