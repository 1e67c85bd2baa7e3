"""Claims about the label: listed numbers, nulls, several columns, sets of classes, and groups."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from labeldp_verify.analysis.any_form import ColumnLoss
from labeldp_verify.analysis.losses import LOSSES
from labeldp_verify.analysis.share_noise import least_share_noise, share_noise
from labeldp_verify.claims.claim import Claim, Evidence
from labeldp_verify.claims.records import (
    Certificate,
    Declaration,
    ExactSetsClaims,
    GridClaims,
    GroupColumnClaims,
    GroupsClaims,
    JointClaims,
    JointColumnClaims,
    NullsClaims,
    SetsClaims,
)
from labeldp_verify.claims.utility import OVER, near_least, together
from labeldp_verify.errors import CheckFailedError, agree, demand
from labeldp_verify.forms import (
    Domain,
    GridDomain,
    JointDomain,
    Randomizer,
    RealDomain,
    columns_of,
    missing_label,
    output_values,
    sets_of,
)
from labeldp_verify.forms.exact_numbers import exp_bounds
from labeldp_verify.graph import canonical_json
from labeldp_verify.printable import one_line
from labeldp_verify.strict import rational

# ---- That the labels are listed numbers: how far apart they are.


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


def _grids(domain: Domain) -> list[GridDomain]:
    return [part for part in columns_of(domain) if isinstance(part, GridDomain)]


# ---- What becomes of a null: a label of its own rule, or a null that is public.


NOT_PROTECTED = "which rows have no label is public, and not protected"


class NullsClaim(Claim[NullsClaims]):
    """That nulls follow a rule of their own."""

    part = "nulls"
    record = NullsClaims
    proved = ("nulls.become",)
    declared = ("nulls.pattern",)

    def derive(self, found: Evidence) -> NullsClaims:
        """From the rules of the domain."""
        return _stated(found.integers.label)

    def state(self, found: Evidence, declared: Declaration) -> NullsClaims | None:
        """Where a column has such a rule."""
        return self.derive(found) if _has_rule(found.integers.label) else None

    def require(self, certificate: Certificate, domain: Domain) -> None:
        """Demand that it is claimed where there is such a rule, and nowhere else."""
        claims = certificate.parts.get(self.part)
        demand((claims is not None) == _has_rule(domain), "the rule for nulls is misstated")
        if claims is not None:
            own = _stated(domain).pattern
            demand(claims.pattern == own, "whether nulls are protected is misstated")

    def check(self, found: Evidence) -> str:
        """Say what nulls become."""
        super().check(found)
        return nulls_in_words(found.integers.label)


def _has_rule(domain: Domain) -> bool:
    return any(part.null is not None or part.keeps_nulls for part in columns_of(domain))


def _stated(domain: Domain) -> NullsClaims:
    parts = columns_of(domain)
    become = [None if part.keeps_nulls else missing_label(part) for part in parts]
    return NullsClaims(become, "public" if any(part.keeps_nulls for part in parts) else "protected")


def nulls_in_words(domain: Domain) -> str:
    """The rule for nulls, in one sentence that quotes labels in one line."""
    parts = columns_of(domain)
    if any(part.keeps_nulls for part in parts):
        return f"nulls stay null: {NOT_PROTECTED}"
    shown = one_line(" and ".join(_shown(missing_label(part)) for part in parts))
    if any(_takes_lowest(part) for part in parts):
        return (
            f"nulls become {shown}, the lowest label, because the spec has no rule for nulls; "
            "choose another with nulls: {default: LABEL}"
        )
    return f"nulls become {shown}, and are randomized like any other label"


def nulls_in_short(part: Domain) -> str:
    """The rule for nulls of one column, in a few words."""
    if part.keeps_nulls:
        return "nulls stay null, which is public"
    became = f"nulls become {one_line(_shown(missing_label(part)))}"
    return (
        f"{became}, the lowest label (there is no rule for nulls)"
        if _takes_lowest(part)
        else became
    )


def nulls_counted_as(domain: Domain) -> str:
    """The labels that nulls were replaced by before private labels were drawn, in a few words."""
    parts = columns_of(domain)
    if any(part.keeps_nulls for part in parts):
        return "rows without a label are left out"
    shown = one_line(" and ".join(_shown(missing_label(part)) for part in parts))
    return f"nulls were counted as {shown}{', the lowest label' * any(map(_takes_lowest, parts))}"


def _takes_lowest(part: Domain) -> bool:
    return part.null is None and part.default is None and not part.keeps_nulls


def _shown(label: Any) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)


# ---- A label of several columns: their names, and with ``loss: sum`` the loss of each.


SUM = "sum"


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
        demand(sums or LOSSES[certificate.utility.loss].equality, "a joint label has no such loss")
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


def _with_losses(columns: Sequence[JointColumnClaims], found: Evidence) -> JointClaims:
    """The losses of these columns by the integers; none unless losses are summed."""
    sizes = [table.size for table in found.certificate.tables]
    losses = together(sizes, found.uses).columns
    if losses is None:
        return JointClaims(list(columns))
    pairs = zip(columns, losses, strict=True)
    return JointClaims([replace(one, noisy_label_loss=float(loss)) for one, loss in pairs])


def stated_losses(certificate: Certificate) -> list[ColumnLoss] | None:
    """The losses of the columns; None if they are not summed. Raises CheckFailedError."""
    if certificate.joint is None or certificate.utility.loss != SUM:
        return None
    columns = certificate.joint.columns
    losses = [ColumnLoss(str(column.loss), rational(str(column.weight))) for column in columns]
    demand(all(own.weight > 0 for own in losses), "the weight of a column is not positive")
    return losses


# ---- Tables by public group: the columns that decide a row's table, and who says they are public.


MAX_SIZE = 2**63
# Who says that groups are public: no file can prove it, and a group that tells the label tells it
# to everyone.
DECLARED_BY = "the author of the spec"
ASSIGNMENT = f"declared by {DECLARED_BY}, not proved: public, and fixed before any label was seen"


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


# ---- What private labels reveal of classes: sets of them, or labels that are all treated alike.


class SetsClaim(Claim[SetsClaims]):
    """That private labels reveal this about the classes."""

    part = "sets"
    record = SetsClaims
    proved = ("sets.blocks", "sets.noise", "sets.least_noise", "sets.gap", "sets.exact")

    def derive(self, found: Evidence) -> SetsClaims:
        """The sets of the only table, and their noise; ValueError if classes are not alike."""
        (randomizer,) = found.integers.tables
        noise = share_noise(randomizer)
        ratio = exp_bounds(rational(found.certificate.exact.epsilon_label))[1]
        least = least_share_noise(found.integers.label.size, ratio)
        if noise < least:
            raise ValueError("the noise of shares is below the proved minimum")
        sets = sets_of(randomizer)
        return SetsClaims(
            blocks=None if sets is None else sets.to_hex(),
            noise=float(noise),
            least_noise=float(least),
            gap=float(noise / least - 1),
            exact=ExactSetsClaims(str(noise), str(least)),
        )

    def state(self, found: Evidence, declared: Declaration) -> SetsClaims | None:
        """Where the mechanism asks for it."""
        return self.derive(found) if declared.sets else None

    def check(self, found: Evidence) -> str:
        """Demand that exactly this is claimed."""
        domain, (randomizer,) = found.integers.label, found.integers.tables
        demand(
            LOSSES[found.certificate.utility.loss].equality and not isinstance(domain, RealDomain),
            "sets need the zero_one loss",
        )
        if sets_of(randomizer) is None:  # the labels themselves, in their order
            values = getattr(randomizer, "values", ())
            demand(
                canonical_json(list(values)) == canonical_json(output_values(domain)),
                "the outputs are neither sets nor the labels",
            )
        try:
            super().check(found)
        except ValueError as error:
            raise CheckFailedError(str(error)) from None
        assert found.certificate.sets is not None
        gap = gap_in_words(found.certificate.sets.gap)
        return f"{_in_words(domain, randomizer)}; the noise of estimated shares is {gap}"


def gap_in_words(gap: float) -> str:
    """How near to the least possible noise it is, in half a sentence."""
    return f"{near_least(gap, OVER['any'])}, for uniform classes"


def _in_words(domain: Domain, randomizer: Randomizer) -> str:
    sets = sets_of(randomizer)
    if sets is None:
        return "the outputs are the labels, all treated alike"
    least, most = min(sets.sizes), max(sets.sizes)
    size = f"{most}" if least == most else f"{least} to {most}"
    return (
        f"each of the {len(sets.blocks):,} outputs is a set of {size} of {domain.size:,} labels; "
        "every label is in the same number of sets, and so is every pair of labels"
    )
