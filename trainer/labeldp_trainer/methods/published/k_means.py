"""Clusters of points, and the directions in which they differ most. No label is read."""

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

_ITERATIONS = 30
Floats = NDArray[np.float64]


def k_means(points: Floats, clusters: int, seed: int) -> NDArray[np.int64]:
    """[n] the cluster 0 … k − 1 of each of the points [n, d]; clusters may be empty; k ≤ n.

    Lloyd's algorithm from the centres of k-means++ (Arthur and Vassilvitskii 2007).
    """
    centres = _spread(points, clusters, np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="One of the clusters is empty")
        _, nearest = kmeans2(points, centres, iter=_ITERATIONS, minit="matrix")
    return np.asarray(nearest, np.int64)


def principal_components(points: Floats, components: int) -> Floats:
    """[n, min(d, components)] points [n, d] along the directions of largest variance.

    Points with at most that many dimensions stay unchanged.
    """
    if points.shape[1] <= components:
        return points
    centred = points - points.mean(axis=0)[None, :]
    _, directions = np.linalg.eigh(centred.T @ centred)
    return centred @ directions[:, ::-1][:, :components]


def _spread(points: Floats, clusters: int, random: np.random.Generator) -> Floats:
    """Points as centres, each drawn in proportion to its squared distance from those before it."""
    chosen = [int(random.integers(len(points)))]
    distances = np.full(len(points), np.inf)
    while len(chosen) < clusters:
        step = points - points[chosen[-1]][None, :]
        distances = np.minimum(distances, np.einsum("nd,nd->n", step, step))
        total = distances.sum()
        # With fewer distinct points than centres, other centres may be anywhere: they stay empty.
        weights = distances / total if total > 0 else None
        chosen.append(int(random.choice(len(points), p=weights)))
    return points[chosen]
