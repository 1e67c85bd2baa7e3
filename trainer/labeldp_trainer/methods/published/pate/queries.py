"""Which rows the teachers are asked about: those in the middle of clusters, from features alone."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Int64

from labeldp_trainer.methods.published.k_means import k_means, principal_components

_COMPONENTS = 50  # to cluster by
_SAMPLE, _FOR_EACH = 10_000, 5  # rows to cluster, at least and for each query


def query_rows(
    points: Float32[np.ndarray, "n d"], queries: int, seed: int
) -> Int64[np.ndarray, " q"]:
    """q ≤ n different rows of the points, in order: the nearest to the centres of k-means.

    Where clusters are empty, as of rows that are all alike, others are taken at random.
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
