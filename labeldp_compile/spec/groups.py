"""The spec's ``groups``: the public columns that choose the table of a row."""

from typing import Annotated, Literal, Self

from labeldp_verify.forms import MAX_COLUMNS, MAX_EDGES, GroupColumn
from pydantic import Field, model_validator

from labeldp_compile.yaml_model import Category, Number, Strict, TextData

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
