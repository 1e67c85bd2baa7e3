"""``method: {kind: clusters}``: the private histogram of an example's cluster as its label's prior.

k-means on public features, one histogram per cluster, then RRWithPrior (Deep learning with label
DP, Section 5.2), with a table for each cluster. All of it is done once, before the first step, and
kept. Accuracy was not measured.
"""

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int64
from labeldp_runtime import Randomizer
from labeldp_verify.forms import Groups
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

from labeldp_compile.toolkit import (
    NOISE,
    Prior,
    PublicFacts,
    TablePrior,
    assemble,
    discrete_laplace,
    parse_spec,
    plan_each_table,
    project_to_total,
    require_compilable,
)
from labeldp_trainer.config import Clusters
from labeldp_trainer.config.representation import MOST_COLUMNS
from labeldp_trainer.data import FeatureShape
from labeldp_trainer.data.labels import as_numpy
from labeldp_trainer.errors import InputError
from labeldp_trainer.methods.method import Setting, true_classes, used_rows
from labeldp_trainer.methods.published.label_noise import (
    KEPT,
    Arrays,
    LabelNoiseBuilder,
    statement,
)
from labeldp_trainer.methods.statement import Statement, written
from labeldp_trainer.methods.stepped import Stepped, minibatch_method
from labeldp_trainer.randomize import epsilon_up, exact

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


# Clusters as the public groups of a spec: the compiler's priors by group, and its tables.
#
# A user who asks for clusters expects labels to differ between them and chooses ε_prior. So every
# cluster has its own histogram, all of ε_prior is spent on these, and none uses the others. If a
# cluster is nearly one class, its counts show it through much noise. ``labeldp compile`` cannot
# know this. It spends ε on the histogram of all rows first, and pools groups with too few rows.


class PrivateClusters(NamedTuple):
    """The private statistics of the labels [n].

    Attributes:
        labels: [n] private labels, in the type of the outputs.
        histograms: [clusters with rows, k] noisy counts; some may be negative.
        scale: of their noise.
    """

    labels: NDArray[Any]
    histograms: NDArray[np.int64]
    scale: float


def randomized_by_cluster(
    setting: Setting, method: Clusters, cluster: Int64[np.ndarray, " n"]
) -> PrivateClusters:
    """Count, add noise, compile and randomize: spends ε_prior + ε of every label, once.

    ``cluster`` [n] is that of each row. Raises ConfigError if nothing can be compiled.
    """
    classes = setting.loss.task.classes
    assert classes is not None
    name = f"cluster for {setting.loaded.config.data.label}"  # not that of the label
    text = _spec_text(setting, method, classes, name)
    sizes = np.bincount(cluster, minlength=method.k).tolist()
    known = PublicFacts(Groups.of(range(method.k), name), [*sizes, 0])
    plan = plan_each_table(exact(method.epsilon_prior), exact(method.epsilon), known.sizes)
    with _as_config_errors(setting):
        # Everything that can fail without the histograms fails before they spend ε.
        spec = parse_spec(text, "spec")
        require_compilable(spec, plan, known.rows)
    truth = true_classes(setting)
    counts = np.zeros((method.k + 1, len(classes)), np.int64)
    np.add.at(counts, (cluster, truth), 1)
    # One histogram of all clusters: substituting a label moves one unit within one cluster.
    flat = plan.by_table(counts)[:-1].ravel()
    noisy = discrete_laplace.noisy_histogram(flat, plan.epsilon_tables)
    histograms = np.array(noisy.counts, np.int64).reshape(plan.tables, -1)
    # Each cluster has its own counts. There are no other rows; their table gets the sum.
    every = [*histograms, histograms.sum(axis=0)]
    rows = [*(size for size in sizes if size), known.rows]
    tables = [
        TablePrior(_statement(own.tolist(), size, noisy.scale), size)
        for own, size in zip(every, rows, strict=True)
    ]
    tables[-1] = TablePrior(tables[-1].statement)
    groups, _ = known.joined(plan)
    priors = Prior(plan.epsilon_prior, plan.epsilon_label, tables, groups)
    with _as_config_errors(setting):
        artifact = assemble(spec, priors, hashlib.sha256(text.encode()).hexdigest())
    labels = np.array(classes)[truth]
    private = as_numpy(Randomizer(artifact.model, "clusters")(labels, groups=cluster))
    private = private.astype(str) if private.dtype == object else private
    return PrivateClusters(private, histograms, noisy.scale)


def _spec_text(
    setting: Setting, method: Clusters, classes: tuple[int | str, ...], groups: str
) -> str:
    config = setting.loaded.config
    parts = Decimal(repr(method.epsilon_prior)), Decimal(repr(method.epsilon))
    split = f"{{prior: {parts[0]:f}, label: {parts[1]:f}}}"
    domain = {"kind": "categorical", "values": list(classes)}
    label = {"column": config.data.label, "domain": domain}
    label["out_of_domain"] = {"default": classes[0]}  # none is: the method's default took its place
    spec = {
        "version": 1,
        "name": config.name,
        "label": label,
        "loss": "zero_one",
        "prior": {"kind": "private", "data": "the training data"},
        "mechanism": {"kind": "rr_with_prior"},
        "groups": {"column": groups, "values": list(range(method.k))},
    }
    lines = [f"{key}: {json.dumps(value)}" for key, value in spec.items()]
    return "\n".join([*lines, f"privacy: {{epsilon: {sum(parts):f}, split: {split}}}", ""])


@contextmanager
def _as_config_errors(setting: Setting) -> Iterator[None]:
    """Turn the compiler's errors about a spec into errors of the config."""
    try:
        yield
    except (InputError, ValueError) as error:
        raise setting.loaded.error(("method",), f"for labeldp: {error}") from None


def _statement(noisy: list[int], rows: int, scale: float) -> dict[str, Any]:
    """The certificate's ``prior`` of one table."""
    weights = project_to_total(noisy, rows)
    return {
        "kind": "private",
        "weights": weights,
        "rows": rows,
        "labels": len(weights),
        "mechanism": NOISE,
        "l1_sensitivity": discrete_laplace.L1_SENSITIVITY,
        "scale": scale,
        "post_processing": "projection onto counts >= 0 that sum to the rows",
        "split": "given",
    }


CLUSTER, HISTOGRAMS, SCALE = "cluster_of_example", "noisy_histograms", "noise_scale"


class ClustersBuilder(LabelNoiseBuilder[Clusters]):
    """Builds the method from a config whose method is ``clusters``."""

    def drawn(self, setting: Setting, whole: Setting) -> Arrays:
        """Clusters by the features of all rows, which are public; their histograms; labels."""
        cluster = cluster_of_examples(whole, self.method)[used_rows(whole)]
        private = randomized_by_cluster(setting, self.method, cluster)
        return {
            KEPT: private.labels,
            CLUSTER: cluster,
            HISTOGRAMS: private.histograms,
            SCALE: np.array(private.scale),
        }

    def trained(self, setting: Setting, kept: Arrays) -> Stepped:
        """Minibatches on private labels."""
        train, label = setting.dataset.train, self.loaded.config.data.label
        return minibatch_method(
            setting,
            setting.loss.task.targets(kept[KEPT], train.source, label),
            _statement_of_clusters(setting, self.method, kept),
            mixup=self.method.mixup,
            keep=kept,
        )


def cluster_of_examples(setting: Setting, method: Clusters) -> NDArray[np.int64]:
    """[n] the cluster of each training example. Raises ConfigError."""
    train = setting.dataset.train
    if method.k > train.rows:
        reason = f"{method.k:,} clusters are more than the {train.rows:,} examples"
        raise setting.loaded.error(("method", "k"), reason)
    points = _columns(train.features, setting.dataset.shape)
    if points.shape[1] > MOST_COLUMNS:
        reason = (
            f"{points.shape[1]:,} columns (one per category) are too many to cluster by; learn a "
            "representation"
        )
        raise setting.loaded.error(("method", "k"), reason)
    points = principal_components(points)
    return k_means(points, method.k, setting.loaded.config.training.seed)


def _columns(features: Any, shape: FeatureShape) -> Floats:
    """[n, d]: standardised numbers and one-hot categories, pixels, or a representation."""
    if isinstance(features, Mapping):
        codes = zip(features["categorical"].T, shape.vocabularies, strict=True)
        one_hot = [np.eye(size)[column] for column, size in codes]
        return np.concatenate([features["numeric"].astype(np.float64), *one_hot], axis=1)
    return np.asarray(features, np.float64).reshape(len(features), -1)


def principal_components(points: Floats, most: int = 50) -> Floats:
    """[n, min(d, most)] points [n, d] along the directions of largest variance."""
    if points.shape[1] <= most:
        return points
    centred = points - points.mean(axis=0)[None, :]
    _, directions = np.linalg.eigh(centred.T @ centred)
    return np.asarray(centred @ directions[:, ::-1][:, :most])


def _statement_of_clusters(setting: Setting, method: Clusters, kept: Arrays) -> Statement:
    n, sizes = setting.dataset.train.rows, np.bincount(kept[CLUSTER], minlength=method.k)
    return statement(
        setting,
        epsilon=epsilon_up(exact(method.epsilon_prior) + exact(method.epsilon)),
        mechanism=(
            f"{n:,} labels were counted once, in one histogram per cluster of public features "
            f"({method.k:,} in all), with discrete Laplace noise of scale "
            f"{float(kept[SCALE]):.6g} (ε = {written(method.epsilon_prior)}); each label was "
            f"randomized once with rr_with_prior for its cluster's histogram "
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
            "mechanism": "rr_with_prior",
        },
        released="the private labels, the noisy histograms",
    )
