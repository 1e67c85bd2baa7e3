"""That the labels are listed numbers: how far apart they are."""

from dataclasses import dataclass
from itertools import pairwise

from labeldp_verify.checks import demand
from labeldp_verify.claims.certificate import Certificate
from labeldp_verify.claims.claim import Claim, Evidence
from labeldp_verify.claims.declaration import Declaration
from labeldp_verify.forms import Domain, GridDomain, columns_of


@dataclass(frozen=True)
class GridClaims:
    """The least and the widest distance between two neighbouring labels, of all such columns."""

    least_step: float
    widest_step: float


class GridClaim(Claim[GridClaims]):
    """That a column of the label has listed numbers as its domain."""

    part = "grid"
    record = GridClaims
    proved = ("grid.least_step", "grid.widest_step")
    has_step = False  # the labels themselves are part of the domain, which the graph proves

    def derive(self, found: Evidence) -> GridClaims:
        """From the listed labels."""
        steps = [
            high - low
            for grid in _grids(found.integers.label)
            for low, high in pairwise(grid.values)
        ]
        return GridClaims(min(steps), max(steps))

    def state(self, found: Evidence, declared: Declaration) -> GridClaims | None:
        """Where the labels are listed numbers."""
        return self.derive(found) if _grids(found.integers.label) else None

    def require(self, certificate: Certificate, domain: Domain) -> None:
        """Demand that it is claimed of listed numbers, and of nothing else."""
        claimed = self.part in certificate.parts
        demand(claimed == bool(_grids(domain)), "the grid of the label is misstated")


CLAIM = GridClaim()


def _grids(domain: Domain) -> list[GridDomain]:
    return [part for part in columns_of(domain) if isinstance(part, GridDomain)]
