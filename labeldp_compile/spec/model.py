"""The spec as pydantic models. Every model forbids unknown keys; nothing is converted silently."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union

from labeldp_verify.analysis import ColumnLoss, Loss
from labeldp_verify.forms import CategoricalDomain, Domain
from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    StrictInt,
    ValidationInfo,
    model_validator,
)

from labeldp_compile.mechanisms import all_mechanisms
from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.spec.fields import TextData
from labeldp_compile.spec.groups import GroupsSpec
from labeldp_compile.spec.label import AnyLabelSpec, JointLabelSpec
from labeldp_compile.text_form import TextForm
from labeldp_compile.yaml_model import Number, Strict

MAX_LABELS_PER_USER = 10_000
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
MIN_EPSILON = Decimal("0.000001")


class Split(Strict):
    """How ε is divided between the private prior and the label."""

    prior: Number = Field(ge=0)
    label: Number = Field(gt=0)


def _split(value: Any, info: ValidationInfo) -> Any:
    """A sentence for somebody who wrote one number, or a list of them."""
    if isinstance(value, str | dict):
        return value
    example, epsilon = "{prior: …, label: …}", info.data.get("epsilon")
    one = value[0] if isinstance(value, list) and len(value) == 1 else value
    is_number = isinstance(one, int | Decimal) and Decimal(one).is_finite()
    if is_number and epsilon is not None and 0 < one < epsilon and one is not True:
        example = f"{{prior: {one}, label: {epsilon - one}}}"
    raise ValueError(
        "has two parts, that of the prior and that of the label, which add up to epsilon: "
        f"write split: {example}, or split: auto"
    )


class PrivacySpec(Strict):
    """The privacy budget of one label."""

    epsilon: Number = Field(
        ge=MIN_EPSILON, le=60, description="total ε for a label that is in both parts"
    )
    split: Annotated[Literal["auto", "paper"] | Split, BeforeValidator(_split)] = Field(
        "auto",
        description="auto: the least expected loss, found from n, k, ε and the mechanism, which "
        "for few rows is a uniform prior; paper: √(k/n) for a private prior; or the two parts",
    )
    labels_per_user: StrictInt | None = Field(
        None,
        ge=1,
        le=MAX_LABELS_PER_USER,
        description="the most labels that one user has: the certificate then states what the user "
        "pays for all of them",
    )
    ledger: str | None = Field(
        None,
        min_length=1,
        description="budget ledger (labeldp ledger init): a file, relative to the spec, or "
        "postgresql://…; a private prior is paid from it, or recalled; needs prior.data_set and "
        "prior.data_version",
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

    @property
    def split_in_words(self) -> str:
        """How ε is divided: auto, paper or given."""
        return self.split if isinstance(self.split, str) else "given"


class PrivatePrior(TextData):
    """The label histogram of a data file, with discrete Laplace noise that costs ε₁."""

    kind: Literal["private"]
    data: str = Field(
        min_length=1, description="Parquet or CSV file or folder of parts, relative to the spec"
    )
    rows: StrictInt | None = Field(
        None, ge=1, description="number of rows, which is public; lets plan read no CSV"
    )
    counts: str | None = Field(
        None,
        min_length=1,
        description="the file is a histogram, counted elsewhere: its column of whole counts, one "
        "row a label",
    )
    data_set: str | None = Field(
        None,
        pattern=_NAME,
        max_length=100,
        description="name of the data set in the ledger, whose budget is for all of its versions",
    )
    data_version: str | None = Field(
        None,
        pattern=_NAME,
        max_length=100,
        description="what these data are called: other data need another version",
    )


class PublicPrior(TextData):
    """A prior that is no secret: weights, or the histogram of a public data file."""

    kind: Literal["public"]
    weights: list[Annotated[Number, Field(ge=0)]] | None = Field(
        None, description="one weight a label, in order; need not sum to one"
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
            raise ValueError("delimiter and encoding are those of data")
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
"""What private labels are for: a model that learns from many, or somebody who reads each."""


class Auto(Strict):
    """Chooses the mechanism by the loss and the goal."""

    kind: Literal["auto"]
    goal: Goal | None = Field(None, description="older place of the spec's own goal")


if TYPE_CHECKING:
    Named = Mechanism
else:
    Named = Union[all_mechanisms()]  # noqa: UP007  # of as many as the registry holds


class Spec(Strict):
    """A label randomizer to compile."""

    version: Literal[1] = Field(description="version of the spec's format")
    name: str = Field(pattern=_NAME, max_length=100)
    goal: Goal = Field(
        "training",
        description="what the private labels are for: training, or means and shares of many, so "
        "that outputs must be right on average; or labels, each as close as possible to its own",
    )
    label: AnyLabelSpec
    loss: Loss = Field(
        description="what a private label costs: ½(ŷ − y)², |ŷ − y|, ŷ − y·ln ŷ, or 1 where it is "
        "another; sum, of a joint label, adds the losses of its columns"
    )
    privacy: PrivacySpec
    prior: Annotated[PrivatePrior | PublicPrior | UniformPrior, Field(discriminator="kind")]
    mechanism: Annotated[Named | Auto, Field(discriminator="kind")]
    groups: GroupsSpec | None = Field(
        None,
        description="public groups of rows, each with a table and a prior of its own: a column "
        "with values or bands, several columns, or a file that assigns them",
    )
    _auto_reason: str | None = PrivateAttr(None)

    @property
    def domain(self) -> Domain:
        """The label domain in its exact form."""
        return self.label.to_domain("unbiased" if self._keeps_means else "nearest")

    @property
    def _keeps_means(self) -> bool:
        return not isinstance(self.mechanism, Auto) and self.mechanism.is_unbiased

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes: categories, or numbers of which only equality counts."""
        return isinstance(self.domain, CategoricalDomain) or self.loss == "zero_one"

    @property
    def column_losses(self) -> list[ColumnLoss] | None:
        """With ``loss: sum`` that of each column."""
        if self.loss != "sum" or not isinstance(self.label, JointLabelSpec):
            return None
        return [column.to_loss() for column in self.label.columns]

    @property
    def known_weights(self) -> list[int] | None:
        """[k] the prior, where the spec itself states it."""
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
        """Why ``mechanism: auto`` became the present mechanism; None if it was named."""
        return self._auto_reason

    def with_goal(self, goal: Goal) -> Self:
        """The same spec with another goal; the mechanism stays."""
        return self.model_copy(update={"goal": goal})

    def with_mechanism(self, mechanism: Mechanism, auto_reason: str | None = None) -> Self:
        """The same spec with another mechanism."""
        spec = self.model_copy(update={"mechanism": mechanism})
        spec._auto_reason = auto_reason
        return spec
