"""The representations of a config: what a kind must provide, and the list of all kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union

import numpy as np
from jaxtyping import Float32
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, StrictBool, StrictInt, StrictStr

from labeldp_trainer.config.data import Checked

if TYPE_CHECKING:
    from labeldp_trainer.config import LoadedConfig
    from labeldp_trainer.data import DataPart, FeatureShape

MOST_COLUMNS = 8192  # a covariance matrix of 0.5 GB
DEFAULT_COMPONENTS = 600
TEST = "test"

Arrays = Mapping[str, NDArray[Any]]
SMALLEST = 8
"""Pixels of a side of images that wavelets take."""
NOTHING_LEFT = "every column of the representation is constant, so nothing is left"
Steps = Callable[[str, int, int], None]
"""Called with what is done, how much of it, and of how much."""

Announce = Callable[[str], None]
"""Called with a sentence for the user before long work."""


def silent(what: str, done: int, total: int) -> None:
    """No progress is shown."""


def nowhere(words: str) -> None:
    """Nothing is announced."""


@dataclass(frozen=True)
class FeatureSource:
    """The features from which a representation is learned.

    Attributes:
        loaded: the config.
        config: the representation to learn, which may be a part of that of ``loaded``.
        shape: of an example.
        parts: the training part, and all other parts that may be read.
        seed: of what is drawn.
        steps: progress.
        spectrum: [p] eigenvalues of the components that columns are, if they are vectors of another
            representation.
        groups: [p] the numbers of the representations that columns are from, or None.
    """

    loaded: LoadedConfig
    config: Kind
    shape: FeatureShape
    parts: Sequence[DataPart]
    seed: int
    steps: Steps = silent
    spectrum: NDArray[np.float64] | None = None
    groups: NDArray[np.int32] | None = None

    def require(self, holds: bool, reason: str, *key: str) -> None:
        """Raise ConfigError, which names this key of ``representation``, unless it holds."""
        if not holds:
            raise self.loaded.error(("representation", *key), reason)

    @property
    def features(self) -> list[Any]:
        """Those of each part, [n, …]."""
        return [part.features for part in self.parts]


@dataclass(frozen=True)
class Learnt:
    """The arrays that a kind has learned before principal components.

    Attributes:
        arrays: by name; shapes are all that ``Kind.raw`` knows beside them.
        notes: sentences for the user.
    """

    arrays: Arrays
    notes: tuple[str, ...] = field(default=())


class Kind(Checked):
    """The options of a representation, and everything that the rest of the trainer needs from it.

    The docstring of a subclass is its description, which editors show.

    Attributes:
        kind: its name in a config.
        chunk: examples at a time whose intermediate values fit the cache of a CPU.
        needs: the data that it is for; None for any.
        is_composed: whether it is made from other representations, its ``members``.
    """

    kind: str
    chunk: ClassVar[int] = 512
    needs: ClassVar[Literal["images", "table", "pairs"] | None] = None
    is_composed: ClassVar[bool] = False

    @property
    def members(self) -> tuple[Kind, ...]:
        """The representations from whose vectors, side by side, this one is made."""
        return ()

    @property
    def whole(self) -> tuple[Kind, ...]:
        """It, followed by all that it is made from."""
        return (self, *(each for member in self.members for each in member.whole))

    def learn(self, source: FeatureSource) -> Learnt:
        """Learn from features, or from the vectors of its members. Raises InputError."""
        del source
        return Learnt({})

    @staticmethod
    def raw(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
        """(batch of features or vectors, arrays) → [b, raw width].

        Pure, of operators and ``models.layers``. They import JAX, so do that inside.
        """
        del arrays
        return x


def _components(value: object) -> object:
    """The value, if it is a number or ``all``. One message for everything else."""
    if value == "all" or (type(value) is int and 1 <= value <= MOST_COLUMNS):
        return value
    raise ValueError(f"expected a number of components from 1 to {MOST_COLUMNS:,}, or all")


class PrincipalKind(Kind):
    """A kind that ends with principal components.

    Attributes:
        centred: whether the mean of all vectors is subtracted.
    """

    centred: ClassVar[bool] = True

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


class LearnedKind(PrincipalKind):
    """A kind that is learned from features."""

    unlabelled: tuple[StrictStr, ...] = Field(
        (), description="further files whose features to learn from; test means the test features"
    )
    seed: Annotated[StrictInt, Field(ge=0, lt=2**32)] | None = Field(
        None, description="seed of random choices; default: training.seed"
    )


class FromFile(PrincipalKind):
    """Given vectors [n, d], with a row for each row of the data in the same order."""

    kind: Literal["file"]
    chunk: ClassVar[int] = 1024
    train: StrictStr
    test: StrictStr | None = None
    array: StrictStr = "embeddings"


def given_vectors(config: Kind | None) -> FromFile | None:
    """The files of vectors that take the place of features, or None."""
    first: Any = config
    while first is not None and first.members:
        first = first.members[0]
    return first if first is not None and first.kind == "file" else None


# The list of representations: a name, its file and its class. To add one, add a file in
# ``representations`` and a line here.

_CLASSES = {
    "patches": ("representations.patches", "Patches"),
    "scattering": ("representations.scattering", "Scattering"),
    "pca": ("representations.tables", "Pca"),
    "splines": ("representations.tables", "Splines"),
    "random_fourier": ("representations.tables", "RandomFourier"),
    "file": ("config.representation", "FromFile"),
    "differences": ("preferences.differences", "Differences"),
    "graph": ("representations.composed", "RowGraph"),
    "joined": ("representations.composed", "Joined"),
}


def kind_class(kind: str) -> type[Kind]:
    """The class of a representation. Raises KeyError for other names."""
    module, name = _CLASSES[kind]
    kind_of_name: type[Kind] = getattr(import_module(f"labeldp_trainer.{module}"), name)
    return kind_of_name


@cache
def one_of(*without: str) -> Any:
    """The type of a representation in a config, of all kinds or of some: its name stands for it
    with its defaults."""
    classes = tuple(kind_class(kind) for kind in _CLASSES if kind not in without)
    return Annotated[Union[classes], Field(discriminator="kind"), BeforeValidator(_named)]  # noqa: UP007


def _named(value: object) -> object:
    return {"kind": value} if isinstance(value, str) else value
