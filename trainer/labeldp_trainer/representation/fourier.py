"""Random Fourier features of a Gaussian kernel (Rahimi and Recht 2007)."""

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32
from numpy.typing import NDArray

from labeldp_trainer.config.representation import RandomFourier
from labeldp_trainer.models.layers import cos, matmul
from labeldp_trainer.representation.kind import FeatureSource, Kind, Learnt
from labeldp_trainer.representation.tables import columns_raw, learn_columns

_SAMPLE = 1000  # rows whose distances give the bandwidth


def _learn(source: FeatureSource) -> Learnt:
    config = source.config
    assert isinstance(config, RandomFourier)
    learnt = learn_columns(source)
    random = np.random.default_rng(source.seed)
    sample = _sample(source, learnt, random)
    bandwidth = config.scale * _median_distance(sample)
    source.require(bandwidth > 0, "most rows have the same features, so no bandwidth can be chosen")
    directions = random.standard_normal((sample.shape[1], config.features)) / bandwidth
    phases = random.uniform(0, 2 * math.pi, config.features)
    drawn = {"directions": directions.astype(np.float32), "phases": phases.astype(np.float32)}
    return Learnt({**learnt.arrays, **drawn}, learnt.notes)


def _raw(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
    """[b, features]: √2·cos(directions·x + phase)."""
    angles = matmul(columns_raw(x, arrays), arrays["directions"])
    return math.sqrt(2) * cos(angles + arrays["phases"][None, :])


RANDOM_FOURIER = Kind(_learn, _raw, chunk=512)


def _sample(
    source: FeatureSource, learnt: Learnt, random: np.random.Generator
) -> NDArray[np.float32]:
    """Columns of random rows of the training part."""
    chosen = np.sort(random.permutation(source.parts[0].rows)[:_SAMPLE])
    x = jax.tree.map(lambda leaf: jnp.asarray(leaf[chosen]), source.features[0])
    arrays = {name: jnp.asarray(array) for name, array in learnt.arrays.items()}
    return np.asarray(columns_raw(x, arrays))


def _median_distance(points: NDArray[np.float32]) -> float:
    wide = points.astype(np.float64)
    squares = np.einsum("nd,nd->n", wide, wide)
    distances = squares[:, None] + squares[None, :] - 2 * wide @ wide.T
    above = distances[np.triu_indices(len(wide), 1)]
    return math.sqrt(max(float(np.median(above)), 0.0)) if len(above) else 0.0
