"""The part of ``clusters`` that the package labeldp does: histograms, and a randomizer of each.

Only here is labeldp_compile imported; without it, ``require_labeldp`` says what to install.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from dataclasses import dataclass
from decimal import Decimal
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_runtime import LabelError, Randomizer
from numpy.typing import NDArray

from labeldp_trainer.config import Clusters, LoadedConfig
from labeldp_trainer.data.labels import as_numpy
from labeldp_trainer.errors import ArtifactError, DataError
from labeldp_trainer.randomize.ratio import exact

_NEEDS_LABELDP = (
    "method clusters compiles its randomizers with the package labeldp: "
    "pip install 'labeldp-trainer[clusters]'"
)


def labeldp(name: str) -> ModuleType:
    """A module of the package labeldp. Raises ArtifactError if it is not installed."""
    try:
        return importlib.import_module(f"labeldp_compile.{name}")
    except ImportError:
        raise ArtifactError(_NEEDS_LABELDP) from None


@dataclass(frozen=True)
class Private:
    """What is left of the labels [n], all of it private.

    Attributes:
        labels: [n] private labels, in the type of the outputs.
        histograms: [clusters, k] noisy counts; some may be negative.
        scale: of the histograms' noise.
    """

    labels: NDArray[Any]
    histograms: NDArray[np.int64]
    scale: float


class ClusterRandomizers:
    """One randomizer a cluster, all of the same domain, mechanism and ε."""

    def __init__(self, loaded: LoadedConfig, classes: tuple[int | str, ...] | None) -> None:
        """Raises ConfigError for a domain or a mechanism that labeldp does not know."""
        method = loaded.config.method
        assert isinstance(method, Clusters)
        self._loaded, self._method, self._classes = loaded, method, classes
        self._text = self._spec_text()
        errors = labeldp("errors")
        try:
            self._spec = labeldp("spec").parse_spec(self._text, "spec")
            self._feasible()
        except (errors.InputError, ValueError) as error:
            raise loaded.error(("method", "mechanism"), f"for labeldp: {error}") from None

    def randomize(self, labels: Any, cluster: NDArray[np.int64], source: str) -> Private:
        """Count, add noise, compile and randomize: spends ε_prior + ε of every label, once.

        ``labels`` [n] are a column of the data, ``cluster`` [n] that of each row. Raises DataError
        for labels of the wrong type.
        """
        spec, method = self._spec, self._method
        column = spec.label.column
        try:
            array = labeldp("tabular").label_array(spec.domain, column, _arrow(labels))
        except labeldp("errors").InputError as error:
            raise DataError(f"{source}: {error}") from None
        counts = np.zeros((method.k, spec.domain.size), np.int64)
        index = labeldp("prior.histogram").label_indexes(spec.domain)(array)
        np.add.at(counts, (cluster, index), 1)
        # One histogram with k counts a cluster: a substituted label moves one unit inside one row.
        laplace = labeldp("prior.discrete_laplace")
        noisy = laplace.noisy_histogram(counts.ravel(), exact(method.epsilon_prior))
        histograms = np.array(noisy.counts, np.int64).reshape(counts.shape)
        return Private(
            self._answers(array, cluster, histograms, noisy.scale), histograms, noisy.scale
        )

    def _answers(
        self, labels: NDArray[Any], cluster: NDArray[np.int64], histograms: Any, scale: float
    ) -> NDArray[Any]:
        parts, places = [], []
        for number, histogram in enumerate(histograms):
            rows = np.flatnonzero(cluster == number)
            if len(rows):
                randomizer = self._randomizer(number, histogram.tolist(), len(rows), scale)
                try:
                    parts.append(as_numpy(randomizer(labels[rows])))
                except LabelError as error:
                    raise DataError(str(error)) from None
                places.append(rows)
        private = np.concatenate(parts)
        private = private.astype(str) if private.dtype == object else private
        result = np.empty_like(private)
        result[np.concatenate(places)] = private
        return result

    def _randomizer(self, number: int, noisy: list[int], rows: int, scale: float) -> Randomizer:
        """Compiled for this histogram, and verified before it is used."""
        weights = labeldp("prior.projection").project_to_total(noisy, rows)
        laplace = labeldp("prior.discrete_laplace")
        statement = {
            "kind": "private",
            "weights": weights,
            "rows": rows,
            "labels": len(weights),
            "mechanism": laplace.NOISE,
            "l1_sensitivity": laplace.L1_SENSITIVITY,
            "scale": scale,
            "post_processing": "projection onto counts >= 0 that sum to the rows",
            "split": "given",
        }
        epsilons = exact(self._method.epsilon_prior), exact(self._method.epsilon)
        prior = labeldp("prior").Prior(weights, *epsilons, statement)
        digest = hashlib.sha256(self._text.encode()).hexdigest()
        try:
            artifact = labeldp("pipeline").assemble(self._spec, prior, digest)
        except labeldp("errors").InputError as error:
            reason = f"for labeldp: cluster {number}: {error}"
            raise self._loaded.error(("method", "mechanism"), reason) from None
        return Randomizer(artifact.model, f"cluster {number}")

    def _feasible(self) -> None:
        """Whatever could fail without the histograms fails before they are paid for."""
        epsilons = exact(self._method.epsilon_prior), exact(self._method.epsilon)
        labeldp("pipeline").require_compilable(self._spec, *epsilons, None)

    def _spec_text(self) -> str:
        method, config = self._method, self._loaded.config
        label: dict[str, Any] = {"column": config.data.label, "domain": method.domain}
        if self._classes is not None:
            label["domain"] = {"kind": "categorical", "values": list(self._classes)}
            label["out_of_domain"] = {"default": self._classes[0]}
        parts = Decimal(repr(method.epsilon_prior)), Decimal(repr(method.epsilon))
        split = f"{{prior: {parts[0]:f}, label: {parts[1]:f}}}"
        spec = {
            "version": 1,
            "name": config.name,
            "label": label,
            "loss": "zero_one" if config.loss == "cross_entropy" else config.loss,
            "prior": {"kind": "private", "data": "the training data"},
            "mechanism": method.mechanism,
        }
        lines = [f"{key}: {json.dumps(value, default=float)}" for key, value in spec.items()]
        return "\n".join([*lines, f"privacy: {{epsilon: {sum(parts):f}, split: {split}}}", ""])


def _arrow(labels: Any) -> pa.Array:
    if isinstance(labels, pa.ChunkedArray):
        return labels.combine_chunks()
    return labels if isinstance(labels, pa.Array) else pa.array(labels)
