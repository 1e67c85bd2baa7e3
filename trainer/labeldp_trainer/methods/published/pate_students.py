"""Teachers and linear students of ``pate``."""

from itertools import pairwise

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64
from scipy.sparse import csr_matrix

from labeldp_trainer.config import Pate
from labeldp_trainer.config.method import Head
from labeldp_trainer.data.labels import Coded
from labeldp_trainer.linear.fit import fitted_labels
from labeldp_trainer.methods.published.clusters import k_means, principal_components
from labeldp_trainer.one_release.rows import PublicRows

PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""A teacher chooses one of these, times the number of its rows."""
_COMPONENTS = 50  # to cluster by
_SAMPLE, _FOR_EACH = 10_000, 5  # rows to cluster, at least and for each query
_SURE = 1 - 1e-6


def query_rows(
    points: Float32[np.ndarray, "n d"], queries: int, seed: int
) -> Int64[np.ndarray, " q"]:
    """q ≤ n different rows of the points, in order: the nearest to the centres of k-means.

    If clusters are empty, for example because all rows are equal, other rows are taken at random.
    """
    random = np.random.default_rng(seed)
    sample = random.permutation(len(points))[: max(_SAMPLE, _FOR_EACH * queries)]
    near = principal_components(points[sample].astype(np.float64), _COMPONENTS)
    cluster = k_means(near, queries, seed)
    sizes = np.maximum(np.bincount(cluster, minlength=queries), 1)
    centres = np.zeros((queries, near.shape[1]))
    np.add.at(centres, cluster, near)
    away = np.square(near - (centres / sizes[:, None])[cluster]).sum(axis=1)
    order = np.lexsort((away, cluster))
    first = np.unique(cluster[order], return_index=True)[1]
    chosen = sample[order[first]]
    others = np.setdiff1d(sample, chosen)
    more = random.permutation(others)[: queries - len(chosen)]
    return np.sort(np.concatenate([chosen, more])).astype(np.int64)


def parts(units: int, teachers: int, seed: int) -> Int32[np.ndarray, " u"]:
    """[u] the teacher of each of u units, at random, evenly, without reading labels."""
    found = np.empty(units, np.int32)
    order = np.random.default_rng(seed).permutation(units)
    found[order] = np.arange(units) % teachers
    return found


def votes(
    points: Float32[np.ndarray, "n d"],
    labels: Int32[np.ndarray, " n"],
    teacher: Int32[np.ndarray, " n"],
    asked: Float32[np.ndarray, "q d"],
    classes: int,
) -> Int64[np.ndarray, "q k"]:
    """How many teachers answer each of q queries with each class.

    ``teacher`` numbers the teacher of each row; one without rows votes for the first class.
    A teacher's q answers depend on its own rows and labels alone: one vote per query.
    """
    one_hot, order = np.eye(classes), np.argsort(teacher, kind="stable")
    bounds = np.searchsorted(teacher[order], np.arange(teacher.max() + 2))
    found, queries = np.zeros((len(asked), classes), np.int64), np.arange(len(asked))
    for start, end in pairwise(bounds):
        rows = order[start:end]
        found[queries, answers(points[rows], one_hot[labels[rows]], asked)] += 1
    return found


def answers(
    points: Float32[np.ndarray, "m d"],
    targets: Float64[np.ndarray, "m k"],
    asked: Float32[np.ndarray, "q d"],
) -> Int64[np.ndarray, " q"]:
    """The likeliest class of each query according to m rows; of equally likely ones, the first.

    Ridge regression to targets, the probabilities of k classes; the penalty is the one of least
    squared error when each row is predicted from the others (leave one out), which has a closed
    form.
    """
    if not len(points):
        return np.zeros(len(asked), np.int64)
    points = points.astype(np.float64)
    base = targets.mean(axis=0)
    u, values, _ = np.linalg.svd(points, full_matrices=False)
    squares = np.square(values)
    seen = u.T @ (targets - base)
    least, chosen = np.inf, 0.0
    for penalty in (share * len(points) for share in PENALTIES):
        kept = squares / (squares + penalty)
        own = np.minimum(np.square(u) @ kept, _SURE)  # a row's weight in its own prediction
        left = (targets - base - u @ (kept[:, None] * seen)) / (1 - own)[:, None]
        error = float(np.square(left).sum())
        if error < least:
            least, chosen = error, penalty
    weights = points.T @ (u @ (seen / (squares + chosen)[:, None]))
    return np.asarray(np.argmax(asked @ weights + base, axis=1), np.int64)


# Students: a linear model on public vectors, from noisy votes on a few rows. Reads no label.
#
# The votes on a row give a probability of each class: with noise of variance σ² and a winner that
# leads by m votes, the odds of two classes with noisy counts a and b are exp((a − b)·m/σ²). From
# these, every row gets its likeliest class: ``propagation`` uses a graph of nearest neighbours of
# all rows, ``ridge`` the regression that teachers use. Then a model is fitted to all rows.

LEAD = 0.5
"""By how many of all votes a winner leads, roughly."""
_MOST_ROWS = 20_000  # of a graph
_NEIGHBOURS, _COMPONENTS_STUDENT, _SHARPNESS = 10, 100, 3
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
    graph = neighbours(principal_components(points, _COMPONENTS_STUDENT))
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
