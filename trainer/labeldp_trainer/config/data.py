"""The types that all parts of a config share, and the part ``data``: features and labels."""

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, StrictInt, StrictStr, model_validator

from labeldp_compile.toolkit import Strict, TextData


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("expected a number")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("expected a finite number")
    return number


Number = Annotated[float, BeforeValidator(_number)]


class Checked(Strict):
    """A part of a config with its own rules."""

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Each rule: whether it is broken, and the message. The first broken one is reported."""
        yield from ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        for broken, reason in self.rules():
            if broken:
                raise ValueError(reason)
        return self


MOST_EXAMPLES = 100_000
"""The largest ``max_examples_per_user``."""


def may_lack(key: str) -> ConfigDict:
    """For a model with ``key`` that is filled in before validation: its JSON Schema says so."""
    return ConfigDict(json_schema_extra=lambda schema: schema["required"].remove(key))


class UserLevel(Checked):
    """The keys of all methods that can protect users."""

    user_column: StrictStr | None = Field(
        None, description="public column with the user of each row"
    )
    max_examples_per_user: StrictInt | None = Field(
        None,
        ge=1,
        le=MOST_EXAMPLES,
        description="most rows of a user that are used; they are chosen without reading labels",
    )

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Both keys, or neither."""
        apart = (self.user_column is None) != (self.max_examples_per_user is None)
        yield apart, "user_column and max_examples_per_user: give both or neither"


class TrueLabels(UserLevel):
    """The keys of all private methods that read true labels, and refuse none of them."""

    default: StrictInt | StrictStr | Number | None = Field(
        None,
        description="missing and unknown labels count as this; default: the first class, the "
        "middle of label_range, 0 without one, or (in a staged release) nothing",
    )


SMALLEST_DELTA = 1e-300
"""The smallest δ that accounting supports, near the end of float64."""
LabelRange = tuple[Number, Number]


class Approximate(TrueLabels):
    """The keys of all methods that promise (ε, δ)."""

    delta: Annotated[Number, Field(gt=0, lt=1)]

    def rules(self) -> Iterator[tuple[bool, str]]:
        """δ is not below the smallest one."""
        yield from super().rules()
        reason = f"delta: must be at least {SMALLEST_DELTA:g}"
        yield self.delta < SMALLEST_DELTA, reason


class NoisySum(Approximate):
    """The keys of all methods that add noise to sums over labels."""

    label_range: LabelRange | None = Field(
        None, description="smallest and largest label of a regression"
    )

    def rules(self) -> Iterator[tuple[bool, str]]:
        """The range is not empty."""
        yield from super().rules()
        low, high = self.label_range or (0, 1)
        yield not low < high, "label_range: the first number must be smaller than the second"


# The part ``data`` of a config: where features and labels are.

Label = StrictInt | StrictStr
MAX_CLASSES = 100_000
FACTORS = ("exposure", "weights")
DATE_FEATURES = ("days since 1970", "year", "month", "day of month", "weekday", "hour")


def _classes(value: object) -> object:
    """The value, if it is a list of classes or their number. One message for everything else."""
    listed = isinstance(value, list) and all(type(label) in (int, str) for label in value)
    count = len(value) if listed and isinstance(value, list) else value
    if not (type(count) is int and 2 <= count <= MAX_CLASSES):
        raise ValueError(
            f"expected a list of labels (whole numbers or text), or their number K from 2 to "
            f"{MAX_CLASSES:,}"
        )
    return value


Classes = Annotated[StrictInt | list[Label], BeforeValidator(_classes)]


class _Data(Checked):
    classes: Classes | None = Field(
        None, description="the classes of a classification: a list, or K for the integers 0 … K − 1"
    )
    rows: StrictInt | None = Field(None, ge=1, description="train on the first N rows only")

    @property
    def class_list(self) -> list[int | str] | None:
        """The classes as a list; None if they are not given."""
        return list(range(self.classes)) if isinstance(self.classes, int) else self.classes

    def rules(self) -> Iterator[tuple[bool, str]]:
        """No class is listed twice."""
        twice = isinstance(self.classes, list) and len(set(self.classes)) < len(self.classes)
        yield twice, "classes: a class is listed twice"


class TableData(_Data, TextData):
    """Parquet or CSV files, or folders of such files."""

    kind: Literal["table"]
    train: StrictStr
    test: StrictStr | None = None
    label: StrictStr
    numeric: tuple[StrictStr, ...] = ()
    categorical: tuple[StrictStr, ...] = ()
    dates: tuple[StrictStr, ...] = Field(
        (), description="columns of dates or timestamps: each becomes six numeric features"
    )
    exposure: StrictStr | None = Field(
        None,
        description="public column of a table of counts: for how long, or of how many, a row "
        "counts; labels are expected to be proportional to it",
    )
    weights: StrictStr | None = Field(
        None,
        description="public column of how much a row counts in learning and in test metrics, such "
        "as survey weights",
    )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns with features."""
        return (*self.numeric, *self.categorical, *self.dates)

    @property
    def factors(self) -> dict[str, str]:
        """The columns of positive numbers that are no features, by key."""
        return {key: name for key in FACTORS if (name := getattr(self, key)) is not None}

    @property
    def numeric_features(self) -> tuple[str, ...]:
        """The names of the numeric features: the numeric columns, then those of each date."""
        of_dates = (f"{name}: {feature}" for name in self.dates for feature in DATE_FEATURES)
        return (*self.numeric, *of_dates)

    def rules(self) -> Iterator[tuple[bool, str]]:
        """There are features, and none is listed twice."""
        yield from super().rules()
        columns = [*self.numeric_features, *self.categorical, *self.dates]
        yield not columns, "has no features; list columns under numeric, categorical or dates"
        yield len(set(columns)) < len(columns), "a feature column is listed twice"
        yield self.label in self.columns, f"the label {self.label!r} is also a feature"
        others = [self.label, *self.columns]
        for key, name in self.factors.items():
            reason = f"{key}: {name!r} is also the label, a feature or exposure; copy the column"
            yield name in others, reason
            others.append(name)


class NpzData(_Data):
    """numpy archives with features [n, p] or [n, height, width, channels]."""

    kind: Literal["npz"]
    train: StrictStr
    test: StrictStr | None = None
    features: StrictStr = "x"
    label: StrictStr = "y"


FIRST, SECOND = "first", "second"
Answer = StrictStr | tuple[StrictStr, ...]


class PairsData(_Data):
    """Pairs of answers, of which somebody prefers one: npz archives, or Parquet files or folders.

    ``first`` and ``second`` name the vectors of the two answers: an array [n, p], a column of lists
    of p numbers, or p columns of numbers. ``label`` says which one is preferred. In a file with
    ``chosen`` and ``rejected`` their order is the label. Nothing public depends on it.
    """

    kind: Literal["pairs"]
    train: StrictStr
    test: StrictStr | None = None
    first: Answer | None = Field(None, description="the vectors of the first answers")
    second: Answer | None = None
    chosen: Answer | None = Field(None, description="the vectors of the preferred answers")
    rejected: Answer | None = None
    label: StrictStr = Field(
        "preferred", description="with first and second: which one is preferred"
    )
    classes: Annotated[list[Label], Field(min_length=2, max_length=2)] = Field(
        [FIRST, SECOND],
        description="the label if the first answer is preferred, and if the second is; any other "
        "label is a tie",
    )

    @property
    def class_list(self) -> list[int | str]:
        """The two answers, in their public order."""
        return [FIRST, SECOND]

    @property
    def order_is_label(self) -> bool:
        """Whether the order of the columns says which answer is preferred."""
        return self.chosen is not None

    @property
    def answers(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns or arrays of the two answers."""
        sides = (self.chosen, self.rejected) if self.order_is_label else (self.first, self.second)
        one, other = ((side,) if isinstance(side, str) else tuple(side or ()) for side in sides)
        return one, other

    def rules(self) -> Iterator[tuple[bool, str]]:
        """There are two answers, of the same form, and no column is used twice."""
        yield from super().rules()
        given = [key for key in ("first", "second", "chosen", "rejected") if getattr(self, key)]
        reason = "give first and second with a label, or chosen and rejected"
        yield given not in ([FIRST, SECOND], ["chosen", "rejected"]), reason
        one, other = self.answers
        yield len(one) != len(other), f"{given[0]} and {given[1]}: give as many columns of each"
        each = [*one, *other, *(() if self.order_is_label else (self.label,))]
        yield len(set(each)) < len(each), "a column is listed twice"
        labelled = self.order_is_label and bool(self.model_fields_set & {"label", "classes"})
        yield labelled, "chosen and rejected say which is preferred; remove label and classes"


class IdxFiles(Strict):
    """Images and labels of an idx data set, gzipped or not."""

    images: StrictStr
    labels: StrictStr


class IdxData(_Data):
    """Images in the format of MNIST."""

    kind: Literal["idx"]
    train: IdxFiles
    test: IdxFiles | None = None

    @property
    def label(self) -> str:
        """The name of the label column."""
        return "label"


DataConfig = Annotated[TableData | NpzData | IdxData | PairsData, Field(discriminator="kind")]


def features_of(data: DataConfig) -> tuple[str, ...]:
    """The public columns or array. None for idx files, where features have their own file."""
    if isinstance(data, TableData):
        return (*data.columns, *data.factors.values())
    if isinstance(data, PairsData):
        return tuple(name for answer in data.answers for name in answer)
    return (data.features,) if isinstance(data, NpzData) else ()
