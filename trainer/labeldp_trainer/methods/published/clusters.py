"""``method: {kind: clusters}``: the private histogram of an example's cluster as its label's prior.

k-means on public features, one histogram per cluster, then RRWithPrior (Deep learning with label
DP, Section 5.2) or any other mechanism that labeldp compiles for groups, with a table for each
cluster. All of it is done once, before the first step, and kept. Accuracy was not measured.
"""

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Int64
from labeldp_runtime import LabelError, Randomizer
from labeldp_verify.forms import Domain, Groups
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

from labeldp_compile.toolkit import (
    NOISE,
    Prior,
    PublicFacts,
    TablePrior,
    assemble,
    check_type,
    discrete_laplace,
    label_array,
    label_indexes,
    parse_spec,
    plan_each_table,
    project_to_total,
    require_compilable,
)
from labeldp_trainer.config import Clusters, LoadedConfig
from labeldp_trainer.config.data import TableData
from labeldp_trainer.data.arrays import read_embeddings
from labeldp_trainer.data.labels import Cells, as_numpy
from labeldp_trainer.errors import DataError, InputError
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


class ClusterTables:
    """A table for each cluster, all of the same domain, mechanism and ε."""

    def __init__(self, loaded: LoadedConfig, classes: tuple[int | str, ...] | None) -> None:
        """Raises ConfigError for a domain or a mechanism that labeldp does not know for groups."""
        method = loaded.config.method
        assert isinstance(method, Clusters)
        self._loaded, self._method = loaded, method
        self._name = f"cluster for {loaded.config.data.label}"  # not that of the label
        self._text = self._spec_text(classes)
        with _as_config_errors(loaded):
            self._spec = parse_spec(self._text, "spec")

    def randomize(
        self, labels: Any, cluster: Int64[np.ndarray, " n"], source: str
    ) -> PrivateClusters:
        """Count, add noise, compile and randomize: spends ε_prior + ε of every label, once.

        ``labels`` [n] are a column of the data, ``cluster`` [n] that of each row. Raises DataError
        for labels of the wrong type.
        """
        spec, clusters = self._spec, self._method.k
        column = spec.label.key
        try:
            array = label_array(spec.domain, column, _column(spec.domain, column, labels))
        except InputError as error:
            raise DataError(f"{source}: {error}") from None
        sizes = np.bincount(cluster, minlength=clusters).tolist()
        known = PublicFacts(Groups.of(range(clusters), self._name), [*sizes, 0])
        epsilons = exact(self._method.epsilon_prior), exact(self._method.epsilon)
        plan = plan_each_table(*epsilons, known.sizes)
        with _as_config_errors(self._loaded):
            # Everything that can fail without the histograms fails before they spend ε.
            require_compilable(spec, plan, known.rows)
        counts = np.zeros((clusters + 1, spec.domain.size), np.int64)
        np.add.at(counts, (cluster, label_indexes(spec.domain)([array])), 1)
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
        digest = hashlib.sha256(self._text.encode()).hexdigest()
        with _as_config_errors(self._loaded):
            artifact = assemble(spec, priors, digest)
        try:
            private = as_numpy(Randomizer(artifact.model, "clusters")(array, groups=cluster))
        except LabelError as error:
            raise DataError(str(error)) from None
        private = private.astype(str) if private.dtype == object else private
        return PrivateClusters(private, histograms, noisy.scale)

    def _spec_text(self, classes: tuple[int | str, ...] | None) -> str:
        method, config = self._method, self._loaded.config
        label: dict[str, Any] = {"column": config.data.label, "domain": method.domain}
        if classes is not None:
            label["domain"] = {"kind": "categorical", "values": list(classes)}
            label["out_of_domain"] = {"default": classes[0]}
        parts = Decimal(repr(method.epsilon_prior)), Decimal(repr(method.epsilon))
        split = f"{{prior: {parts[0]:f}, label: {parts[1]:f}}}"
        spec = {
            "version": 1,
            "name": config.name,
            "label": label,
            "loss": "zero_one" if config.loss == "cross_entropy" else config.loss,
            "prior": {"kind": "private", "data": "the training data"},
            "mechanism": method.mechanism,
            "groups": {"column": self._name, "values": list(range(method.k))},
        }
        lines = [f"{key}: {json.dumps(value, default=float)}" for key, value in spec.items()]
        return "\n".join([*lines, f"privacy: {{epsilon: {sum(parts):f}, split: {split}}}", ""])


@contextmanager
def _as_config_errors(loaded: LoadedConfig) -> Iterator[None]:
    """Turn the compiler's errors about a spec into errors of the config."""
    try:
        yield
    except (InputError, ValueError) as error:
        raise loaded.error(("method", "mechanism"), f"for labeldp: {error}") from None


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


def _column(domain: Domain, name: str, labels: Any) -> pa.Array:
    """The labels, if they are cells or of a type that holds the domain's. Raises DataError."""
    if isinstance(labels, Cells):
        return labels.values
    array = labels if isinstance(labels, pa.Array) else pa.array(labels)
    check_type(domain, name, array.type)
    return array


# ``method: {kind: clusters}``: the private histogram of an example's cluster as its label's prior.
#
# k-means on public features, one histogram per cluster, then RRWithPrior (Deep learning with label
# DP, Section 5.2) or any other mechanism that labeldp compiles for groups, with a table for each
# cluster. All of it is done once, before the first step, and kept. Accuracy was not measured.

CLUSTER, HISTOGRAMS, SCALE = "cluster_of_example", "noisy_histograms", "noise_scale"
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


def _statement_of_clusters(setting: Setting, method: Clusters, kept: Arrays) -> Statement:
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
