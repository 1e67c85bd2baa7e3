"""Representations that are made from others: the graph of rows, and several side by side.

The graph is of rows that are alike, and a row becomes its place there: a spectral embedding.

Belkin and Niyogi 2003, Laplacian eigenmaps. The landmarks are joined to their neighbours by
weights exp(−d²/(s·s′)), where s is the distance to the 7th neighbour (Zelnik-Manor and Perona 2004,
Self-tuning spectral clustering) and d is between vectors of length 1. With the eigenvectors of the
normalized graph as coordinates, any row gets the weighted mean of its nearest landmarks over the
eigenvalue (Bengio et al. 2004, Out-of-sample extensions). This holds for landmarks too, of which
none is its own neighbour: so rows of training and new rows are treated alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float32
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, StrictInt, StrictStr

from labeldp_trainer.config.data import Number
from labeldp_trainer.config.representation import (
    FeatureSource,
    Kind,
    LearnedKind,
    Learnt,
    Steps,
    given_vectors,
    one_of,
)
from labeldp_trainer.operators import clip, matmul

if TYPE_CHECKING:
    from scipy import sparse

    Member = Kind
    AnyButJoined = Kind
else:
    Member = one_of("random_fourier", "graph", "joined")

Floats = NDArray[np.float32]

NEAR_DIMS, EVEN = 256, 0.3
"""How many principal components decide which rows are alike, and the power of their variances.

Fixed on the last 10,000 training rows of MNIST and Fashion-MNIST and neighbours among the first
8,000. With power 1, that is, without whitening, neighbours have the same class less often.
"""
_LOCAL = 7  # the neighbour whose distance is the local scale
_SHORTEST = 1e-2  # local scale, as a share of the median one: rows may be there twice
_FAR = 20.0  # no neighbour counts less than e^-20: a row beside many equal ones keeps some
_LARGEST = 6.0  # coordinate, in standard deviations: some eigenvectors are of a few rows alone
_ITSELF, _NEVER = 1e-4, -1e4  # squared distance of a landmark that is the row; what it counts
_LEAST_VALUE = 0.2  # by which a mean of neighbours is divided
_ROWS = 256  # whose similarities to all landmarks are held at a time
_MORE, _ROUNDS, _DEGREE = 32, 3, 12  # of the search for eigenvectors
_NEIGHBOURS, _EIGENVECTORS = "neighbours", "eigenvectors"


def _several(value: object) -> object:
    """One kind stands for a list with one."""
    return value if isinstance(value, list | tuple) else (value,)


class RowGraph(LearnedKind):
    """Where a row is in the graph of rows that are alike, by the eigenvectors of the graph.

    Belkin and Niyogi 2003; local scales by Zelnik-Manor and Perona 2004. A row gets the weighted
    mean of its neighbours among the landmarks (Nyström; Bengio et al. 2004).
    """

    kind: Literal["graph"]
    is_composed: ClassVar[bool] = True
    chunk: ClassVar[int] = 64
    of: Annotated[
        tuple[Member, ...], Field(min_length=1, max_length=4), BeforeValidator(_several)
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

    @property
    def members(self) -> tuple[Kind, ...]:
        """Whose vectors say which rows are alike."""
        return self.of

    def learn(self, source: FeatureSource) -> Learnt:
        """The graph of the landmarks. Raises ConfigError if there are too few rows."""
        return _learn(self, source)

    @staticmethod
    def raw(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
        """[b, dims]."""
        return _means(x, arrays)


def _learn(config: RowGraph, source: FeatureSource) -> Learnt:
    """near, spread [d]: which of the vectors' columns, times what; same [d, d]: which are of one
    representation; landmarks [d, m]; local [m] and shortest [1]: distances; coordinates [m, dims];
    order [neighbours + 1]: only its length counts.

    Raises ConfigError if there are too few rows.
    """
    spectrum, groups = source.spectrum, source.groups
    assert spectrum is not None and groups is not None
    count = int(groups.max()) + 1
    of_each = [np.flatnonzero(groups == group)[: NEAR_DIMS // count] for group in range(count)]
    columns = np.concatenate(of_each).astype(np.int32)
    spread = ((spectrum[columns] / spectrum[columns].max()) ** (EVEN / 2)).astype(np.float32)
    same = (groups[columns][:, None] == groups[columns][None, :]) * np.float32(count)
    near = {"near": columns, "spread": spread, "same": same}
    parts = [
        part[start : start + _ROWS]
        for part in source.features
        for start in range(0, len(part), _ROWS)
    ]
    rows = np.concatenate([_directions(part, near) for part in parts])
    most = config.neighbours + 1
    reason = f"{len(rows):,} rows are too few for a graph with {config.neighbours} neighbours"
    source.require(len(rows) > most, reason, "neighbours")
    if len(rows) > config.landmarks:
        random = np.random.default_rng(source.seed)
        rows = rows[np.sort(random.permutation(len(rows))[: config.landmarks])]
    nearest, distances = _nearest(rows, config.neighbours, source.steps)
    local = distances[:, min(_LOCAL, config.neighbours) - 1]
    shortest = np.float32(_SHORTEST * np.median(local))
    source.require(bool(shortest > 0), "most rows are the same as many others", "of")
    local = np.maximum(local, shortest)
    relative = np.square(distances) / (local[:, None] * local[nearest])
    weights = np.exp(-np.minimum(relative, _FAR))
    values, coordinates = _eigenvectors(_graph(nearest, weights), config.dims, source)
    scales = 1 / np.sqrt(config.scale + np.maximum(1 - values, 0))
    scales /= np.maximum(values, _LEAST_VALUE)
    return Learnt(
        {
            **near,
            "landmarks": np.ascontiguousarray(rows.T),
            "local": local,
            "shortest": np.array([shortest], np.float32),
            "coordinates": (coordinates * scales[None, :]).astype(np.float32),
            "order": np.arange(config.neighbours + 1, dtype=np.int32),
        },
        (f"the graph has {len(rows):,} landmarks, which an exported model contains",),
    )


def _means(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
    """[b, dims]: the weighted mean of the coordinates of the nearest landmarks."""
    from labeldp_trainer.models.layers import relu, softmax, sqrt, top_k  # noqa: PLC0415

    count = arrays["order"].shape[0]
    similar, places = top_k(matmul(_directions(x, arrays), arrays["landmarks"]), count)
    squares = relu(2.0 - 2.0 * similar)
    shortest = arrays["shortest"]
    local = relu(sqrt(squares[:, [min(_LOCAL, count) - 1]]) - shortest[None, :]) + shortest[None, :]
    itself = 1.0 - clip(squares * (1 / _ITSELF), 0.0, 1.0)
    weights = softmax(_NEVER * itself - squares / (local * arrays["local"][places]), 1)
    return (arrays["coordinates"][places] * weights[:, :, None]).sum(1)


def _directions(x: Any, arrays: Mapping[str, Any]) -> Any:
    """[b, d] of length 1; each representation has the same share of it."""
    from labeldp_trainer.models.layers import sqrt  # noqa: PLC0415

    near = x[:, arrays["near"]] * arrays["spread"][None, :]
    return near / sqrt(matmul(near * near, arrays["same"]) + 1e-12)


def _nearest(rows: Floats, count: int, steps: Steps) -> tuple[NDArray[np.int32], Floats]:
    """[n, count] the nearest other rows, nearest first, and their distances: exact, in blocks."""
    nearest = np.empty((len(rows), count), np.int32)
    distances = np.empty((len(rows), count), np.float32)
    for start in range(0, len(rows), _ROWS):
        steps(_NEIGHBOURS, start, len(rows))
        similar = rows[start : start + _ROWS] @ rows.T
        own = np.arange(len(similar))
        similar[own, start + own] = -2.0
        few = np.argpartition(similar, -count, axis=1)[:, -count:]
        similarities = np.take_along_axis(similar, few, axis=1)
        order = np.argsort(-similarities, axis=1, kind="stable")
        nearest[start : start + _ROWS] = np.take_along_axis(few, order, axis=1)
        squares = 2 - 2 * np.take_along_axis(similarities, order, axis=1)
        distances[start : start + _ROWS] = np.sqrt(np.maximum(squares, 0))
    steps(_NEIGHBOURS, len(rows), len(rows))
    return nearest, distances


def _graph(nearest: NDArray[np.int32], weights: Floats) -> sparse.csr_matrix:
    """Two rows are joined if one is a neighbour of the other."""
    from scipy import sparse  # noqa: PLC0415

    n, count = nearest.shape
    places = np.arange(0, n * count + 1, count)
    directed = sparse.csr_matrix((weights.ravel(), nearest.ravel(), places), shape=(n, n))
    return sparse.csr_matrix(directed.maximum(directed.T))


def _eigenvectors(
    graph: sparse.csr_matrix, count: int, source: FeatureSource
) -> tuple[NDArray[np.float64], Floats]:
    """The largest eigenvalues of the normalized graph, and the eigenvectors [n, count] of steps
    of a walk on it, scaled to a mean square of 1 and cut.

    Subspace iteration with Chebyshev polynomials (Zhou, Saad, Tiago and Chelikowsky 2006): the last
    few vectors are approximate, which only turns them within a space of similar vectors.
    """
    from scipy import sparse  # noqa: PLC0415

    n = graph.shape[0]
    roots = np.sqrt(np.asarray(graph.sum(axis=1)).ravel()).astype(np.float32)
    inverse = sparse.diags(1 / roots)
    normal = sparse.csr_matrix(inverse @ graph @ inverse, dtype=np.float32)
    count = min(count + 1, n - 1)  # one is the same for all rows, and is left out later
    width = min(count + _MORE, n)
    random = np.random.default_rng(source.seed)
    vectors = random.standard_normal((n, width), dtype=np.float32)
    cut = 0.0
    for turn in range(_ROUNDS):
        source.steps(_EIGENVECTORS, turn, _ROUNDS)
        vectors = np.linalg.qr(_filtered(normal, vectors, cut))[0]
        inner = (vectors.T @ (normal @ vectors)).astype(np.float64)
        values, turned = np.linalg.eigh((inner + inner.T) / 2)
        values, turned = values[::-1], turned[:, ::-1]
        vectors = vectors @ turned.astype(np.float32)
        cut = float(np.clip(values[-1], -0.9, 0.95))
    source.steps(_EIGENVECTORS, _ROUNDS, _ROUNDS)
    vectors = vectors[:, :count] / roots[:, None]
    vectors /= np.sqrt(np.square(vectors).mean(axis=0, keepdims=True)) + np.float32(1e-12)
    return values[:count], np.clip(vectors, -_LARGEST, _LARGEST)


def _filtered(normal: sparse.csr_matrix, start: Floats, cut: float) -> Floats:
    """A polynomial of the graph times vectors: small for eigenvalues from −1 to ``cut``."""
    middle, half = np.float32((cut - 1) / 2), np.float32((cut + 1) / 2)
    before, after = start, (normal @ start - middle * start) / half
    for _ in range(_DEGREE - 1):
        before, after = after, 2 * (normal @ after - middle * after) / half - before
        size = np.abs(after).max()  # it grows as fast as the polynomial
        before, after = before / size, after / size
    whole: Floats = after / np.linalg.norm(after, axis=0, keepdims=True)
    return whole


def _inner_rules(config: Kind) -> Iterator[tuple[bool, str]]:
    """Which rows are read, and how columns are scaled, is for the outermost to say."""
    for one in config.members:
        given = one.model_fields_set & {"unlabelled"}
        yield bool(given), "of: unlabelled belongs to the outer representation"
        yield not getattr(one, "whiten", True), "of: whiten must be true"
    inner = config.members
    files = [given_vectors(one) for one in inner]
    same = {None if file is None else (file.train, file.test, file.array) for file in files}
    yield len(same) > 1, "of: representations of files cannot be joined with others"
    again = {one.model_dump_json() for one in inner}
    yield len(again) < len(inner), "of: has the same representation twice"


if not TYPE_CHECKING:
    AnyButJoined = one_of("joined")


class Joined(Kind):
    """Several representations side by side; how much each counts is found from the labels that a
    method releases."""

    kind: Literal["joined"]
    is_composed: ClassVar[bool] = True
    chunk: ClassVar[int] = 1024
    of: Annotated[tuple[AnyButJoined, ...], Field(min_length=2, max_length=8)] = Field(
        description="kinds, or representations with options"
    )
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

    @property
    def members(self) -> tuple[Kind, ...]:
        """Those that are side by side."""
        return self.of
