"""``method: {kind: clusters}``: the private histogram of an example's cluster as its label's prior.

k-means on public features, one histogram a cluster, then RRWithPrior (Deep learning with label DP,
Section 5.2) or any other mechanism that labeldp compiles for groups, with a table for each cluster.
All of it is done once, before the first step, and kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config import Clusters, LoadedConfig
from labeldp_trainer.methods.kept import require_inside, require_kept, unfit
from labeldp_trainer.methods.method import MethodBuilder, Setting
from labeldp_trainer.methods.minibatch import minibatch_method
from labeldp_trainer.methods.published.cluster_features import cluster_of_examples
from labeldp_trainer.methods.published.cluster_tables import ClusterTables
from labeldp_trainer.methods.published.label_noise import (
    KEPT,
    require_mixable,
    statement,
    true_classes,
)
from labeldp_trainer.methods.statement import Statement, written
from labeldp_trainer.methods.stepped import Stepped
from labeldp_trainer.methods.users import limited_to_users, used_rows
from labeldp_trainer.randomize import exact

CLUSTER, HISTOGRAMS, SCALE = "cluster_of_example", "noisy_histograms", "noise_scale"
_ROUNDED_UP = 1e-9


class ClustersBuilder(MethodBuilder[Clusters]):
    """Builds the method from a config whose method is ``clusters``."""

    def __init__(self, loaded: LoadedConfig, method: Clusters) -> None:
        """Raises ConfigError if the domain is missing, or given where the classes are it."""
        super().__init__(loaded, method)
        classification = loaded.config.loss == "cross_entropy"
        if classification and method.domain is not None:
            raise loaded.error(
                ("method", "domain"), "is for regression; the classes are the domain"
            )
        if not classification and method.domain is None:
            reason = "regression needs a domain, as in domain: {kind: integer, min: 0, max: 52}"
            raise loaded.error(("method",), reason)

    def build(self, setting: Setting) -> Stepped:
        """Minibatches on private labels, drawn here unless they are stored. Raises InputError."""
        require_mixable(setting, self.method.mixup)
        whole, setting = setting, limited_to_users(setting)
        kept = self._drawn(whole, setting) if setting.stored is None else self._stored(setting)
        train, label = setting.dataset.train, self.loaded.config.data.label
        return minibatch_method(
            setting,
            setting.loss.task.targets(kept[KEPT], train.source, label),
            _statement(setting, self.method, kept),
            mixup=self.method.mixup,
            keep=kept,
        )

    def _stored(self, setting: Setting) -> dict[str, NDArray[Any]]:
        """What the interrupted run drew. Raises RunFolderError."""
        stored, method, train = setting.stored, self.method, setting.dataset.train
        assert stored is not None
        n, source = train.rows, train.source
        counts = stored[HISTOGRAMS].shape if HISTOGRAMS in stored else ()
        expected = {KEPT: ("iufU", (n,)), CLUSTER: ("iu", (n,)), HISTOGRAMS: ("i", counts)}
        require_kept(stored, {**expected, SCALE: ("f", ())}, source)
        require_inside(stored[CLUSTER], 0, method.k, source)
        scale, least = float(stored[SCALE]), float(2 / exact(method.epsilon_prior))
        if not least <= scale <= least * (1 + _ROUNDED_UP):
            raise unfit(source)
        return dict(stored)

    def _drawn(self, whole: Setting, setting: Setting) -> dict[str, NDArray[Any]]:
        classes, train = setting.loss.task.classes, setting.dataset.train
        tables = ClusterTables(self.loaded, classes)
        labels = train.columns[self.loaded.config.data.label]
        if classes is not None:
            # Refuses labels that are no class; and 3.0 is 3, as elsewhere.
            labels = np.array(classes)[true_classes(setting)]
        # features are public: of all rows
        cluster = cluster_of_examples(whole, self.method)[used_rows(whole)]
        private = tables.randomize(labels, cluster, train.source)
        return {
            KEPT: private.labels,
            CLUSTER: cluster,
            HISTOGRAMS: private.histograms,
            SCALE: np.array(private.scale),
        }


def _statement(setting: Setting, method: Clusters, kept: Mapping[str, NDArray[Any]]) -> Statement:
    n, sizes = setting.dataset.train.rows, np.bincount(kept[CLUSTER], minlength=method.k)
    kind = method.mechanism.get("kind")
    return statement(
        setting,
        epsilon=float(exact(method.epsilon_prior) + exact(method.epsilon)),
        mechanism=(
            f"{n:,} labels were counted once, in one histogram a cluster of public features "
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
