"""Students: a linear model on public vectors, from noisy votes on a few rows. Reads no label.

The votes on a row give a probability of each class: with noise of variance σ² and a winner that
leads by m votes, the odds of two classes with noisy counts a and b are exp((a − b)·m/σ²). From
these, every row gets its likeliest class: ``propagation`` uses a graph of nearest neighbours of all
rows, ``ridge`` the regression that teachers use. Then a model is fitted to all rows.
"""

import numpy as np
from jaxtyping import Float32, Float64, Int64
from scipy.sparse import csr_matrix

from labeldp_trainer.config import Pate
from labeldp_trainer.config.method import Head
from labeldp_trainer.data.labels import Coded
from labeldp_trainer.linear.labels import fitted_labels
from labeldp_trainer.methods.published.k_means import principal_components
from labeldp_trainer.methods.published.pate.teachers import answers
from labeldp_trainer.one_release.rows import PublicRows

LEAD = 0.5
"""By how many of all votes a winner leads, roughly."""
_MOST_ROWS = 20_000  # of a graph
_NEIGHBOURS, _COMPONENTS, _SHARPNESS = 10, 100, 3
_KEPT, _ITERATIONS = 0.95, 30
_CHUNK = 256


def probabilities(
    counts: Float64[np.ndarray, "q k"], deviation: float, teachers: int
) -> Float64[np.ndarray, "q k"]:
    """The probability of each class, given noisy counts of the votes of ``teachers`` teachers."""
    odds = counts * (LEAD * teachers / deviation**2)
    odds -= odds.max(axis=1, keepdims=True)
    found = np.exp(odds)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def fitted_votes(
    public: PublicRows,
    points: Float32[np.ndarray, "n d"],
    queries: Int64[np.ndarray, " q"],
    voted: Float64[np.ndarray, "q k"],
    method: Pate,
    head: Head,
) -> tuple[Float32[np.ndarray, "p k"], Float32[np.ndarray, " k"]]:
    """Weights of the vectors' columns, and biases: they give logits.

    ``points`` are the vectors in the metric of the teachers; ``voted`` are the probabilities of the
    classes for the rows ``queries``.
    """
    rows = _with_others(queries, len(points), method.seed)
    if method.student == "propagation":
        classes = propagated(points[rows].astype(np.float64), voted)
    else:
        classes = answers(points[queries], voted, points[rows])
    targets = Coded.one_hot(classes.astype(np.int32), voted.shape[1])
    shares = np.bincount(targets.codes, minlength=voted.shape[1]) / len(rows)
    return fitted_labels(
        public.vectors[rows], public.spectrum, targets, head, groups=public.groups, shares=shares
    )


def _with_others(queries: Int64[np.ndarray, " q"], n: int, seed: int) -> Int64[np.ndarray, " r"]:
    """The queries, followed by other random rows, up to the most rows of a graph."""
    others = np.setdiff1d(np.arange(n), queries)
    more = np.random.default_rng(seed).permutation(others)[: max(_MOST_ROWS - len(queries), 0)]
    return np.concatenate([queries, np.sort(more)])


def propagated(
    points: Float64[np.ndarray, "r d"], voted: Float64[np.ndarray, "q k"]
) -> Int64[np.ndarray, " r"]:
    """The likeliest class of each point, of which the first q were voted on.

    F ← α·S·F + (1 − α)·Y with S the normalized graph of nearest neighbours (learning with local and
    global consistency, Zhou et al. 2003). Y is divided by the root of each class's total in the
    votes, so that a frequent class does not spread over the rows of a rare one.
    """
    graph = neighbours(principal_components(points, _COMPONENTS))
    start = np.zeros((len(points), voted.shape[1]))
    start[: len(voted)] = voted / np.sqrt(np.maximum(voted.sum(axis=0), 1))[None, :]
    found = start.copy()
    for _ in range(_ITERATIONS):
        found = _KEPT * (graph @ found) + (1 - _KEPT) * start
    return np.asarray(np.argmax(found, axis=1), np.int64)


def neighbours(points: Float64[np.ndarray, "r d"]) -> csr_matrix:
    """[r, r] D^−½·A·D^−½ of the graph of nearest neighbours by angle; each side's choice counts."""
    sizes = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300)
    unit, r = (points / sizes).astype(np.float32), len(points)
    count = min(_NEIGHBOURS, r - 1)
    places, near = np.empty((r, count), np.int64), np.empty((r, count))
    for start in range(0, r, _CHUNK):
        cosines = unit[start : start + _CHUNK] @ unit.T
        own = np.arange(len(cosines))
        cosines[own, start + own] = -np.inf
        nearest = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        places[start : start + _CHUNK] = nearest
        near[start : start + _CHUNK] = np.take_along_axis(cosines, nearest, axis=1)
    weights = np.maximum(near, 0).ravel() ** _SHARPNESS
    one_way = csr_matrix((weights, (np.repeat(np.arange(r), count), places.ravel())), (r, r))
    both = one_way.maximum(one_way.T)
    degrees = np.maximum(np.asarray(both.sum(axis=1)).ravel(), 1e-12)
    scale = 1 / np.sqrt(degrees)
    return csr_matrix(both.multiply(scale[:, None]).multiply(scale[None, :]))
