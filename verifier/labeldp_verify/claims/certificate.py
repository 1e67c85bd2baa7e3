"""The certificate: what is claimed of an artifact, and its JSON.

The names are fixed (docs/artifact-format.md). Numbers are for reading; what they stand for exactly
is under ``exact``, as "p/q". In memory a certificate always has a list of tables. In JSON a file
with one table states it flat; a file with several states them under ``groups`` and, flat, what
holds of all together. Both are written and read here, and nowhere else.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from labeldp_verify.analysis.analysis import Loss
from labeldp_verify.claims.record import ShapeError, plain, read_field, read_record
from labeldp_verify.claims.registry import all_claims

if TYPE_CHECKING:
    from labeldp_verify.claims.composition import CompositionClaims
    from labeldp_verify.claims.groups import GroupsClaims
    from labeldp_verify.claims.joint import JointClaims
    from labeldp_verify.claims.person import PersonClaims
    from labeldp_verify.claims.sets import SetsClaims

ADJACENCY = "substitution of one label"
GOAL = re.compile(r"\bgoal: (training|labels)\b")


@dataclass(frozen=True)
class LabelClaims:
    """The label column, and its domain as JSON (``decode.read_domain`` reads it).

    ``column`` is None where there are several, which ``joint`` names.
    """

    column: str | None
    domain: dict[str, Any]


@dataclass(frozen=True)
class PrivacyClaims:
    """ε of one randomized label, declared and proved, and the ε that the prior spent."""

    epsilon_label: float
    epsilon_label_bound: float
    epsilon_prior: float
    epsilon_total: float
    adjacency: str = ADJACENCY


@dataclass(frozen=True)
class UtilityClaims:
    """Loss and bias under the stated prior; biases are None for categories."""

    loss: Loss
    noisy_label_loss: float
    largest_bias: float | None
    rms_bias: float | None
    biases: list[Any] | None
    output_rounding: float
    loss_lower_bound: float | None
    certified_gap: float | None


@dataclass(frozen=True)
class Optimality:
    """Dual values [k] that prove the lower bound, as decimals, and the class of the bound."""

    over: str
    amount: str
    alpha: list[Any]
    beta: list[Any]


@dataclass(frozen=True)
class RadiusOptimality:
    """Radii that prove the lower bound instead of dual values (``analysis/radii.py``).

    ``knots`` [n] are numbers of labels, ``radii`` [n] whole multiples of ``unit``, which is "p/q".
    """

    over: str
    amount: str
    unit: str
    knots: list[Any]
    radii: list[Any]


Witness = Optimality | RadiusOptimality
"""What proves a lower bound on the loss."""


@dataclass(frozen=True)
class PriorClaims:
    """A prior that is uniform or public: integer weights [k] in proportion to it."""

    kind: Literal["uniform", "public"]
    weights: list[Any]


@dataclass(frozen=True)
class PrivatePriorClaims:
    """A prior from labels: of how many rows, and how noise was added to their histogram."""

    kind: Literal["private"]
    weights: list[Any]
    rows: int
    labels: int
    mechanism: str
    l1_sensitivity: int
    scale: float
    post_processing: str
    split: str


Prior = PriorClaims | PrivatePriorClaims


@dataclass(frozen=True)
class ExactTableClaims:
    """The exact values of the numbers for reading, as rational numbers "p/q" in lowest terms."""

    epsilon_label_bound: str
    realised_ratio: str
    noisy_label_loss: str | None
    largest_bias: str | None
    loss_lower_bound: str | None


@dataclass(frozen=True)
class ExactClaims(ExactTableClaims):
    """The same of all tables, and the ε that are declared."""

    epsilon_label: str
    epsilon_prior: str
    epsilon_total: str


@dataclass(frozen=True)
class Digests:
    """SHA-256 (hex) of the spec's bytes, and of the integers (``canonical.tables_digest``)."""

    spec: str
    tables: str


@dataclass(frozen=True)
class FieldLists:
    """Names of the fields that a file proves, and of those that it only declares."""

    proved: list[Any]
    declared: list[Any]


@dataclass(frozen=True)
class TableClaims:
    """What is claimed of one table.

    ``size`` is the public number of rows of its group; 1 where all rows have the only table.
    """

    size: int
    outputs: int
    epsilon_label_bound: float
    utility: UtilityClaims
    optimality: Witness | None
    prior: Prior
    exact: ExactTableClaims


@dataclass(frozen=True)
class WholeFile:
    """What is claimed of the file, and of all tables together.

    ``insecure`` says why the artifact must not be used, ``auto`` why ``mechanism: auto`` chose the
    mechanism. Where groups have tables of their own, ε, ratio and bias are the largest of all
    tables, losses and their bounds are weighted with the sizes, and the prior is that of the table
    of other groups.
    """

    format_version: str
    name: str
    mechanism: str
    auto: str | None
    form: str
    labels: int
    outputs: int
    label: LabelClaims
    privacy: PrivacyClaims
    utility: UtilityClaims
    prior: Prior
    exact: ExactClaims
    digests: Digests
    tools: dict[str, str]
    insecure: str | None
    fields: FieldLists


@dataclass(frozen=True)
class Certificate(WholeFile):
    """All claims of one artifact.

    ``tables`` are in the order of the graph; ``parts`` hold all other claims, by the names of
    ``claims/registry.py``.
    """

    tables: list[TableClaims] = field(default_factory=list)
    parts: dict[str, Any] = field(default_factory=dict)

    @property
    def composition(self) -> CompositionClaims | None:
        """What one user with several labels spends, if the spec asked for it."""
        return self.parts.get("composition")

    @property
    def person(self) -> PersonClaims | None:
        """What a person with several labels spends, if that is the spec's unit."""
        return self.parts.get("person")

    @property
    def groups(self) -> GroupsClaims | None:
        """The public columns that decide a row's table, if there are any."""
        return self.parts.get("groups")

    @property
    def sets(self) -> SetsClaims | None:
        """What private labels reveal about the classes; only for subset selection."""
        return self.parts.get("sets")

    @property
    def joint(self) -> JointClaims | None:
        """The columns of the label, where there are several."""
        return self.parts.get("joint")

    @property
    def optimality(self) -> Witness | None:
        """What proves the lower bound of the only table; None where groups have their own."""
        return None if self.groups is not None else self.tables[0].optimality

    @property
    def label_columns(self) -> list[str]:
        """The columns of the label, as they are declared."""
        if self.joint is not None:
            return [column.name for column in self.joint.columns]
        return [str(self.label.column)]

    def of_table(self, table: int) -> Certificate:
        """The certificate that a file with nothing but one of the tables would have."""
        if self.groups is None:
            return self
        own = self.tables[table]
        return dataclasses.replace(
            self,
            outputs=own.outputs,
            privacy=dataclasses.replace(self.privacy, epsilon_label_bound=own.epsilon_label_bound),
            utility=own.utility,
            prior=own.prior,
            exact=dataclasses.replace(self.exact, **plain(own.exact)),
            tables=[own],
            parts={name: part for name, part in self.parts.items() if name != "groups"},
        )

    @property
    def goal(self) -> str | None:
        """What ``auto`` was to choose for, "training" or "labels"; None if nothing was chosen."""
        stated = GOAL.search(self.auto or "")
        return None if stated is None else stated[1]

    @classmethod
    def from_json(cls, value: Any) -> Certificate:
        """From parsed JSON; raises ShapeError unless fields and types are exactly the format's."""
        if type(value) is not dict or "optimality" not in value:
            raise ShapeError("certificate")
        value, names = dict(value), [claim.part for claim in all_claims()]
        stated = {name: value.pop(name) for name in names if name in value}
        optimality = value.pop("optimality")
        listed = None
        if type(groups := stated.get("groups")) is dict:
            stated["groups"] = dict(groups)
            listed = stated["groups"].pop("tables", None)
        whole = read_record(WholeFile, value, "certificate")
        witness = read_field(Witness | None, optimality, "certificate.optimality")
        parts = {
            claim.part: read_record(claim.record, stated[claim.part], f"certificate.{claim.part}")
            for claim in all_claims()
            if claim.part in stated
        }
        if "groups" not in parts:
            tables = [_only_table(whole, witness)]
        else:
            if witness is not None or not listed:
                raise ShapeError("certificate.groups.tables" if witness is None else "optimality")
            tables = read_field(list[TableClaims], listed, "certificate.groups.tables")
        return cls(**vars(whole), tables=tables, parts=parts)

    def to_json(self) -> dict[str, Any]:
        """The JSON that ``from_json`` reads."""
        value: dict[str, Any] = plain(self)
        tables, parts = value.pop("tables"), value.pop("parts")
        value["optimality"] = None if "groups" in parts else tables[0]["optimality"]
        if "groups" in parts:
            parts["groups"]["tables"] = tables
        return {**value, **parts}


def _only_table(whole: WholeFile, witness: Witness | None) -> TableClaims:
    """The claims of the only table, which are those of the whole file."""
    exact = {
        own.name: getattr(whole.exact, own.name) for own in dataclasses.fields(ExactTableClaims)
    }
    return TableClaims(
        size=1,
        outputs=whole.outputs,
        epsilon_label_bound=whole.privacy.epsilon_label_bound,
        utility=whole.utility,
        optimality=witness,
        prior=whole.prior,
        exact=ExactTableClaims(**exact),
    )
