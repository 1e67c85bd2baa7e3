"""Clusters as the public groups of a spec: the compiler's priors by group, and its tables.

A user who asks for clusters expects labels to differ between them and chooses ε_prior. So every
cluster has its own histogram, all of ε_prior is spent on these, and none uses the others. If a
cluster is nearly one class, its counts show it through much noise. ``labeldp compile`` cannot know
this. It spends ε on the histogram of all rows first, and pools groups with too few rows.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Int64
from labeldp_runtime import LabelError, Randomizer
from labeldp_verify.forms import Domain, Groups
from numpy.typing import NDArray

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
from labeldp_trainer.data.labels import Cells, as_numpy
from labeldp_trainer.errors import DataError, InputError
from labeldp_trainer.randomize import exact


class PrivateClusters(NamedTuple):
    """What is computed from the labels [n]; all of it is private.

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
