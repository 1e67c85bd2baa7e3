"""``method: {kind: clusters}``: the private histogram of an example's cluster as its label's prior.

k-means on public features, one histogram per cluster, then RRWithPrior (Deep learning with label
DP, Section 5.2) or any other mechanism that labeldp compiles for groups, with a table for each
cluster. All of it is done once, before the first step, and kept. Accuracy was not measured.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config import Clusters, LoadedConfig
from labeldp_trainer.config.data import TableData
from labeldp_trainer.data.arrays import read_embeddings
from labeldp_trainer.methods.method import Fits, Setting
from labeldp_trainer.methods.minibatch import minibatch_method
from labeldp_trainer.methods.published.cluster_tables import ClusterTables
from labeldp_trainer.methods.published.k_means import Floats, k_means, principal_components
from labeldp_trainer.methods.published.label_noise import (
    KEPT,
    Arrays,
    LabelNoiseBuilder,
    statement,
)
from labeldp_trainer.methods.statement import Statement, written
from labeldp_trainer.methods.stepped import Stepped
from labeldp_trainer.methods.true_labels import true_classes
from labeldp_trainer.methods.users import used_rows
from labeldp_trainer.randomize import epsilon_up, exact

CLUSTER, HISTOGRAMS, SCALE = "cluster_of_example", "noisy_histograms", "noise_scale"
_ROUNDED_UP = 1e-9
_MOST_COLUMNS = 8192  # a covariance matrix of 0.5 GB


class ClustersBuilder(LabelNoiseBuilder[Clusters]):
    """Builds the method from a config whose method is ``clusters``."""

    for_classes = False

    def __init__(self, loaded: LoadedConfig, method: Clusters) -> None:
        """Raises ConfigError if the domain is missing, or given although the classes are the
        domain."""
        super().__init__(loaded, method)
        classification = loaded.config.loss == "cross_entropy"
        if classification and method.domain is not None:
            raise loaded.error(
                ("method", "domain"), "is for regression; for classes, the classes are the domain"
            )
        if not classification and method.domain is None:
            reason = "regression needs a domain, as in domain: {kind: integer, min: 0, max: 52}"
            raise loaded.error(("method",), reason)

    def drawn(self, setting: Setting, whole: Setting) -> Arrays:
        """Clusters by the features of all rows, which are public; their histograms; labels."""
        classes, train = setting.loss.task.classes, setting.dataset.train
        tables = ClusterTables(self.loaded, classes)
        labels = train.columns[self.loaded.config.data.label]
        if classes is not None:
            labels = np.array(classes)[true_classes(setting)]
        cluster = cluster_of_examples(whole, self.method)[used_rows(whole)]
        private = tables.randomize(labels, cluster, train.source)
        return {
            KEPT: private.labels,
            CLUSTER: cluster,
            HISTOGRAMS: private.histograms,
            SCALE: np.array(private.scale),
        }

    def expected(self, setting: Setting, stored: Arrays) -> Mapping[str, Fits]:
        """The same arrays; histograms are only of clusters that have rows."""
        n = setting.dataset.train.rows
        counts = stored[HISTOGRAMS].shape if HISTOGRAMS in stored else ()
        least = float(2 / exact(self.method.epsilon_prior))
        return {
            KEPT: Fits("iufU", (n,)),
            CLUSTER: Fits("iu", (n,), (0, self.method.k)),
            HISTOGRAMS: Fits("i", counts),
            SCALE: Fits("f", (), (least, least * (1 + _ROUNDED_UP))),
        }

    def trained(self, setting: Setting, kept: Arrays) -> Stepped:
        """Minibatches on private labels."""
        train, label = setting.dataset.train, self.loaded.config.data.label
        return minibatch_method(
            setting,
            setting.loss.task.targets(kept[KEPT], train.source, label),
            _statement(setting, self.method, kept),
            mixup=self.method.mixup,
            keep=kept,
        )


def cluster_of_examples(setting: Setting, method: Clusters) -> NDArray[np.int64]:
    """[n] the cluster of each training example. Raises InputError."""
    rows = setting.dataset.train.rows
    if method.k > rows:
        reason = f"{method.k:,} clusters are more than the {rows:,} examples"
        raise setting.loaded.error(("method", "k"), reason)
    if method.embeddings is None:
        points = _features(setting, method)
    else:
        path, array = setting.loaded.path(method.embeddings.file), method.embeddings.array
        taken = setting.loaded.config.data.rows
        points = read_embeddings(path, array, rows, taken).astype(np.float64)
    if points.shape[1] > _MOST_COLUMNS:
        reason = f"{points.shape[1]:,} columns (one per category) are too many to cluster by"
        raise setting.loaded.error(("method", "k"), f"{reason}; list some of them under columns")
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
        return np.asarray(features, np.float64).reshape(len(features), -1)
    wanted, numeric = method.columns, data.numeric_features
    parts = []
    for name in wanted or (*numeric, *data.categorical):
        if name in numeric:
            parts.append(features["numeric"][:, [numeric.index(name)]].astype(np.float64))
        elif name in data.categorical:
            place = data.categorical.index(name)
            codes = np.arange(setting.dataset.shape.vocabularies[place])
            parts.append((features["categorical"][:, [place]] == codes[None, :]).astype(float))
        else:
            reason = f"{name!r} is not a feature of data.numeric, data.categorical or data.dates"
            raise setting.loaded.error(("method", "columns"), reason)
    return np.concatenate(parts, axis=1)


def _statement(setting: Setting, method: Clusters, kept: Arrays) -> Statement:
    n, sizes = setting.dataset.train.rows, np.bincount(kept[CLUSTER], minlength=method.k)
    kind = method.mechanism.get("kind")
    return statement(
        setting,
        epsilon=epsilon_up(exact(method.epsilon_prior) + exact(method.epsilon)),
        mechanism=(
            f"{n:,} labels were counted once, in one histogram per cluster of public features "
            f"({method.k:,} in all), with discrete Laplace noise of scale "
            f"{float(kept[SCALE]):.6g} (ε = {written(method.epsilon_prior)}); each label was "
            f"randomized once with {kind} for its cluster's histogram "
            f"(ε = {written(method.epsilon)})"
        ),
        details={
            "epsilon_prior": method.epsilon_prior,
            "epsilon_label": method.epsilon,
            "l1_sensitivity": 2,
            "noise_scale": float(kept[SCALE]),
            "clusters": method.k,
            "largest_cluster": int(sizes.max()),
            "empty_clusters": int((sizes == 0).sum()),
            "mechanism": kind,
        },
        released="the private labels, the noisy histograms",
    )
