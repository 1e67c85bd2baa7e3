"""The part ``representation`` of a config: a map of features that is learned without labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, StrictStr

from labeldp_trainer.config.base import Checked, Number

MOST_COLUMNS = 8192  # a covariance matrix of 0.5 GB
DEFAULT_COMPONENTS = 600
TEST = "test"

Columns = Annotated[StrictInt, Field(ge=1, le=MOST_COLUMNS)]


def _components(value: object) -> object:
    """The value, if it is a number or ``all``. One message for everything else."""
    if value == "all" or (type(value) is int and 1 <= value <= MOST_COLUMNS):
        return value
    raise ValueError(f"expected a number of components from 1 to {MOST_COLUMNS:,}, or all")


def _crosses(value: object) -> object:
    """The value, if it is a number of columns or a list of pairs. One message otherwise."""
    if type(value) is int and 0 <= value <= MOST_COLUMNS:
        return value
    if isinstance(value, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(isinstance(name, str) for name in pair)
        and pair[0] != pair[1]
        for pair in value
    ):
        return tuple((pair[0], pair[1]) for pair in value)
    raise ValueError(
        f"expected a number of hashed columns from 0 to {MOST_COLUMNS:,}, or a list of pairs of "
        "feature columns, as in [[age, smoker]]"
    )


class _Representation(Checked):
    components: Annotated[int | Literal["all"] | None, BeforeValidator(_components)] = Field(
        None,
        description="principal components to keep, largest variance first; default: "
        f"{DEFAULT_COMPONENTS}, or all if there are fewer",
    )
    whiten: StrictBool = Field(
        True,
        description="divide each component by its standard deviation; false with components: all "
        "keeps the raw columns, standardized",
    )


class _Learnt(_Representation):
    unlabelled: tuple[StrictStr, ...] = Field(
        (), description="further files whose features to learn from; test means the test features"
    )
    seed: Annotated[StrictInt, Field(ge=0, lt=2**32)] | None = Field(
        None, description="seed of random choices; default: training.seed"
    )


class Patches(_Learnt):
    """Images: pooled responses to a dictionary of whitened patches (Coates, Lee and Ng 2011)."""

    kind: Literal["patches"]
    patches: StrictInt = Field(300, ge=2, le=MOST_COLUMNS, description="patches in the dictionary")
    size: StrictInt = Field(6, ge=2, le=64, description="side of a patch in pixels")
    pool: StrictInt = Field(3, ge=1, le=64, description="pool × pool means of the responses")

    def rules(self) -> Iterator[tuple[bool, str]]:
        """The vectors are not too long."""
        width = self.patches * self.pool**2
        reason = f"patches × pool²: gives {width:,} columns; at most {MOST_COLUMNS:,} are allowed"
        yield width > MOST_COLUMNS, reason


class Pca(_Learnt):
    """Principal components of standardized numbers and one-hot categories, or of pixels."""

    kind: Literal["pca"]


class Splines(_Learnt):
    """Tables: linear splines of each number, one-hot categories, and pairs of columns."""

    kind: Literal["splines"]
    knots: StrictInt = Field(
        8,
        ge=0,
        le=256,
        description="knots of each numeric column between its smallest and largest value, at "
        "quantiles of its distinct values",
    )
    min_count: StrictInt = Field(
        10, ge=1, description="categories with fewer rows share one column per feature"
    )
    crosses: Annotated[int | tuple[tuple[str, str], ...], BeforeValidator(_crosses)] = Field(
        0,
        description="pairs of columns, with numbers in 4 bins: a number of columns into which all "
        "pairs are hashed, or a list of pairs",
    )


class RandomFourier(_Learnt):
    """Random cosines whose inner products approximate a Gaussian kernel."""

    kind: Literal["random_fourier"]
    features: Columns = 1024
    scale: Annotated[Number, Field(gt=0)] = Field(
        1.0, description="bandwidth of the kernel, in units of the median distance between rows"
    )


class FromFile(_Representation):
    """Given vectors [n, d], with a row for each row of the data in the same order."""

    kind: Literal["file"]
    train: StrictStr
    test: StrictStr | None = None
    array: StrictStr = "embeddings"


def _still_there(value: object) -> object:
    """The value, unless it is a kind that was removed."""
    if isinstance(value, dict) and value.get("kind") == "self_supervised":
        raise ValueError(
            "self_supervised was removed; use patches, or kind: file with your own embeddings"
        )
    return value


RepresentationConfig = Annotated[
    Annotated[Patches | Pca | Splines | RandomFourier | FromFile, Field(discriminator="kind")],
    BeforeValidator(_still_there),
]
