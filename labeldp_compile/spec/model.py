"""The spec as pydantic models. Every model forbids unknown keys; nothing is converted silently."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StrictBool,
    StrictInt,
    StrictStr,
    WithJsonSchema,
    model_validator,
)

from labeldp_compile.randomizer import CategoricalDomain, Domain, IntegerDomain, RealDomain
from labeldp_compile.randomizer.domain import Rounding
from labeldp_compile.randomizer.loss import Loss

MAX_LABELS = 1_000_000
MAX_DIGITS = 100
MAX_EXPONENT = 100
MIN_EPSILON = Decimal("0.000001")
_EXACT_IN_FLOAT64 = 2**53


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("expected a number")
    number = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise ValueError("expected a finite number")
    digits = number.as_tuple()
    if len(digits.digits) > MAX_DIGITS or (number and abs(number.adjusted()) > MAX_EXPONENT):
        raise ValueError(f"expected a number between 1e-{MAX_EXPONENT} and 1e{MAX_EXPONENT}")
    return number


Number = Annotated[Decimal, BeforeValidator(_number), WithJsonSchema({"type": "number"})]


def _category(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("expected text or an integer: quote it to make it text")
    return value


class Strict(BaseModel):
    """Forbids unknown keys and later changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


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
        if not RealDomain(float(self.min), float(self.max), self.points).is_faithful():
            raise ValueError("the grid points are too close for float64: take fewer points")
        return self


class CategoricalDomainSpec(Strict):
    """Named labels without order: all text, or all integers."""

    kind: Literal["categorical"]
    values: list[Annotated[StrictStr | StrictInt, BeforeValidator(_category)]] = Field(
        min_length=2, max_length=MAX_LABELS
    )

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
            float(domain.min),
            float(domain.max),
            domain.points,
            domain.rounding or rounding,
            None if default is None else float(default),
        )


class Split(Strict):
    """How ε is divided between the private prior and the label."""

    prior: Number = Field(ge=0)
    label: Number = Field(gt=0)


class PrivacySpec(Strict):
    """The privacy budget of one label."""

    epsilon: Number = Field(
        ge=MIN_EPSILON, le=60, description="total ε for a label that is in both parts"
    )
    split: Literal["auto"] | Split = Field(
        "auto", description="auto: √(k/n) for a private prior, nothing for the others"
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
    data: str = Field(min_length=1, description="Parquet or CSV file, relative to the spec")
    rows: StrictInt | None = Field(
        None, ge=1, description="number of rows, which is public; lets plan read no CSV"
    )
    counts: str | None = Field(
        None,
        min_length=1,
        description="the file is a histogram, counted elsewhere: its column of whole counts, one "
        "row a label",
    )


class PublicPrior(Strict):
    """A prior that is no secret: weights, or the histogram of a public data file."""

    kind: Literal["public"]
    weights: list[Annotated[Number, Field(ge=0)]] | None = Field(
        None, description="one weight a label, in order; need not sum to one"
    )
    data: str | None = Field(
        None, min_length=1, description="public Parquet or CSV file, relative to the spec"
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.weights is None) == (self.data is None):
            raise ValueError("a public prior needs either weights or data")
        if self.weights is not None and not any(self.weights):
            raise ValueError("the weights must not all be zero")
        return self


class UniformPrior(Strict):
    """Every label is equally likely."""

    kind: Literal["uniform"]


class RandomizedResponse(Strict):
    """Randomized response over all labels (Warner 1965)."""

    kind: Literal["randomized_response"]


class RRonBins(Strict):
    """Randomized response on the optimal bins (RR-on-Bins, ICLR 2023, Algorithm 2)."""

    kind: Literal["rr_on_bins"]


class RRTopK(Strict):
    """Randomized response over the k likeliest labels (RRTop-k, NeurIPS 2021, Algorithm 1)."""

    kind: Literal["rr_top_k"]
    k: StrictInt = Field(ge=1, le=MAX_LABELS, description="number of labels kept as outputs")


class RRWithPrior(Strict):
    """RRTop-k with the best k under the prior (RRWithPrior, NeurIPS 2021, Algorithm 2)."""

    kind: Literal["rr_with_prior"]


class DebiasedRR(Strict):
    """Randomized response whose outputs are moved apart to be unbiased (Definition 23)."""

    kind: Literal["debiased_rr"]


class AdditiveSpec(Strict):
    """Noise added to the label; Δ is the range of the domain."""

    clip: StrictBool = Field(
        False, description="whether outputs are clamped to the range of the labels (biased)"
    )
    lattice: Annotated[Number, Field(gt=0)] | None = Field(
        None,
        description="realise the noise on a lattice at least this fine (default: one step a label)",
    )


class Laplace(AdditiveSpec):
    """Discrete Laplace noise (Definition 17), or on a fine lattice the continuous one (18)."""

    kind: Literal["laplace"]


class Staircase(AdditiveSpec):
    """Staircase noise of the width that is best for the loss (Definitions 19 and 20)."""

    kind: Literal["staircase"]


class Exponential(Strict):
    """The exponential mechanism over the labels, with the scores −loss, spending all of ε."""

    kind: Literal["exponential"]


class Auto(Strict):
    """Chooses the mechanism by the loss and the purpose."""

    kind: Literal["auto"]
    goal: Literal["training", "labels"] = Field(
        "training",
        description="training: what a model learns best from; labels: the least noisy label loss",
    )


class GivenOutputs(Strict):
    """Outputs to choose from: evenly spaced ones (Algorithm 2 of the paper), or a list."""

    grid: StrictInt | None = Field(None, ge=2, le=100_000, description="number of outputs")
    values: list[Number] | None = Field(None, min_length=2, description="the outputs")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.grid is None) == (self.values is None):
            raise ValueError("expected exact, {grid: n} or {values: [...]}")
        if self.values and len({float(value) for value in self.values}) < len(self.values):
            raise ValueError("the outputs must differ")
        return self


class BiasSpec(Strict):
    """How much bias is allowed, or what it costs; exactly one of the three."""

    max: Annotated[Number, Field(ge=0)] | None = Field(
        None, description="the largest |E[output | label] − label|"
    )
    penalty: Annotated[Number, Field(ge=0)] | None = Field(
        None, description="λ: minimise the noisy label loss + λ·Σ prior·bias²"
    )
    sample_size: StrictInt | None = Field(
        None, ge=1, description="the penalty (n − 1)/2, for averages of n labels"
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(part is not None for part in (self.max, self.penalty, self.sample_size)) != 1:
            raise ValueError("a bias budget is one of max, penalty and sample_size")
        return self


class OptimalUnbiased(Strict):
    """The unbiased randomizer of least loss (NeurIPS 2023), or one within a bias budget."""

    kind: Literal["optimal_unbiased"]
    outputs: Literal["exact"] | GivenOutputs = Field(
        "exact", description="exact: real outputs, squared loss; or {grid: n}, or {values: [...]}"
    )
    bias: BiasSpec | None = None

    @model_validator(mode="after")
    def _bias_needs_exact_outputs(self) -> Self:
        if self.bias is not None and self.outputs != "exact":
            raise ValueError("a bias budget needs outputs: exact")
        return self


Mechanism = (
    RandomizedResponse
    | RRonBins
    | OptimalUnbiased
    | RRTopK
    | RRWithPrior
    | DebiasedRR
    | Laplace
    | Staircase
    | Exponential
)


class Spec(Strict):
    """A label randomizer to compile."""

    version: Literal[1] = Field(description="version of the spec's format")
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)
    label: LabelSpec
    loss: Loss
    privacy: PrivacySpec
    prior: Annotated[PrivatePrior | PublicPrior | UniformPrior, Field(discriminator="kind")]
    mechanism: Annotated[Mechanism | Auto, Field(discriminator="kind")]
    _auto_reason: str | None = PrivateAttr(None)

    @property
    def domain(self) -> Domain:
        """The label domain in its exact form."""
        return self.label.to_domain("unbiased" if is_unbiased(self.mechanism) else "nearest")

    @property
    def named_mechanism(self) -> Mechanism:
        """The mechanism, after ``auto`` has been resolved."""
        assert not isinstance(self.mechanism, Auto)
        return self.mechanism

    @property
    def auto_reason(self) -> str | None:
        """Why ``mechanism: auto`` became the present mechanism; None if it was named."""
        return self._auto_reason

    def with_mechanism(self, mechanism: Mechanism, auto_reason: str | None = None) -> Self:
        """The same spec with another mechanism."""
        spec = self.model_copy(update={"mechanism": mechanism})
        spec._auto_reason = auto_reason
        return spec


def is_unbiased(mechanism: Mechanism | Auto) -> bool:
    """Whether the mechanism keeps the mean of a label (but for clamping far out in the tails)."""
    if isinstance(mechanism, Laplace | Staircase):
        return not mechanism.clip
    return isinstance(mechanism, OptimalUnbiased | DebiasedRR)


def _require_order(low: Any, high: Any) -> None:
    if low > high:
        raise ValueError(f"min = {low} is above max = {high}")
    if low == high:
        raise ValueError("the domain needs at least two labels")
