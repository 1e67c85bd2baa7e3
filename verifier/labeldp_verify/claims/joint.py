"""A label of several columns: their names, and with ``loss: sum`` the loss of each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from labeldp_verify.analysis.column_losses import ColumnLoss
from labeldp_verify.checks import demand
from labeldp_verify.claims.certificate import Certificate
from labeldp_verify.claims.claim import Claim, Evidence
from labeldp_verify.claims.declaration import Declaration
from labeldp_verify.claims.record import rational
from labeldp_verify.claims.use import together
from labeldp_verify.forms import Domain, JointDomain

SUM = "sum"


@dataclass(frozen=True)
class JointColumnClaims:
    """One column of a joint label.

    With ``loss: sum`` it has a loss, a weight (p/q) and the loss of its private
    labels; otherwise all three are None.
    """

    name: str
    loss: str | None
    weight: str | None
    noisy_label_loss: float | None


@dataclass(frozen=True)
class JointClaims:
    """The columns of a joint label, in the order of the parts of its domain."""

    columns: list[JointColumnClaims]


class JointClaim(Claim[JointClaims]):
    """That the label has these columns."""

    part = "joint"
    record = JointClaims
    proved = ("joint.columns.noisy_label_loss",)
    declared = ("joint.columns.name", "joint.columns.loss", "joint.columns.weight")
    has_step = False  # the losses of the columns are checked with their sum

    def state(self, found: Evidence, declared: Declaration) -> JointClaims | None:
        """The columns of the label; with ``loss: sum`` what each is off by."""
        if not isinstance(found.integers.label, JointDomain):
            return None
        columns = [JointColumnClaims(name, None, None, None) for name in declared.columns]
        if declared.losses is not None:
            columns = [
                replace(column, loss=own.loss, weight=str(own.weight))
                for column, own in zip(columns, declared.losses, strict=True)
            ]
        return _with_losses(columns, found)

    def require(self, certificate: Certificate, domain: Domain) -> None:
        """Demand that the columns are claimed of a label that has them, and of no other."""
        claims, joint = certificate.joint, isinstance(domain, JointDomain)
        demand((claims is not None) == joint, "the columns of the label are misstated")
        demand((certificate.label.column is None) == joint, "the label's column is misstated")
        sums = certificate.utility.loss == SUM
        if claims is None or not isinstance(domain, JointDomain):
            demand(not sums, "a label of one column has no sum of losses")
            return
        demand(sums or certificate.utility.loss == "zero_one", "a joint label has no such loss")
        demand(len(claims.columns) == len(domain.parts), "the number of label columns is wrong")
        names = [column.name for column in claims.columns]
        demand(len(set(names)) == len(names), "a column of the label occurs twice")
        for column in claims.columns:
            stated = (column.loss, column.weight, column.noisy_label_loss)
            demand(
                all((part is not None) == sums for part in stated),
                "a column has a loss where the losses are summed, and only there",
            )

    def check(self, found: Evidence) -> str:
        """Demand what is claimed of the columns' losses."""
        claims = found.certificate.joint
        assert claims is not None
        derived = _with_losses(claims.columns, found)
        demand(claims == derived, "the losses of the columns are misstated")
        return "the losses of the columns agree with the integers"


CLAIM = JointClaim()


def _with_losses(columns: Sequence[JointColumnClaims], found: Evidence) -> JointClaims:
    """The losses of these columns by the integers; none unless losses are summed."""
    sizes = [table.size for table in found.certificate.tables]
    losses = together(sizes, found.uses).columns
    if losses is None:
        return JointClaims(list(columns))
    pairs = zip(columns, losses, strict=True)
    return JointClaims([replace(one, noisy_label_loss=float(loss)) for one, loss in pairs])


def stated_losses(certificate: Certificate) -> list[ColumnLoss] | None:
    """What is summed up of each column; None if nothing is. Raises CheckFailedError."""
    if certificate.joint is None or certificate.utility.loss != SUM:
        return None
    columns = certificate.joint.columns
    losses = [ColumnLoss(column.loss, rational(str(column.weight))) for column in columns]  # type: ignore[arg-type]  # checked by column_losses
    demand(all(own.weight > 0 for own in losses), "the weight of a column is not positive")
    return losses
