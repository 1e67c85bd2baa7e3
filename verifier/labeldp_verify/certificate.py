"""The certificate: what is claimed of an artifact. Its fields, which a file proves, and its JSON.

The names are fixed (docs/artifact-format.md). Numbers are for reading; what they stand for exactly
is under ``exact``, as "p/q". JSON is read strictly: a field that the format does not know could
claim anything beside the proved ones, so there must be none.
"""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from labeldp_verify.analysis.analysis import Loss

ADJACENCY = "substitution of one label"
RATIONAL = re.compile(r"-?[0-9]{1,1000}(/[0-9]{1,1000})?")
GOAL = re.compile(r"\bgoal: (training|labels)\b")
DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?")

# A proved field is re-derived from the integers in the file (loss, bound and gap for the prior that
# the certificate states). Everything else is somebody's word: a forger with this open writer can
# restate it in a well-formed file, and only a signature protects it.
PROVED = (
    "form",
    "labels",
    "outputs",
    "label.domain",
    "privacy.epsilon_label_bound",
    "utility.noisy_label_loss",
    "utility.largest_bias",
    "utility.rms_bias",
    "utility.biases",
    "utility.output_rounding",
    "utility.loss_lower_bound",
    "utility.certified_gap",
    "optimality",
    "exact.realised_ratio",
    "exact.epsilon_label_bound",
    "exact.noisy_label_loss",
    "exact.largest_bias",
    "exact.loss_lower_bound",
    "digests.tables",
)
DECLARED = (
    "name",
    "mechanism",
    "auto",
    "label.column",
    "privacy.adjacency",
    "privacy.epsilon_label",
    "privacy.epsilon_prior",
    "privacy.epsilon_total",
    "utility.loss",
    "prior",
    "digests.spec",
    "tools",
    "insecure",
)
# Of a certificate that says what a user with several labels pays.
COMPOSITION_PROVED = (
    "composition.epsilon_pure",
    "composition.pair",
    "composition.epsilon_at_delta",
)
COMPOSITION_DECLARED = ("composition.labels_per_user", "composition.epsilon_prior")
# Of a certificate of tables by group.
GROUPS_PROVED = (
    "groups.columns.bands",
    "groups.columns.values",
    "groups.table_of_cell",
    "groups.tables.outputs",
    "groups.tables.epsilon_label_bound",
    "groups.tables.utility",
    "groups.tables.optimality",
    "groups.tables.exact",
)
GROUPS_DECLARED = (
    "groups.assignment",
    "groups.columns.name",
    "groups.tables.size",
    "groups.tables.prior",
)
# Of a certificate that states what private labels say of the classes.
SETS_PROVED = (
    "sets.blocks",
    "sets.noise",
    "sets.least_noise",
    "sets.gap",
    "sets.exact",
)
# Of a certificate of a label that has several columns.
JOINT_PROVED = ("joint.columns.noisy_label_loss",)
JOINT_DECLARED = ("joint.columns.name", "joint.columns.loss", "joint.columns.weight")
# Who says that groups are public: no file can prove it, and a group that tells the label tells it
# to everyone. Files of format 1.1 name nobody.
DECLARED_BY = "the author of the spec"
ASSIGNMENTS = {
    "1.1": "public, and fixed before any label was seen",
    "1.6": f"declared by {DECLARED_BY}, not proved: public, and fixed before any label was seen",
}


@dataclass(frozen=True)
class LabelClaims:
    """The label column, and its domain as JSON (``decode.read_domain`` reads it).

    ``column`` is None where there are several, which ``joint`` names.
    """

    column: str | None
    domain: dict[str, Any]


@dataclass(frozen=True)
class PrivacyClaims:
    """ε of one randomized label, declared and as the integers bound it, and what the prior cost."""

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
    """Dual values [k] that prove the lower bound, as decimals, and the class it speaks of."""

    over: str
    amount: str
    alpha: list[Any]
    beta: list[Any]


@dataclass(frozen=True)
class RadiusOptimality:
    """Radii that prove the lower bound in the place of dual values (``analysis/radius_bound.py``).

    ``knots`` [n] are numbers of labels, ``radii`` [n] whole multiples of ``unit``, which is "p/q".
    """

    over: str
    amount: str
    unit: str
    knots: list[Any]
    radii: list[Any]


@dataclass(frozen=True)
class PriorClaims:
    """A prior that is uniform or public: integer weights [k] in proportion to it."""

    kind: str
    weights: list[Any]


@dataclass(frozen=True)
class PrivatePriorClaims(PriorClaims):
    """A prior from labels: of how many rows, and how noise was added to their histogram."""

    rows: int
    labels: int
    mechanism: str
    l1_sensitivity: int
    scale: float
    post_processing: str
    split: str


@dataclass(frozen=True)
class ExactClaims:
    """Rational numbers "p/q" in lowest terms, behind the numbers for reading."""

    epsilon_label: str
    epsilon_label_bound: str
    epsilon_prior: str
    epsilon_total: str
    realised_ratio: str
    noisy_label_loss: str | None
    largest_bias: str | None
    loss_lower_bound: str | None


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

    @classmethod
    def of(
        cls,
        *,
        composition: bool,
        groups: bool = False,
        sets: bool = False,
        joint: bool = False,
    ) -> FieldLists:
        """Those of a certificate with these optional parts."""
        proved, declared = [*PROVED], [*DECLARED]
        if composition:
            proved, declared = [*proved, *COMPOSITION_PROVED], [*declared, *COMPOSITION_DECLARED]
        if groups:
            proved, declared = [*proved, *GROUPS_PROVED], [*declared, *GROUPS_DECLARED]
        if sets:
            proved = [*proved, *SETS_PROVED]
        if joint:
            proved, declared = [*proved, *JOINT_PROVED], [*declared, *JOINT_DECLARED]
        return cls(proved, declared)


@dataclass(frozen=True)
class EpsilonAtDelta:
    """(ε, δ) as decimals."""

    delta: str
    epsilon: str


@dataclass(frozen=True)
class CompositionClaims:
    """What one user with so many labels pays; ``pair`` names the dominating pair."""

    labels_per_user: int
    epsilon_pure: str
    epsilon_prior: str
    pair: str
    epsilon_at_delta: list[EpsilonAtDelta]


@dataclass(frozen=True)
class ExactTableClaims:
    """Rational numbers "p/q" of one group's table, as in ``ExactClaims``."""

    epsilon_label_bound: str
    realised_ratio: str
    noisy_label_loss: str | None
    largest_bias: str | None
    loss_lower_bound: str | None


@dataclass(frozen=True)
class TableClaims:
    """What is claimed of the table of one group; ``size`` is its public number of rows."""

    size: int
    outputs: int
    epsilon_label_bound: float
    utility: UtilityClaims
    optimality: Optimality | None
    prior: PriorClaims | PrivatePriorClaims
    exact: ExactTableClaims


@dataclass(frozen=True)
class GroupColumnClaims:
    """A public column: edges of bands, or listed values; the other is None."""

    name: str
    bands: list[Any] | None
    values: list[Any] | None


@dataclass(frozen=True)
class GroupsClaims:
    """The public columns, the table of each cell [C], and the tables [T + 1].

    ``table_of_cell`` is None where cell i has table i; the last table is that of all other rows.
    """

    assignment: str
    columns: list[GroupColumnClaims]
    table_of_cell: list[Any] | None
    tables: list[TableClaims]


@dataclass(frozen=True)
class ExactSetsClaims:
    """Rational numbers "p/q" in lowest terms, behind the numbers for reading."""

    noise: str
    least_noise: str


@dataclass(frozen=True)
class SetsClaims:
    """What private labels say of the classes (``analysis/sets.py``).

    ``blocks`` [m] are the classes of each output, as ``Sets.to_hex`` writes them; None where the
    outputs are the labels themselves. ``noise`` is the total variance of an unbiased estimate of
    the one-hot label from one private label, ``least_noise`` a bound on that of every ε-DP one, and
    ``gap`` how far above it the noise is, relatively.
    """

    blocks: list[Any] | None
    noise: float
    least_noise: float
    gap: float
    exact: ExactSetsClaims


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
class Certificate:
    """All claims of one artifact.

    ``insecure`` says why the artifact must not be used, ``auto`` why ``mechanism: auto`` chose the
    mechanism; ``composition`` is there only if the spec states the labels of a user, ``groups``
    only if tables differ by group, ``sets`` only of subset selection, ``joint`` only of a label of
    several columns. With groups, ε, ratio and
    bias are the largest of all tables, losses and their bounds are weighted with the sizes, and the
    prior is that of the table of other groups.
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
    optimality: Optimality | RadiusOptimality | None
    prior: PriorClaims | PrivatePriorClaims
    exact: ExactClaims
    digests: Digests
    tools: dict[str, str]
    insecure: str | None
    fields: FieldLists
    composition: CompositionClaims | None = None
    groups: GroupsClaims | None = None
    sets: SetsClaims | None = None
    joint: JointClaims | None = None

    @property
    def label_columns(self) -> list[str]:
        """The columns of the label, as they are declared."""
        if self.joint is not None:
            return [column.name for column in self.joint.columns]
        return [str(self.label.column)]

    def of_table(self, table: int) -> Certificate:
        """The certificate that a file with nothing but the table of one group would have."""
        assert self.groups is not None
        own = self.groups.tables[table]
        return dataclasses.replace(
            self,
            outputs=own.outputs,
            privacy=dataclasses.replace(self.privacy, epsilon_label_bound=own.epsilon_label_bound),
            utility=own.utility,
            optimality=own.optimality,
            prior=own.prior,
            exact=dataclasses.replace(self.exact, **_plain(own.exact)),
            groups=None,
            composition=None,
            sets=None,
        )

    @property
    def goal(self) -> str | None:
        """What ``auto`` was to choose for, "training" or "labels"; None if nothing was chosen."""
        stated = GOAL.search(self.auto or "")
        return None if stated is None else stated[1]

    @classmethod
    def from_json(cls, value: Any) -> Certificate:
        """From parsed JSON; raises ShapeError unless fields and types are exactly the format's."""
        if isinstance(value, dict):
            value = {**dict.fromkeys(_OPTIONAL), **value}
        return _read(cls, value, "certificate")

    def to_json(self) -> dict[str, Any]:
        """The JSON that ``from_json`` reads."""
        value: dict[str, Any] = _plain(self)
        for part in _OPTIONAL:
            if value[part] is None:
                del value[part]
        return value


_OPTIONAL = ("composition", "groups", "sets", "joint")  # parts that are left out, and never null


class ShapeError(ValueError):
    """The JSON is no certificate; the message names the first field that does not fit."""


def read_prior(value: Any, where: str = "prior") -> PriorClaims | PrivatePriorClaims:
    """The certificate's ``prior`` from JSON. Raises ShapeError."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "private":
        return _read(PrivatePriorClaims, value, where)
    if kind not in ("public", "uniform"):
        raise ShapeError(where)
    return _read(PriorClaims, value, where)


def rational(text: str) -> Fraction:
    """A rational number "p/q" of bounded length; ValueError for anything else."""
    if not RATIONAL.fullmatch(text):
        raise ValueError("not a rational number")
    number = Fraction(text)
    if str(number) != text:
        raise ValueError("not a rational number in lowest terms")
    return number


def decimal(text: Any) -> Decimal:
    """A decimal number of bounded length and exponent, exact; ValueError for anything else."""
    if not isinstance(text, str) or not DECIMAL.fullmatch(text):
        raise ValueError("not a decimal number")
    return Decimal(text)


def _plain(value: Any) -> Any:
    """Records as mappings, in containers of their own; ``asdict`` copies every number, too."""
    if dataclasses.is_dataclass(value):
        return {
            field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        records = bool(value) and dataclasses.is_dataclass(value[0])  # all of them are, or none
        return list(map(_plain, value)) if records else list(value)
    return value


T = TypeVar("T")


@cache
def _hints_of(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: Callable[..., T], value: Any, where: str) -> T:
    """A record of a kind, whose annotations are the JSON types of its fields."""
    hints = _hints_of(kind)
    if type(value) is not dict or set(value) != set(hints):
        raise ShapeError(where)
    return kind(
        **{name: _field(hint, value[name], f"{where}.{name}") for name, hint in hints.items()}
    )


def _field(hint: Any, value: Any, where: str) -> Any:
    """A field of an annotated type; texts of a ``Literal`` are checked where they are used."""
    if hint == PriorClaims | PrivatePriorClaims:
        return read_prior(value, where)
    if hint == Optimality | RadiusOptimality | None:
        radii = isinstance(value, dict) and "radii" in value
        hint = (RadiusOptimality if radii else Optimality) | None
    if isinstance(hint, types.UnionType):
        wanted, _ = get_args(hint)  # X | None
        return None if value is None else _field(wanted, value, where)
    if dataclasses.is_dataclass(hint):
        return _read(hint, value, where)  # type: ignore[arg-type]  # a class, not an instance
    plain: Any = get_origin(hint) or hint
    if type(value) is not (str if plain is Literal else plain):
        raise ShapeError(where)
    if hint == dict[str, str]:
        texts: Any = value
        return {key: _field(str, text, f"{where}.{key}") for key, text in texts.items()}
    if plain is list and dataclasses.is_dataclass(record := get_args(hint)[0]):
        return [_read(record, row, where) for row in value]  # type: ignore[arg-type]
    return value
