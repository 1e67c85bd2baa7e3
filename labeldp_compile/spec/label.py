"""The spec's ``label``: one column and its domain, or several as one joint label.

A ``grid`` has points of a real domain that are not evenly spaced, for skewed numbers. They are
decimals, and the artifact lists the float64 nearest to each. Losses, means and biases are those of
the numbers themselves: nothing is transformed.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from labeldp_verify.analysis import LOSSES, ColumnLoss
from labeldp_verify.forms import (
    MAX_COMBINATIONS,
    MAX_GRID_POINTS,
    MAX_LABEL_COLUMNS,
    CategoricalDomain,
    GridDomain,
    IntegerDomain,
    JointDomain,
    Part,
    RealDomain,
    Rounding,
)
from labeldp_verify.graph import is_taken_for
from pydantic import Discriminator, Field, PrivateAttr, StrictInt, StrictStr, Tag, model_validator

from labeldp_compile.spec.loss import LossFile, StatedLoss
from labeldp_compile.tabular.formats import key_of
from labeldp_compile.yaml_model import Category, Number, Strict, TextData

_DIGITS = 6  # of points that are computed

PointCount = Annotated[
    StrictInt, Field(ge=2, le=MAX_GRID_POINTS, description="number of points, ends included")
]


class PointsGrid(Strict):
    """The points themselves."""

    kind: Literal["points"]
    values: list[Number] = Field(
        min_length=2, max_length=MAX_GRID_POINTS, description="the points, in increasing order"
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        for low, high in pairwise(self.values):
            if low >= high:
                raise ValueError(f"the points must increase, but {high} comes after {low}")
        return self


class GeometricGrid(Strict):
    """Points whose distance from 0 grows by the same factor from one to the next."""

    kind: Literal["geometric"]
    points: PointCount
    finest: Annotated[Number, Field(gt=0)] | None = Field(
        None, description="the smallest distance from 0, for a range that contains 0"
    )

    def between(self, low: Decimal, high: Decimal) -> list[Decimal]:
        """The points from ``low`` to ``high``. Raises ValueError if there are none of this kind."""
        finest = self.finest
        if low * high > 0:
            if finest is not None:
                raise ValueError("finest is for a range that contains 0: remove it")
            if high < 0:
                return [-x for x in reversed(_geometric(-high, -low, self.points))]
            return _geometric(low, high, self.points)
        if finest is None:
            raise ValueError("the range contains 0: give the smallest distance from 0, as finest")
        sides = [end for end in (-low, high) if end]
        if any(finest >= end for end in sides):
            raise ValueError(f"finest = {finest} is not below the ends of the range")
        if self.points <= len(sides):
            raise ValueError(f"too few points: write points: {len(sides) + 1} or more")
        # Each side gets points in proportion to how many factors of e it has.
        spans = [(end / finest).ln() for end in sides]
        last = round((self.points - 1) * spans[-1] / sum(spans))
        most = self.points - 1 if len(sides) == 1 else min(max(last, 1), self.points - 2)
        above = _geometric(finest, high, most) if high else []
        below = _geometric(finest, -low, self.points - 1 - len(above)) if low else []
        return [*(-x for x in reversed(below)), Decimal(0), *above]


class QuantileGrid(TextData):
    """Quantiles of a public column, so that each step holds about as many of its numbers."""

    kind: Literal["quantile-of-public"]
    data: str = Field(
        min_length=1,
        description="public Parquet or CSV file or folder of parts, relative to the spec; never "
        "the labels",
    )
    column: str = Field(min_length=1, description="its column of public numbers")
    points: PointCount
    _found: list[Decimal] | None = PrivateAttr(None)

    def found(self, numbers: Sequence[float], low: Decimal, high: Decimal) -> None:
        """Take the quantiles of public numbers [n] ≥ 1 in increasing order, inside the range."""
        last, steps = len(numbers) - 1, self.points - 1
        inner = [_rounded(Decimal(numbers[last * i // steps])) for i in range(1, steps)]
        points = sorted({low, high, *(x for x in inner if low < x < high)})
        self._found = points

    def between(self, low: Decimal, high: Decimal) -> list[Decimal]:
        """The points; ValueError before the public file was read."""
        if self._found is None:
            raise ValueError("quantile-of-public is read from a file: write the spec to a file")
        return self._found


class GridDomainSpec(Strict):
    """Numbers in [min, max], rounded to points that are not evenly spaced."""

    kind: Literal["real"]
    min: Number | None = None
    max: Number | None = None
    grid: Annotated[PointsGrid | GeometricGrid | QuantileGrid, Field(discriminator="kind")]
    rounding: Rounding | None = Field(
        None,
        description="how a number becomes a point: nearest; or unbiased, at random so that the "
        "mean is kept. Default: unbiased for optimal_unbiased, nearest for all others",
    )

    @model_validator(mode="after")
    def _ends_fit(self) -> Self:
        if isinstance(self.grid, PointsGrid):
            if (self.min, self.max) != (None, None):
                raise ValueError("min and max are the first and the last of values: remove them")
        elif self.min is None or self.max is None:
            raise ValueError("min and max are missing: the range comes from what labels mean")
        elif self.min >= self.max:
            raise ValueError(f"min = {self.min} is not below max = {self.max}")
        if not isinstance(self.grid, QuantileGrid):
            self.require_faithful()
        return self

    @property
    def ends(self) -> tuple[Decimal, Decimal]:
        """The lowest and the highest label."""
        if isinstance(self.grid, PointsGrid):
            return self.grid.values[0], self.grid.values[-1]
        assert self.min is not None and self.max is not None
        return self.min, self.max

    def require_faithful(self) -> None:
        """Raise ValueError if float64 cannot tell the points apart."""
        if not self.to_domain("unbiased", None, None, keeps_nulls=False).is_faithful():
            raise ValueError("the points are too close for float64, or too far from 0")

    def to_domain(
        self, rounding: Rounding, default: float | None, null: float | None, *, keeps_nulls: bool
    ) -> GridDomain:
        """The domain in its exact form."""
        grid = self.grid
        points = grid.values if isinstance(grid, PointsGrid) else grid.between(*self.ends)
        values = [float(point) + 0.0 for point in points]  # + 0.0 turns −0.0 into 0.0
        return GridDomain.of(
            values, self.rounding or rounding, default, null, keeps_nulls=keeps_nulls
        )


def _geometric(low: Decimal, high: Decimal, points: int) -> list[Decimal]:
    """Points from ``low`` to ``high``, both above 0; of one point ``high``."""
    if points == 1:
        return [high]
    with localcontext(prec=40):
        step = (high / low).ln() / (points - 1)
        inner = [_rounded(low * (step * i).exp()) for i in range(1, points - 1)]
    found = [low, *inner, high]
    if any(one >= other for one, other in pairwise(found)):
        raise ValueError(f"neighbouring points agree in {_DIGITS} digits: use fewer points")
    return found


def _rounded(number: Decimal) -> Decimal:
    with localcontext(prec=_DIGITS):
        return +number


MAX_LABELS = MAX_COMBINATIONS
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
        description="how a number becomes a grid point: nearest; or unbiased, at random so that "
        "the mean is kept (needs a second random word per label). Default: unbiased for "
        "optimal_unbiased, nearest for all others",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _require_order(self.min, self.max)
        if is_taken_for(float(self.min), 0.0):
            raise ValueError("min is too close to 0: use 0, or give the labels in a smaller unit")
        if not RealDomain(float(self.min), float(self.max), self.points).is_faithful():
            raise ValueError("the grid points are too close for float64: use fewer points")
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
                raise ValueError(f"the category {value!r} is listed twice")
            seen.add(value)
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise ValueError(f"the category {value} does not fit int64")
            if isinstance(value, str) and "\0" in value:
                raise ValueError("a category must not hold a NUL character")
        return self


class DefaultLabel(Strict):
    """The label that replaces every value outside the domain, or every null."""

    default: StrictStr | StrictInt | Number


def _domain_of(domain: Any) -> str | None:
    """Which of the models a domain is."""
    if not isinstance(domain, dict):
        return type(domain).__name__
    kind = domain.get("kind")
    if kind == "real":
        return "GridDomainSpec" if "grid" in domain else "RealDomainSpec"
    return kind if isinstance(kind, str) else None


RealSpec = Annotated[
    Annotated[RealDomainSpec, Tag("RealDomainSpec")]
    | Annotated[GridDomainSpec, Tag("GridDomainSpec")],
    Discriminator(_domain_of),
]
DomainSpec = Annotated[
    IntegerDomainSpec | RealSpec | CategoricalDomainSpec, Field(discriminator="kind")
]
NULL_CATEGORY = "missing"  # of ``nulls: category``


class _Named(Strict):
    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The columns of the label."""

    @property
    def key(self) -> str:
        """A text that identifies these label columns."""
        return key_of(self.names)


class LabelSpec(_Named):
    """A label column and its domain."""

    column: str = Field(min_length=1, description="name of the label column")
    domain: DomainSpec
    out_of_domain: Literal["clamp"] | DefaultLabel | None = Field(
        None,
        description="labels outside the domain: clamp (numbers; nulls and NaN become the lowest "
        "label) or {default: LABEL}; categories need a default",
    )
    nulls: Literal["public", "category"] | DefaultLabel | None = Field(
        None,
        description="the value of a missing label: {default: LABEL}; category, a category of its "
        "own; or public: it stays null, because anyone may know which rows have no label",
    )

    @model_validator(mode="after")
    def _default_in_domain(self) -> Self:
        if self._default is not None:
            _require_label(self.domain, self._default, "the default")
        elif isinstance(self.domain, CategoricalDomainSpec):
            raise ValueError(
                "categories cannot be clamped: write out_of_domain: {default: CATEGORY}"
            )
        return self

    @model_validator(mode="after")
    def _null_in_domain(self) -> Self:
        domain, null = self.domain, self.nulls
        if null == "category":
            if not isinstance(domain, CategoricalDomainSpec) or isinstance(domain.values[0], int):
                raise ValueError(
                    "nulls: category needs categories that are text: elsewhere write nulls: "
                    "{default: LABEL}, with a label of the domain"
                )
            if NULL_CATEGORY in domain.values:
                raise ValueError(
                    f"nulls: category adds the category {NULL_CATEGORY!r}, which is listed "
                    f"already: write nulls: {{default: {NULL_CATEGORY}}}"
                )
        if isinstance(null, DefaultLabel):
            _require_label(domain, null.default, "nulls: the default")
        return self

    @property
    def each(self) -> list[LabelSpec]:
        """The columns one by one: this one."""
        return [self]

    @property
    def _null(self) -> str | int | Decimal | None:
        """The label that nulls become, where they have a rule for that."""
        if self.nulls == "category":
            return NULL_CATEGORY
        return self.nulls.default if isinstance(self.nulls, DefaultLabel) else None

    @property
    def _default(self) -> str | int | Decimal | None:
        rule = self.out_of_domain
        return rule.default if isinstance(rule, DefaultLabel) else None

    @property
    def names(self) -> list[str]:
        """The columns of the label: this one."""
        return [self.column]

    def to_domain(self, rounding: Rounding = "nearest") -> Part:
        """The domain in its exact form; ``rounding`` is the default for real labels."""
        domain, default, null = self.domain, self._default, self._null
        keeps = self.nulls == "public"
        if isinstance(domain, CategoricalDomainSpec):
            assert isinstance(default, str | int) and not isinstance(null, Decimal)
            added = [NULL_CATEGORY] if self.nulls == "category" else []
            return CategoricalDomain((*domain.values, *added), default, null, keeps)
        if isinstance(domain, IntegerDomainSpec):
            lowest, highest = domain.min, domain.max
            outside, missed = (None if one is None else int(one) for one in (default, null))
            return IntegerDomain(lowest, highest, outside, missed, keeps)
        # + 0.0 turns −0.0 into 0.0
        other, missing = (None if one is None else float(one) + 0.0 for one in (default, null))
        if isinstance(domain, GridDomainSpec):
            return domain.to_domain(rounding, other, missing, keeps_nulls=keeps)
        return RealDomain(
            float(domain.min) + 0.0,
            float(domain.max) + 0.0,
            domain.points,
            domain.rounding or rounding,
            other,
            missing,
            keeps,
        )


class JointColumnSpec(LabelSpec):
    """One column of a joint label. With loss: sum it has its own loss and weight."""

    loss: StatedLoss | None = Field(None, description="the loss of this column, for loss: sum")
    weight: Annotated[Number, Field(gt=0)] | None = Field(
        None, description="the weight of this column's loss in the sum; public (default: 1)"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        real = RealDomainSpec | GridDomainSpec
        if isinstance(self.domain, real) and self.domain.rounding == "unbiased":
            raise ValueError(
                "a column of a joint label is always rounded to the nearest point: remove rounding"
            )
        if isinstance(self.loss, LossFile) or (self.loss and not LOSSES[self.loss].of_columns):
            raise ValueError(f"the {self.loss} loss is not for a column of a joint label")
        equality = self.loss is None or LOSSES[self.loss].equality
        if isinstance(self.domain, CategoricalDomainSpec) and not equality:
            raise ValueError(f"the {self.loss} loss needs numbers: for categories use zero_one")
        if isinstance(self.domain, real) and self.loss is not None and equality:
            raise ValueError(f"the {self.loss} loss is not for real labels: use squared")
        if isinstance(self.domain, GridDomainSpec) and isinstance(self.domain.grid, QuantileGrid):
            raise ValueError(
                "quantile-of-public is only for a label of one column: write grid: {kind: points}"
            )
        if self.nulls == "public":
            raise ValueError(
                "nulls: public is only for a label of one column: write nulls: {default: LABEL}"
            )
        return self

    def to_loss(self) -> ColumnLoss:
        """The loss and its weight, exactly."""
        assert self.loss is not None
        return ColumnLoss(self.loss, Fraction(1 if self.weight is None else self.weight))


class JointLabelSpec(_Named):
    """Several columns as one label: each combination of their values is a label."""

    columns: list[JointColumnSpec] = Field(
        max_length=MAX_LABEL_COLUMNS,
        description="the columns of a joint label",
        json_schema_extra={"minItems": 2},  # for editors; here the error says what to write
    )

    @model_validator(mode="after")
    def _joins(self) -> Self:
        if len(self.columns) < 2:
            raise ValueError("for one column write label: {column: NAME, domain: {…}}")
        if len(set(self.names)) < len(self.names):
            raise ValueError("a column is listed twice")
        size = math.prod(column.to_domain().size for column in self.columns)
        if size > MAX_LABELS:
            raise ValueError(
                f"the columns combine to {size:,} labels, but at most {MAX_LABELS:,} are possible: "
                "coarsen a column, or randomize the columns one by one, each with a part of ε"
            )
        return self

    @property
    def names(self) -> list[str]:
        """The columns of the label."""
        return [column.column for column in self.columns]

    @property
    def each(self) -> list[LabelSpec]:
        """The columns one by one."""
        return list(self.columns)

    def to_domain(self, rounding: Rounding = "nearest") -> JointDomain:
        """The domain in its exact form; columns are rounded to the nearest point."""
        return self._domain

    @cached_property
    def _domain(self) -> JointDomain:
        return JointDomain.of([column.to_domain() for column in self.columns])


def _is_joint(label: Any) -> str:
    """Which of the two models a label is."""
    joint = "columns" in label if isinstance(label, dict) else hasattr(label, "columns")
    return "JointLabelSpec" if joint else "LabelSpec"


AnyLabelSpec = Annotated[
    Annotated[LabelSpec, Tag("LabelSpec")] | Annotated[JointLabelSpec, Tag("JointLabelSpec")],
    Discriminator(_is_joint),
]


def _require_label(domain: DomainSpec, label: str | int | Decimal, what: str) -> None:
    if isinstance(domain, CategoricalDomainSpec):
        if label not in domain.values or isinstance(label, Decimal):
            raise ValueError(f"{what} {label!r} is not one of the categories")
        return
    if isinstance(label, str):
        raise ValueError(f"{what} must be a number in the domain")
    if isinstance(domain, IntegerDomainSpec) and not isinstance(label, int):
        raise ValueError(f"{what} must be an integer in the domain")
    low, high = domain.ends if isinstance(domain, GridDomainSpec) else (domain.min, domain.max)
    if not low <= label <= high:
        raise ValueError(f"{what} {label} is outside the domain")


def _require_order(low: Any, high: Any) -> None:
    if low > high:
        raise ValueError(f"min = {low} is above max = {high}")
    if low == high:
        raise ValueError("the domain needs at least two labels")
