"""Tables by public group: the columns that decide a row's table, and who says they are public."""

from dataclasses import dataclass
from typing import Any

from labeldp_verify.checks import agree, demand
from labeldp_verify.claims.certificate import Certificate
from labeldp_verify.claims.claim import Claim, Evidence
from labeldp_verify.forms import Domain

MAX_SIZE = 2**63
# Who says that groups are public: no file can prove it, and a group that tells the label tells it
# to everyone.
DECLARED_BY = "the author of the spec"
ASSIGNMENT = f"declared by {DECLARED_BY}, not proved: public, and fixed before any label was seen"


@dataclass(frozen=True)
class GroupColumnClaims:
    """A public column: edges of bands, or listed values; the other is None."""

    name: str
    bands: list[Any] | None
    values: list[Any] | None


@dataclass(frozen=True)
class GroupsClaims:
    """The public columns, and the table of each cell [C]; None where cell i has table i.

    In JSON the tables [T + 1] are here, too; the last one is that of all other rows.
    """

    assignment: str
    columns: list[GroupColumnClaims]
    table_of_cell: list[Any] | None


class GroupsClaim(Claim[GroupsClaims]):
    """That rows have tables by these columns."""

    part = "groups"
    record = GroupsClaims
    proved = (
        "groups.columns.bands",
        "groups.columns.values",
        "groups.table_of_cell",
        "groups.tables.outputs",
        "groups.tables.epsilon_label_bound",
        "groups.tables.utility",
        "groups.tables.optimality",
        "groups.tables.exact",
    )
    declared = (
        "groups.assignment",
        "groups.columns.name",
        "groups.tables.size",
        "groups.tables.prior",
    )
    has_step = False  # the columns are read with the tables

    def derive(self, found: Evidence) -> GroupsClaims | None:
        """The map of the integers."""
        groups = found.integers.groups
        if not groups.columns:
            return None
        columns = [GroupColumnClaims(one.name, **one.to_json()) for one in groups.columns]
        return GroupsClaims(ASSIGNMENT, columns, groups.to_json()["table_of_cell"])

    def check(self, found: Evidence) -> str:
        """The rebuilt graph proves the map, and each table what is claimed of it."""
        return "rows have tables by the columns of the groups"

    def require(self, certificate: Certificate, domain: Domain) -> None:
        """Check that groups are stated as the format requires, and are not the label."""
        stated = certificate.groups
        if stated is None:
            return
        agree(certificate, "groups.assignment", ASSIGNMENT)
        names = {column.name for column in stated.columns}
        demand(
            not names & set(certificate.label_columns),
            "a group is the label itself, so its table would reveal the label",
        )
        demand(certificate.sets is None, "a file with groups cannot state sets")
        sizes = [table.size for table in certificate.tables]
        demand(all(0 <= size < MAX_SIZE for size in sizes), "a group's size is not a count of rows")
        demand(sum(sizes) > 0, "no group has rows, so losses cannot be weighted")


CLAIM = GroupsClaim()
