"""The spec as pydantic models. Every model forbids unknown keys; nothing is converted silently."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union

from labeldp_verify.analysis.analysis import Loss
from labeldp_verify.artifact.graph import is_taken_for
from labeldp_verify.forms import CategoricalDomain, Domain, IntegerDomain, RealDomain
from labeldp_verify.forms.domain import Rounding
from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    StrictInt,
    StrictStr,
    ValidationInfo,
    model_validator,
)

from labeldp_compile.mechanisms import all_mechanisms
from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.spec.fields import DELIMITER, ENCODING, Category, Delimiter, Encoding
from labeldp_compile.spec.groups import GroupsSpec
from labeldp_compile.text_form import TextForm
from labeldp_compile.yaml_model import Number, Strict

MAX_LABELS = 1_000_000
MAX_LABELS_PER_USER = 10_000
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
MIN_EPSILON = Decimal("0.000001")
_EXACT_IN_FLOAT64 = 2**53


class IntegerDomainSpec(Strict):
    """The integers min … max."""

    kind: Literal["integer"]
    min: StrictInt = Field(ge=-_EXACT_IN_FLOAT64, le=_EXACT_IN_FLOAT64)
    max: StrictInt = Field(ge=-_EXACT_IN_FLOAT64, le=_EXACT_IN_FLOAT64)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _require_order(self.min, self.max)
        if self.max - self.min >= MAX_LABELS:
            raise ValueError(f"at most {MAX_LABELS:,} labels: coarsen the label or use kind: real")
        return self


class RealDomainSpec(Strict):
    """Numbers in [min, max], rounded to ``points`` evenly spaced labels."""

    kind: Literal["real"]
    min: Number
    max: Number
    points: StrictInt = Field(
        ge=2, le=MAX_LABELS, description="number of grid points, ends included"
    )
    rounding: Rounding | None = Field(
        None,
        description="how a number becomes a grid point: nearest, or unbiased: at random so that "
        "the mean is kept (takes a second random word a label); by default unbiased for "
        "optimal_unbiased and nearest for the others",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _require_order(self.min, self.max)
        if is_taken_for(float(self.min), 0.0):
            raise ValueError("min is too close to 0: write 0, or give the labels in a smaller unit")
        if not RealDomain(float(self.min), float(self.max), self.points).is_faithful():
            raise ValueError("the grid points are too close for float64: take fewer points")
        return self


class CategoricalDomainSpec(Strict):
    """Named labels without order: all text, or all integers."""

    kind: Literal["categorical"]
    values: list[Category] = Field(min_length=2, max_length=MAX_LABELS)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len({type(value) for value in self.values}) > 1:
            raise ValueError("the categories must be all text or all integers: quote the numbers")
        seen: set[str | int] = set()
        for value in self.values:
            if value in seen:
                raise ValueError(f"the category {value!r} stands here twice")
            seen.add(value)
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise ValueError(f"the category {value} does not fit int64")
            if isinstance(value, str) and "\0" in value:
                raise ValueError("a category must not hold a NUL character")
        return self


class DefaultLabel(Strict):
    """The label that stands in for everything outside the domain."""

    default: StrictStr | StrictInt | Number


class LabelSpec(Strict):
    """The label column and what it may hold."""

    column: str = Field(min_length=1, description="name of the label column")
    domain: Annotated[
        IntegerDomainSpec | RealDomainSpec | CategoricalDomainSpec, Field(discriminator="kind")
    ]
    out_of_domain: Literal["clamp"] | DefaultLabel | None = Field(
        None,
        description="labels outside the domain: clamp (numbers; nulls and NaN take the lowest "
        "label) or {default: LABEL}; categories need a default",
    )

    @model_validator(mode="after")
    def _default_in_domain(self) -> Self:
        domain, rule = self.domain, self.out_of_domain
        default = rule.default if isinstance(rule, DefaultLabel) else None
        if isinstance(domain, CategoricalDomainSpec):
            if default is None:
                raise ValueError(
                    "categories have no nearest one: say out_of_domain: {default: CATEGORY}"
                )
            if default not in domain.values or isinstance(default, Decimal):
                raise ValueError(f"the default {default!r} is not one of the categories")
        elif default is not None:
            if isinstance(default, str):
                raise ValueError("the default must be a number in the domain")
            if isinstance(domain, IntegerDomainSpec) and not isinstance(default, int):
                raise ValueError("the default must be an integer in the domain")
            if not domain.min <= default <= domain.max:
                raise ValueError(f"the default {default} lies outside the domain")
        return self

    def to_domain(self, rounding: Rounding = "nearest") -> Domain:
        """The domain in its exact form; ``rounding`` is for real labels that name none."""
        rule = self.out_of_domain
        default = rule.default if isinstance(rule, DefaultLabel) else None
        domain = self.domain
        if isinstance(domain, CategoricalDomainSpec):
            assert isinstance(default, str | int)
            return CategoricalDomain(tuple(domain.values), default)
        if isinstance(domain, IntegerDomainSpec):
            return IntegerDomain(domain.min, domain.max, None if default is None else int(default))
        return RealDomain(
            float(domain.min) + 0.0,  # + 0.0 turns −0.0 into 0.0
            float(domain.max) + 0.0,
            domain.points,
            domain.rounding or rounding,
            None if default is None else float(default) + 0.0,
        )


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
        description="budget ledger (labeldp ledger init), relative to the spec: a private prior is "
        "paid from it, or recalled; needs prior.data_set and prior.data_version",
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


class PrivatePrior(Strict):
    """The label histogram of a data file, with discrete Laplace noise that costs ε₁."""

    kind: Literal["private"]
    data: str = Field(
        min_length=1, description="Parquet or CSV file or folder of parts, relative to the spec"
    )
    delimiter: Delimiter | None = Field(None, description=DELIMITER)
    encoding: Encoding | None = Field(None, description=ENCODING)
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

    @property
    def form(self) -> TextForm:
        """The form of the data, if they are text."""
        return TextForm(self.delimiter, self.encoding)


class PublicPrior(Strict):
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
    delimiter: Delimiter | None = Field(None, description=DELIMITER)
    encoding: Encoding | None = Field(None, description=ENCODING)

    @property
    def form(self) -> TextForm:
        """The form of the data, if they are text."""
        return TextForm(self.delimiter, self.encoding)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.weights is None) == (self.data is None):
            raise ValueError("a public prior needs either weights or data")
        if self.data is None and self.form != TextForm():
            raise ValueError("delimiter and encoding are those of data")
        if self.weights is not None and not any(self.weights):
            raise ValueError("the weights must not all be zero")
        return self


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
    label: LabelSpec
    loss: Loss
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
        return isinstance(self.label.domain, CategoricalDomainSpec) or self.loss == "zero_one"

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


def _require_order(low: Any, high: Any) -> None:
    if low > high:
        raise ValueError(f"min = {low} is above max = {high}")
    if low == high:
        raise ValueError("the domain needs at least two labels")
