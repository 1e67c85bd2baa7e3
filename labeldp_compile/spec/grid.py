"""The spec's ``grid``: points of a real domain that are not evenly spaced, for skewed numbers.

The points are decimals, and the artifact lists the float64 nearest to each. Losses, means and
biases are those of the numbers themselves: nothing is transformed.
"""

from collections.abc import Sequence
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Annotated, Literal, Self

from labeldp_verify.forms import MAX_GRID_POINTS, GridDomain, Rounding
from pydantic import Field, PrivateAttr, StrictInt, model_validator

from labeldp_compile.yaml_model import Number, Strict, TextData

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
