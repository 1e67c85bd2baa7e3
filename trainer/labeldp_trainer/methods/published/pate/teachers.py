"""Teachers: ridge regressions to one-hot labels, each on separate rows, and how they vote.

They vote on rows in the middle of clusters, which are chosen from features alone.
"""

from itertools import pairwise

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64

from labeldp_trainer.methods.published.k_means import k_means, principal_components

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
