"""What examples are clustered by: columns of a table, pixels, or embeddings; no label enters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config import Clusters
from labeldp_trainer.config.data import TableData
from labeldp_trainer.data.arrays import read_embeddings
from labeldp_trainer.methods.method import Setting
from labeldp_trainer.methods.published.k_means import Floats, k_means, principal_components

_MOST_COLUMNS = 8192  # a covariance matrix of 0.5 GB


def cluster_of_examples(setting: Setting, method: Clusters) -> NDArray[np.int64]:
    """[n] the cluster of each training example. Raises InputError."""
    rows = setting.dataset.train.rows
    if method.k > rows:
        reason = f"{method.k:,} are more than the {rows:,} examples"
        raise setting.loaded.error(("method", "k"), reason)
    if method.embeddings is None:
        points = _features(setting, method)
    else:
        path, array = setting.loaded.path(method.embeddings.file), method.embeddings.array
        taken = setting.loaded.config.data.rows
        points = read_embeddings(path, array, rows, taken).astype(np.float64)
    if points.shape[1] > _MOST_COLUMNS:
        reason = f"{points.shape[1]:,} columns (a category is one) are too many to cluster by"
        raise setting.loaded.error(("method", "k"), f"{reason}: name some under columns")
    points = principal_components(points, method.components)
    return k_means(points, method.k, setting.loaded.config.training.seed)


def _features(setting: Setting, method: Clusters) -> Floats:
    """[n, d]: standardised numbers, categories as one-hot columns, pixels in a row."""
    data, features = setting.loaded.config.data, setting.dataset.train.features
    if not isinstance(features, Mapping) or not isinstance(data, TableData):
        if method.columns is not None:
            what = (
                "a representation has"
                if setting.dataset.input_digest
                else f"{data.kind} files have"
            )
            raise setting.loaded.error(("method", "columns"), f"{what} no columns")
        flat: Floats = np.asarray(features, np.float64).reshape(len(features), -1)
        return flat
    wanted = method.columns or (*data.numeric, *data.categorical)
    parts = []
    for name in wanted:
        if name in data.numeric:
            parts.append(features["numeric"][:, [data.numeric.index(name)]].astype(np.float64))
        elif name in data.categorical:
            place = data.categorical.index(name)
            codes = np.arange(setting.dataset.shape.vocabularies[place])
            parts.append((features["categorical"][:, [place]] == codes[None, :]).astype(float))
        else:
            reason = f"{name!r} is no feature: it is not under data.numeric or data.categorical"
            raise setting.loaded.error(("method", "columns"), reason)
    return np.concatenate(parts, axis=1)
