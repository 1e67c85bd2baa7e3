"""The part of ``clusters`` that the compiler does: histograms, and a randomizer of each."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_runtime import LabelError, Randomizer
from labeldp_verify.forms import Domain
from numpy.typing import NDArray

from labeldp_compile import assembly, pipeline
from labeldp_compile.prior import Prior, discrete_laplace
from labeldp_compile.prior.discrete_laplace import project_to_total
from labeldp_compile.prior.histogram import label_indexes
from labeldp_compile.spec import parse_spec
from labeldp_compile.tabular import label_array
from labeldp_compile.tabular.label_column import check_type
from labeldp_trainer.config import Clusters, LoadedConfig
from labeldp_trainer.data.labels import Cells, as_numpy
from labeldp_trainer.errors import DataError, InputError
from labeldp_trainer.randomize import exact


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
        try:
            self._spec = parse_spec(self._text, "spec")
            self._feasible()
        except (InputError, ValueError) as error:
            raise loaded.error(("method", "mechanism"), f"for labeldp: {error}") from None

    def randomize(self, labels: Any, cluster: NDArray[np.int64], source: str) -> Private:
        """Count, add noise, compile and randomize: spends ε_prior + ε of every label, once.

        ``labels`` [n] are a column of the data, ``cluster`` [n] that of each row. Raises DataError
        for labels of the wrong type.
        """
        spec, method = self._spec, self._method
        column = spec.label.column
        try:
            array = label_array(spec.domain, column, _column(spec.domain, column, labels))
        except InputError as error:
            raise DataError(f"{source}: {error}") from None
        counts = np.zeros((method.k, spec.domain.size), np.int64)
        index = label_indexes(spec.domain)(array)
        np.add.at(counts, (cluster, index), 1)
        # One histogram with k counts a cluster: a substituted label moves one unit inside one row.
        noisy = discrete_laplace.noisy_histogram(counts.ravel(), exact(method.epsilon_prior))
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
        weights = project_to_total(noisy, rows)
        statement = {
            "kind": "private",
            "weights": weights,
            "rows": rows,
            "labels": len(weights),
            "mechanism": discrete_laplace.NOISE,
            "l1_sensitivity": discrete_laplace.L1_SENSITIVITY,
            "scale": scale,
            "post_processing": "projection onto counts >= 0 that sum to the rows",
            "split": "given",
        }
        epsilons = exact(self._method.epsilon_prior), exact(self._method.epsilon)
        prior = Prior(weights, *epsilons, statement)
        digest = hashlib.sha256(self._text.encode()).hexdigest()
        try:
            artifact = assembly.assemble(self._spec, prior, digest)
        except InputError as error:
            reason = f"for labeldp: cluster {number}: {error}"
            raise self._loaded.error(("method", "mechanism"), reason) from None
        return Randomizer(artifact.model, f"cluster {number}")

    def _feasible(self) -> None:
        """Whatever could fail without the histograms fails before they are paid for."""
        epsilons = exact(self._method.epsilon_prior), exact(self._method.epsilon)
        pipeline.require_compilable(self._spec, *epsilons, None)

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


def _column(domain: Domain, name: str, labels: Any) -> pa.Array:
    """The labels, if they are cells or of a type that holds the domain's. Raises DataError."""
    if isinstance(labels, Cells):
        return labels.values
    array = labels if isinstance(labels, pa.Array) else pa.array(labels)
    check_type(domain, name, array.type)
    return array
