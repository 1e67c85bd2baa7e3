"""The spec as pydantic models. They forbid unknown keys and convert nothing without a message."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union

from labeldp_verify.analysis import ColumnLoss, CostMatrix
from labeldp_verify.forms import MAX_COLUMNS, MAX_EDGES, CategoricalDomain, Domain, GroupColumn
from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    StrictInt,
    model_validator,
)

from labeldp_compile.ledger_url import why_refused
from labeldp_compile.mechanisms import all_mechanisms
from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.solve.losses import COSTS, FAMILY_RECORDS, LOSSES, OF_ONE_COLUMN
from labeldp_compile.spec.label import AnyLabelSpec, JointLabelSpec
from labeldp_compile.spec.loss import StatedLoss
from labeldp_compile.tabular.formats import TextForm
from labeldp_compile.yaml_model import Category, Number, Strict, TextData

MAX_LABELS_PER_USER = 10_000
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_DataName = Annotated[str, Field(pattern=_NAME, max_length=100)]
_Place = Annotated[str, Field(min_length=1, max_length=1000)]
MIN_EPSILON = Decimal("0.000001")
_MIN_PRIOR = Decimal("1e-9")  # counts with more noise do not fit int64

# ---- The public columns that choose the table of a row.

Values = Annotated[list[Category], Field(min_length=1)]
Bands = Annotated[list[Number], Field(min_length=1, max_length=MAX_EDGES)]
_VALUES = "the groups, all text or all integers; labeldp init --groups lists them"
_BANDS = "edges of bands of a number: [18, 65] is below 18, from 18 to below 65, and from 65 up"


class GroupColumnSpec(Strict):
    """One public column: listed values, or bands of a number."""

    column: str = Field(min_length=1, description="name of the column")
    values: Values | None = Field(None, description=_VALUES)
    bands: Bands | None = Field(None, description=_BANDS)

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.values is None) == (self.bands is None):
            raise ValueError("a column of groups needs either values or bands")
        return self

    def to_column(self) -> GroupColumn:
        """The column in its exact form; ``check_groups`` checks it."""
        if self.values is not None:
            return GroupColumn(self.column, tuple(self.values))
        edges = self.bands or []
        return GroupColumn(self.column, None, tuple(float(edge) + 0.0 for edge in edges))


class Assign(TextData):
    """A public file that assigns each key to a group, such as a cluster or a public prediction."""

    file: str = Field(min_length=1, description="Parquet or CSV file, relative to the spec")
    key: str = Field(min_length=1, description="the file's column of keys, one row per key")
    group: str = Field(min_length=1, description="the file's column of groups")


class GroupsSpec(Strict):
    """Public groups of rows, each with its own table and prior."""

    column: str | None = Field(None, min_length=1, description="name of the only column")
    values: Values | None = Field(None, description=_VALUES)
    bands: Bands | None = Field(None, description=_BANDS)
    assign: Assign | None = Field(
        None, description="a public file that assigns each value of the column to a group"
    )
    columns: list[GroupColumnSpec] | None = Field(
        None,
        min_length=1,
        max_length=MAX_COLUMNS,
        description="several columns: each combination is a group",
    )
    other: Literal["pooled"] = Field(
        "pooled", description="the table of all other rows; it uses the prior of all rows"
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        alone = (self.values, self.bands, self.assign)
        given = sum(part is not None for part in alone)
        if self.columns is not None:
            if self.column is not None or given:
                raise ValueError("use columns alone: put values or bands inside each column")
        elif self.column is None:
            raise ValueError("expected column: NAME, or columns: [{column: NAME, …}, …]")
        elif given != 1:
            raise ValueError("a column of groups needs exactly one of values, bands and assign")
        return self

    def names(self) -> list[str]:
        """The columns, in order."""
        if self.columns is not None:
            return [one.column for one in self.columns]
        return [str(self.column)]

    def to_columns(self) -> tuple[GroupColumn, ...]:
        """The columns in their exact form, if no file assigns groups."""
        assert self.assign is None
        if self.columns is not None:
            return tuple(one.to_column() for one in self.columns)
        one = GroupColumnSpec(column=str(self.column), values=self.values, bands=self.bands)
        return (one.to_column(),)


# ---- The rest of a spec.


class Split(Strict):
    """How ε is split between the private prior and the label."""

    prior: Number = Field(ge=0)
    label: Number = Field(gt=0)

    @model_validator(mode="after")
    def _can_be_counted(self) -> Self:
        if 0 < self.prior < _MIN_PRIOR:
            raise ValueError(
                f"prior is {self.prior}, which must be 0 or at least {_MIN_PRIOR:f}: with less, "
                "noise is larger than any table"
            )
        return self


def _split(value: Any) -> Any:
    """Refuse a number or a list, and say what to write."""
    if isinstance(value, str | dict):
        return value
    raise ValueError(
        "needs two parts, for the prior and for the label, which add up to epsilon: "
        "write split: {prior: …, label: …}, or split: auto"
    )


@dataclass(frozen=True)
class PersonUnit:
    """The unit of ε: all labels of a person, whom a public column names; at most ``labels``."""

    column: str
    labels: int


class PrivacySpec(Strict):
    """The privacy budget of one label, or of all labels of one person."""

    epsilon: Number = Field(
        ge=MIN_EPSILON,
        le=60,
        description="total ε of a label: counting it for the prior, and randomizing it; with unit: "
        "person, the total of a person with all labels",
    )
    unit: Literal["label", "person"] = Field(
        "label",
        description="the unit that spends epsilon: one label, or a person with up to "
        "labels_per_person labels; each label and the prior then get their exact part of it",
    )
    person_column: str | None = Field(
        None, min_length=1, description="with unit: person: the public column that names persons"
    )
    labels_per_person: StrictInt | None = Field(
        None,
        ge=1,
        le=MAX_LABELS_PER_USER,
        description="with unit: person: the most labels (rows) of one person; the prior counts no "
        "more of them, and randomize gives no more of them a label",
    )
    split: Annotated[Literal["auto", "paper"] | Split, BeforeValidator(_split)] = Field(
        "auto",
        description="auto: the split with the least expected loss, from n, k, ε and the mechanism "
        "(with few rows a uniform prior); paper: √(k/n) for a private prior; or the two parts",
    )
    labels_per_user: StrictInt | None = Field(
        None,
        ge=1,
        le=MAX_LABELS_PER_USER,
        description="the most labels that one user has; the certificate then states the ε of all "
        "of them together",
    )
    ledger: str | None = Field(
        None,
        min_length=1,
        description="budget ledger (labeldp ledger init): a file, relative to the spec, or "
        "postgresql://…; it records the ε of a private prior, or recalls an earlier prior; needs "
        "prior.data_set and prior.data_version",
    )

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if isinstance(self.split, Split):
            total = Fraction(self.split.prior) + Fraction(self.split.label)
            if total != Fraction(self.epsilon):
                raise ValueError(
                    f"split.prior + split.label is {float(total):g}, not epsilon = {self.epsilon}"
                )
        return self

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        about = {"person_column": self.person_column, "labels_per_person": self.labels_per_person}
        if self.labels_per_user is not None and (self.is_of_person or any(about.values())):
            raise ValueError(
                "labels_per_user and unit: person cannot both be given: with unit: person, "
                "epsilon is shared by labels_per_person labels; with labels_per_user, every label "
                "has all of epsilon. Keep one of them"
            )
        for key, value in about.items():
            if self.is_of_person and value is None:
                raise ValueError(f"unit: person needs {key}")
            if not self.is_of_person and value is not None:
                raise ValueError(f"{key} needs unit: person")
        if self.per_label < Fraction(MIN_EPSILON):
            raise ValueError(
                f"epsilon / labels_per_person is {float(self.per_label):g}, which must be at least "
                f"{MIN_EPSILON}: allow fewer labels a person, for example one aggregated row"
            )
        return self

    @property
    def is_of_person(self) -> bool:
        """Whether ε is that of a person."""
        return self.unit == "person"

    @property
    def person(self) -> PersonUnit | None:
        """The unit, if it is a person."""
        if self.person_column is None or self.labels_per_person is None:
            return None
        return PersonUnit(self.person_column, self.labels_per_person)

    @property
    def labels_of_unit(self) -> int:
        """How many labels share ε: those of a person, else one."""
        return self.labels_per_person or 1

    @property
    def per_label(self) -> Fraction:
        """ε of one label, the prior included, exactly: epsilon, or an equal part of a person's."""
        return self.of_label(Fraction(self.epsilon))

    def of_label(self, epsilon: Fraction) -> Fraction:
        """One label's part of some ε of the unit."""
        return Fraction(epsilon) / self.labels_of_unit

    @property
    def split_of_label(self) -> Literal["auto", "paper"] | tuple[Fraction, Fraction]:
        """How ε of one label is split: by a rule, or into these parts for prior and label."""
        if isinstance(self.split, str):
            return self.split
        return self.of_label(Fraction(self.split.prior)), self.of_label(Fraction(self.split.label))

    @property
    def split_in_words(self) -> str:
        """How ε is split: auto, paper or given."""
        return self.split if isinstance(self.split, str) else "given"


class PrivatePrior(TextData):
    """The label histogram of a data file, with discrete Laplace noise; it spends ε₁."""

    kind: Literal["private"]
    data: str = Field(
        min_length=1, description="Parquet or CSV file or folder of parts, relative to the spec"
    )
    rows: StrictInt | None = Field(
        None, ge=1, description="number of rows, which is public; with it, plan reads no CSV"
    )
    counts: str | None = Field(
        None,
        min_length=1,
        description="if the file is a histogram with one row per label: its column of whole counts",
    )
    data_set: _DataName | None = Field(
        None, description="name of the data set in the ledger; its budget covers all versions"
    )
    data_version: _DataName | None = Field(
        None, description="version of the data; other data need another version"
    )


class PublicPrior(TextData):
    """A public prior: weights, or the histogram of a public data file."""

    kind: Literal["public"]
    weights: list[Annotated[Number, Field(ge=0)]] | None = Field(
        None, description="one weight per label, in order; they need not sum to 1"
    )
    data: str | None = Field(
        None,
        min_length=1,
        description="public Parquet or CSV file or folder of parts, relative to the spec",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.weights is None) == (self.data is None):
            raise ValueError("a public prior needs either weights or data")
        if self.data is None and self.form != TextForm():
            raise ValueError("delimiter, encoding, decimal and multiline_cells need data")
        if self.weights is not None and not any(self.weights):
            raise ValueError("the weights must not all be zero")
        return self

    @property
    def integer_weights(self) -> list[int] | None:
        """[k] the weights as integers in the same proportion; None if there are data instead."""
        if self.weights is None:
            return None
        exact = [Fraction(weight) for weight in self.weights]
        unit = math.lcm(*(weight.denominator for weight in exact))
        integers = [int(weight * unit) for weight in exact]
        common = math.gcd(*integers)
        return [weight // common for weight in integers]


class UniformPrior(Strict):
    """Every label is equally likely."""

    kind: Literal["uniform"]


Goal = Literal["training", "labels"]
"""The use of private labels: a model that learns from many, or a person who reads each."""


class ProjectKeys(Strict):
    """The keys of ``labeldp.yaml``: rules for all specs and artifacts in its folder."""

    version: Literal[1] = Field(description="version of the format of this file")
    ledger: _Place | None = Field(
        None,
        description="budget ledger (labeldp ledger init): a file, relative to this one, or "
        "postgresql://… without a password; compile and randomize book in it",
    )
    data_set: _DataName | None = Field(None, description="name of the table in the ledger")
    data_version: _DataName | None = Field(None, description="as in the prior of a spec")
    policy: _Place | None = Field(
        None, description="policy that plan, compile and randomize demand, relative to this file"
    )

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        place = self.ledger, self.data_set, self.data_version
        if any(place) and not all(place):
            raise ValueError("ledger, data_set and data_version belong together: give all three")
        if not any((*place, self.policy)):
            raise ValueError("the file states nothing: give ledger or policy")
        if reason := why_refused(self.ledger or ""):
            raise ValueError(f"ledger: {reason}")
        return self


class Auto(Strict):
    """Chooses the mechanism by the loss and the goal."""

    kind: Literal["auto"]


if TYPE_CHECKING:
    Named = Mechanism
else:
    Named = Union[all_mechanisms()]  # noqa: UP007  # of as many as the registry holds


_FORMULAS = (
    *(LOSSES[name].formula for name in OF_ONE_COLUMN),
    *(record.formula for record in FAMILY_RECORDS.values()),
)


class Spec(Strict):
    """A label randomizer to compile."""

    version: Literal[1] = Field(description="version of the spec's format")
    name: str = Field(pattern=_NAME, max_length=100)
    goal: Goal = Field(
        "training",
        description="the use of the private labels: training (also means and shares of many): "
        "outputs are right on average; labels: each output is as close as possible to its label",
    )
    label: AnyLabelSpec
    loss: StatedLoss = Field(
        description=f"the cost of an error: {', '.join(_FORMULAS)}, or {COSTS}; sum adds the "
        "losses of the columns of a joint label"
    )
    privacy: PrivacySpec
    prior: Annotated[PrivatePrior | PublicPrior | UniformPrior, Field(discriminator="kind")]
    mechanism: Annotated[Named | Auto, Field(discriminator="kind")]
    groups: GroupsSpec | None = Field(
        None,
        description="public groups of rows, each with its own table and prior: a column with "
        "values or bands, several columns, or a file that assigns groups",
    )
    _auto_reason: str | None = PrivateAttr(None)
    _loss_file: str | None = PrivateAttr(None)

    @property
    def domain(self) -> Domain:
        """The label domain in its exact form."""
        keeps_means = not isinstance(self.mechanism, Auto) and self.mechanism.is_unbiased
        return self.label.to_domain("unbiased" if keeps_means else "nearest")

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes: categories, or numbers whose distance has no meaning."""
        return isinstance(self.domain, CategoricalDomain) or not LOSSES[self.loss].needs_numbers

    @property
    def stated_loss(self) -> str:
        """The loss as the spec states it; of costs, the file."""
        return self._loss_file or self.loss

    @property
    def column_losses(self) -> list[ColumnLoss] | None:
        """The loss of each column with ``loss: sum``, else None."""
        if self.loss != "sum" or not isinstance(self.label, JointLabelSpec):
            return None
        return [column.to_loss() for column in self.label.columns]

    @property
    def known_weights(self) -> list[int] | None:
        """[k] the weights of the prior, if the spec states them."""
        if isinstance(self.prior, PublicPrior):
            return self.prior.integer_weights
        return [1] * self.domain.size if isinstance(self.prior, UniformPrior) else None

    @property
    def named_mechanism(self) -> Mechanism:
        """The mechanism, after ``auto`` has been resolved."""
        assert not isinstance(self.mechanism, Auto)
        return self.mechanism

    @property
    def auto_reason(self) -> str | None:
        """Why ``mechanism: auto`` chose this mechanism; None if the spec names it."""
        return self._auto_reason

    def with_costs(self, costs: CostMatrix) -> Self:
        """This spec with the costs that its file states."""
        spec = self.model_copy(update={"loss": costs})
        spec._loss_file = self.loss
        return spec

    def with_mechanism(self, mechanism: Mechanism, auto_reason: str | None = None) -> Self:
        """This spec with another mechanism."""
        spec = self.model_copy(update={"mechanism": mechanism})
        spec._auto_reason = auto_reason
        return spec
