"""The part ``representation`` of a config: a map of features that is learnt without labels."""

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
    """One message for all that is neither a number nor ``all``."""
    if value == "all" or (type(value) is int and 1 <= value <= MOST_COLUMNS):
        return value
    raise ValueError(f"expected a number of components, 1 … {MOST_COLUMNS:,}, or all")


def _crosses(value: object) -> object:
    """One message for all that is neither a number of columns nor a list of pairs."""
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
        f"expected a number of hashed columns, 0 … {MOST_COLUMNS:,}, or a list of pairs of two "
        "feature columns, as in [[age, smoker]]"
    )


class _Representation(Checked):
    components: Annotated[int | Literal["all"] | None, BeforeValidator(_components)] = Field(
        None,
        description="principal components to keep, those of largest variance first; default: "
        f"{DEFAULT_COMPONENTS}, or as many as there are",
    )
    whiten: StrictBool = Field(
        True,
        description="divide each component by its deviation; false with components: all: no "
        "components, but the raw columns standardised",
    )


class _Learnt(_Representation):
    unlabelled: tuple[StrictStr, ...] = Field(
        (), description="further files to learn from, never their labels; test: the test features"
    )
    seed: Annotated[StrictInt, Field(ge=0, lt=2**32)] | None = Field(
        None, description="of what is drawn; default: training.seed"
    )


class Patches(_Learnt):
    """Images: responses to a dictionary of whitened patches, pooled (Coates, Lee and Ng 2011)."""

    kind: Literal["patches"]
    patches: StrictInt = Field(300, ge=2, le=MOST_COLUMNS, description="patches in the dictionary")
    size: StrictInt = Field(6, ge=2, le=64, description="pixels of a side of a patch")
    pool: StrictInt = Field(3, ge=1, le=64, description="pool × pool means of the responses")

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Not too wide."""
        width = self.patches * self.pool**2
        reason = f"patches × pool²: {width:,} columns are more than {MOST_COLUMNS:,}"
        yield width > MOST_COLUMNS, reason


class Pca(_Learnt):
    """Principal components of standardised numbers and one-hot categories, or of pixels."""

    kind: Literal["pca"]


class Splines(_Learnt):
    """Tables: splines of first degree of each number, one-hot categories, pairs of columns."""

    kind: Literal["splines"]
    knots: StrictInt = Field(
        8,
        ge=0,
        le=256,
        description="of each numeric column, between its least and largest value: quantiles of its "
        "distinct values",
    )
    min_count: StrictInt = Field(
        10, ge=1, description="categories of fewer rows share one column of their feature"
    )
    crosses: Annotated[int | tuple[tuple[str, str], ...], BeforeValidator(_crosses)] = Field(
        0,
        description="pairs of columns, numbers in 4 bins: all of them hashed to so many columns, "
        "or a list of pairs",
    )


class RandomFourier(_Learnt):
    """Cosines in random directions, whose products are those of a Gaussian kernel."""

    kind: Literal["random_fourier"]
    features: Columns = 1024
    scale: Annotated[Number, Field(gt=0)] = Field(
        1.0, description="bandwidth of the kernel, in median distances between rows"
    )


class FromFile(_Representation):
    """Vectors [n, d] that the user has, a row for each row of the data, in its order."""

    kind: Literal["file"]
    train: StrictStr
    test: StrictStr | None = None
    array: StrictStr = "embeddings"


def _still_there(value: object) -> object:
    """What an earlier version knew has a sentence of its own."""
    if isinstance(value, dict) and value.get("kind") == "self_supervised":
        raise ValueError(
            "self_supervised is gone: take patches, or kind: file with embeddings of any library"
        )
    return value


RepresentationConfig = Annotated[
    Annotated[Patches | Pca | Splines | RandomFourier | FromFile, Field(discriminator="kind")],
    BeforeValidator(_still_there),
]
