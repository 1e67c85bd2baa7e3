"""The certificate: what is claimed of an artifact, and its JSON.

The names are fixed (docs/artifact-format.md). Numbers are for reading; what they stand for exactly
is under ``exact``, as "p/q". In memory a certificate always has a list of tables. In JSON a file
with one table states it flat; a file with several states them under ``groups`` and, flat, what
holds of all together. Both are written and read here, and nowhere else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from labeldp_verify.analysis.any_form import ColumnLoss
from labeldp_verify.analysis.losses import Loss
from labeldp_verify.strict import plain

ADJACENCY = "substitution of one label"
Goal = Literal["training", "labels"]
"""The goals that ``mechanism: auto`` chooses for."""


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
    """Radii that prove the lower bound instead of dual values (``analysis/lower_bound.py``).

    ``knots`` [n] are numbers of labels, ``radii`` [n] whole multiples of ``unit``, which is "p/q".
    """

    over: str
    amount: str
    unit: str
    knots: list[Any]
    radii: list[Any]


Witness = Optimality | RadiusOptimality
"""The proof of a lower bound on the loss."""


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
    """The exact numbers of all tables together, and the ε that are declared."""

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
class GridClaims:
    """The least and the widest distance between two neighbouring labels, of all such columns."""

    least_step: float
    widest_step: float


@dataclass(frozen=True)
class NullsClaims:
    """The label that nulls become, and whether the pattern of nulls is protected.

    ``become`` has a label for each column of the label, or null where nulls stay null. ``pattern``
    is "protected" if a null is randomized like any other label; "public" says that nulls stay null,
    because anyone may know which rows have no label.
    """

    become: list[Any]
    pattern: Literal["protected", "public"]


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


@dataclass(frozen=True)
class EpsilonAtDelta:
    """(ε, δ) as decimals."""

    delta: str
    epsilon: str


@dataclass(frozen=True)
class CompositionClaims:
    """The ε of one user with ``labels_per_user`` labels; ``pair`` names the dominating pair."""

    labels_per_user: int
    epsilon_pure: str
    epsilon_prior: str
    pair: str
    epsilon_at_delta: list[EpsilonAtDelta]


@dataclass(frozen=True)
class PersonClaims:
    """The column of persons, L, and L times what one label spends; ε as "p/q".

    ``epsilon_label_bound`` is L times the smaller of two numbers that the integers prove: ε₂ as it
    is declared, and the bound that is rounded up.

    ``l1_sensitivity`` is what all labels of a person together can change in a private histogram
    of the prior: 2·L, across all groups; 0 if nothing was counted privately.
    """

    column: str
    labels_per_person: int
    l1_sensitivity: int
    epsilon_label: str
    epsilon_label_bound: str
    epsilon_prior: str
    epsilon_total: str


@dataclass(frozen=True)
class ExactSetsClaims:
    """The exact values of the numbers for reading, as rational numbers "p/q" in lowest terms."""

    noise: str
    least_noise: str


@dataclass(frozen=True)
class SetsClaims:
    """The information of private labels about the classes (``analysis/share_noise.py``).

    ``blocks`` [m] are the classes of each output, as ``ClassSets.to_hex`` writes them; None where
    the outputs are the labels themselves. ``noise`` is the total variance of an unbiased estimate
    of the one-hot label from one private label, ``least_noise`` a bound on that of every ε-DP one,
    and ``gap`` how far above it the noise is, relatively.
    """

    blocks: list[Any] | None
    noise: float
    least_noise: float
    gap: float
    exact: ExactSetsClaims


@dataclass(frozen=True)
class PortableClaims:
    """How many limbs hold a word (``graph/inputs.py``)."""

    limbs_per_word: int


@dataclass(frozen=True)
class TableClaims:
    """The claims about one table.

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
    """The claims about the file, and about all tables together.

    ``insecure`` says why the artifact must not be used, ``auto`` why ``mechanism: auto`` chose the
    mechanism, and ``goal`` for what; both are None where the spec names the mechanism. Where groups
    have tables of their own, ε, ratio and bias are the largest of all tables, losses and their
    bounds are weighted with the sizes, and the prior is that of the table of other groups.
    """

    format_version: str
    name: str
    mechanism: str
    auto: str | None
    goal: Goal | None
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
    ``claims/claim.py``.
    """

    tables: list[TableClaims] = field(default_factory=list)
    parts: dict[str, Any] = field(default_factory=dict)

    @property
    def composition(self) -> CompositionClaims | None:
        """The ε of one user with several labels, if the spec asked for it."""
        return self.parts.get("composition")

    @property
    def person(self) -> PersonClaims | None:
        """The ε of a person with several labels, if that is the spec's unit."""
        return self.parts.get("person")

    @property
    def groups(self) -> GroupsClaims | None:
        """The public columns that decide a row's table, if there are any."""
        return self.parts.get("groups")

    @property
    def sets(self) -> SetsClaims | None:
        """The information of private labels about the classes; only for subset selection."""
        return self.parts.get("sets")

    @property
    def joint(self) -> JointClaims | None:
        """The columns of the label, where there are several."""
        return self.parts.get("joint")

    @property
    def optimality(self) -> Witness | None:
        """The proof of the lower bound of the only table; None where groups have their own."""
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

    def to_json(self) -> dict[str, Any]:
        """The JSON that ``parse_certificate`` reads."""
        value: dict[str, Any] = plain(self)
        tables, parts = value.pop("tables"), value.pop("parts")
        value["optimality"] = None if "groups" in parts else tables[0]["optimality"]
        if "groups" in parts:
            parts["groups"]["tables"] = tables
        return {**value, **parts}


# ---- What a file cannot prove about itself, and the compiler declares.


@dataclass(frozen=True)
class Declaration:
    """Facts that the file cannot prove about itself.

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
        goal: for what it chose, or None.
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
    goal: Goal | None = None
    insecure: str | None = None
    labels_per_user: int | None = None
    person_column: str | None = None
    columns: tuple[str, ...] = ()
    losses: Sequence[ColumnLoss] | None = None
    sets: bool = False
    composes: bool = True
    composition: CompositionClaims | None = None
