"""The part ``representation`` of a config: a map of features that is learned without labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, StrictStr

from labeldp_trainer.config.data import Checked, Number

MOST_COLUMNS = 8192  # a covariance matrix of 0.5 GB
DEFAULT_COMPONENTS = 600
TEST = "test"
IMAGE_KINDS = ("patches", "scattering")

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


class Scattering(_Learnt):
    """Images: averages of wavelets' moduli, of one or two orders (Bruna and Mallat 2013)."""

    kind: Literal["scattering"]
    orders: Literal[1, 2] = Field(2, description="2 also has wavelets of the moduli of wavelets")
    scales: StrictInt | None = Field(
        None,
        ge=1,
        le=6,
        description="sizes of wavelets, 1, 2, 4, … pixels; default: 2 for images of 8 pixels, 3 "
        "from 23 and 4 from 46 pixels on",
    )
    angles: StrictInt | None = Field(
        None,
        ge=1,
        le=64,
        description="directions of wavelets; default: 8, or 6 or 4 if that gives too many columns",
    )
    pool: StrictInt = Field(4, ge=1, le=32, description="pool × pool windows for the averages")


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


def _kind(value: object) -> object:
    """The name of a kind stands for the kind with its defaults."""
    return {"kind": value} if isinstance(value, str) else value


def _several(value: object) -> object:
    """One kind stands for a list with one."""
    return value if isinstance(value, list | tuple) else (value,)


def given_vectors(config: AnyRepresentation | None) -> FromFile | None:
    """The files of vectors that take the place of features, or None."""
    if isinstance(config, RowGraph | Joined):
        return given_vectors(config.of[0])
    return config if isinstance(config, FromFile) else None


def members(config: AnyRepresentation | None) -> tuple[AnyRepresentation, ...]:
    """The representations from whose vectors this one is made."""
    return config.of if isinstance(config, RowGraph | Joined) else ()


def all_kinds(config: AnyRepresentation) -> tuple[str, ...]:
    """The kind of a representation, followed by those of all that it is made from."""
    inner = [kind for one in members(config) for kind in all_kinds(one)]
    return (config.kind, *inner)


def _inner_rules(config: AnyRepresentation) -> Iterator[tuple[bool, str]]:
    """Which rows are read, and how columns are scaled, is for the outermost to say."""
    for one in members(config):
        given = one.model_fields_set & {"unlabelled"}
        yield bool(given), "of: unlabelled belongs to the outer representation"
        yield not one.whiten, "of: whiten must be true"
    inner = members(config)
    files = [given_vectors(one) for one in inner]
    same = {None if file is None else (file.train, file.test, file.array) for file in files}
    yield len(same) > 1, "of: representations of files cannot be joined with others"
    again = {one.model_dump_json() for one in inner}
    yield len(again) < len(inner), "of: has the same representation twice"


class RowGraph(_Learnt):
    """Where a row is in the graph of rows that are alike, by the eigenvectors of the graph.

    Belkin and Niyogi 2003; local scales by Zelnik-Manor and Perona 2004. A row gets the weighted
    mean of its neighbours among the landmarks (Nyström; Bengio et al. 2004).
    """

    kind: Literal["graph"]
    of: Annotated[
        tuple[
            Annotated[
                Annotated[
                    Patches | Scattering | Pca | Splines | FromFile, Field(discriminator="kind")
                ],
                BeforeValidator(_kind),
            ],
            ...,
        ],
        Field(min_length=1, max_length=4),
        BeforeValidator(_several),
    ] = Field(
        description="whose vectors say which rows are alike: a kind, one with options, or a list "
        "that counts equally"
    )
    neighbours: StrictInt = Field(10, ge=2, le=100, description="neighbours of a row")
    dims: StrictInt = Field(300, ge=1, le=2048, description="eigenvectors, largest first")
    scale: Annotated[Number, Field(gt=0, le=1)] = Field(
        0.01,
        description="the eigenvector of eigenvalue v is multiplied by 1/√(scale + 1 − v): the "
        "smaller, the more the first ones count",
    )
    landmarks: StrictInt = Field(
        100_000,
        ge=10,
        le=200_000,
        description="rows that the graph has; of more, a random sample. All landmarks are part of "
        "an exported model",
    )

    def rules(self) -> Iterator[tuple[bool, str]]:
        """All members are made from the same features."""
        yield from _inner_rules(self)


class Joined(Checked):
    """Several representations side by side; how much each counts is found from the labels that a
    method releases."""

    kind: Literal["joined"]
    of: Annotated[
        tuple[
            Annotated[
                Annotated[
                    Patches | Scattering | Pca | Splines | RandomFourier | FromFile | RowGraph,
                    Field(discriminator="kind"),
                ],
                BeforeValidator(_kind),
            ],
            ...,
        ],
        Field(min_length=2, max_length=8),
    ] = Field(description="kinds, or representations with options")
    unlabelled: tuple[StrictStr, ...] = Field(
        (), description="further files whose features to learn from; test means the test features"
    )
    seed: Annotated[StrictInt, Field(ge=0, lt=2**32)] | None = Field(
        None, description="seed of random choices; default: training.seed"
    )

    @property
    def whiten(self) -> bool:
        """All members are whitened."""
        return True

    def rules(self) -> Iterator[tuple[bool, str]]:
        """All members are made from the same features."""
        yield from _inner_rules(self)


AnyRepresentation = (
    Patches | Scattering | Pca | Splines | RandomFourier | FromFile | RowGraph | Joined
)
RepresentationConfig = Annotated[AnyRepresentation, Field(discriminator="kind")]
