"""Load an artifact and randomize labels with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from labeldp_runtime.checksum import checksum_holds
from labeldp_runtime.entropy import random_words
from labeldp_runtime.errors import (
    ArtifactError,
    InsecureArtifactError,
    LabelError,
    PlatformError,
    UnsupportedFormatError,
)
from labeldp_runtime.labels import as_label_array
from labeldp_runtime.self_test import run_self_test

MAX_FILE_BYTES = 64 * 1024 * 1024
FORMAT_MAJOR = "1"
CHUNK = 1 << 15  # labels a run: the tensors of one chunk stay in a core's cache
_ELEMENT_TYPES = {"tensor(int64)": "int64", "tensor(double)": "float64", "tensor(string)": "string"}


class Randomizer:
    """A compiled label randomizer; every call draws fresh secure randomness.

    Calls are thread-safe. Randomizing one record twice spends its ε twice.
    """

    def __init__(self, data: bytes, source: str = "artifact") -> None:
        """Load from bytes; ``source`` names them in errors. See ``load``."""
        try:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = 4
            self._session = onnxruntime.InferenceSession(
                data, options, providers=["CPUExecutionProvider"]
            )
            metadata = self._session.get_modelmeta().custom_metadata_map
        except Exception as error:  # onnxruntime raises types of its own
            raise ArtifactError(f"{source}: is not an ONNX file that onnxruntime loads") from error
        if "labeldp.format_version" not in metadata:
            raise ArtifactError(f"{source}: is no labeldp artifact")
        if metadata["labeldp.format_version"].split(".")[0] != FORMAT_MAJOR:
            raise UnsupportedFormatError(
                f"{source}: has format {metadata['labeldp.format_version']}, "
                f"this labeldp-runtime reads {FORMAT_MAJOR}.x: upgrade it"
            )
        try:
            self.certificate: dict[str, Any] = json.loads(metadata["labeldp.certificate"])
            insecure = self.certificate["insecure"]
            domain = self.certificate["label"]["domain"]
            rule = domain["out_of_domain"]
            self._missing = domain["min"] if rule == "clamp" else rule["default"]
            self._element_type = _ELEMENT_TYPES[self._session.get_inputs()[0].type]
            shape = self._session.get_inputs()[1].shape
            self._words_per_label = 1 if len(shape) == 1 else int(shape[1])
            vectors = json.loads(metadata["labeldp.self_test"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ArtifactError(f"{source}: its certificate is damaged") from error
        if not checksum_holds(data):
            raise ArtifactError(f"{source}: is damaged: its checksum is wrong")
        if insecure is not None:
            raise InsecureArtifactError(f"{source}: {insecure!r}")
        if not run_self_test(self._run, vectors, self._element_type, self._words_per_label):
            raise PlatformError(
                f"{source}: onnxruntime {onnxruntime.__version__} computes wrongly on this "
                "platform (or the file is damaged): use another version of onnxruntime"
            )

    @classmethod
    def load(cls, path: str | Path) -> Randomizer:
        """Load an artifact and test the platform with the vectors that it carries.

        Raises a RuntimeArtifactError that says why the file cannot be used. The certificate is not
        proved here: ``labeldp verify`` does that, once, before deployment.
        """
        path = Path(path)
        try:
            with path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise ArtifactError(f"{path}: cannot be read: {error.strerror}") from error
        if len(data) > MAX_FILE_BYTES:
            raise ArtifactError(f"{path}: is larger than {MAX_FILE_BYTES} bytes")
        return cls(data, str(path))

    def __call__(self, labels: Any) -> NDArray[Any]:
        """Private labels [n] (float64, int64 or str objects) for labels [n].

        NaN, None and labels outside the domain follow the artifact's out-of-domain rule and never
        raise. Raises LabelError for another shape, or a type that cannot hold the labels.
        """
        array = as_label_array(labels, self._element_type, self._missing)
        return self._chunked(array, lambda start, stop: self._fresh_words(stop - start))

    def apply_words(self, labels: Any, words: NDArray[np.uint64]) -> NDArray[Any]:
        """Private labels for words [n], or [n, w], that the caller brings.

        For tests, and to compare platforms. The words must be uniform, secret, and never serve
        twice: otherwise there is no privacy.
        """
        array = as_label_array(labels, self._element_type, self._missing)
        if words.dtype != np.uint64 or words.shape != self._words_shape(len(array)):
            raise LabelError(f"expected uint64 words of shape {self._words_shape(len(array))}")
        return self._chunked(array, lambda start, stop: words[start:stop])

    def _chunked(
        self, labels: NDArray[Any], words: Callable[[int, int], NDArray[np.uint64]]
    ) -> NDArray[Any]:
        if len(labels) <= CHUNK:
            return self._run(labels, words(0, len(labels)))
        cuts = range(0, len(labels), CHUNK)
        parts = [
            self._run(labels[a : a + CHUNK], words(a, min(a + CHUNK, len(labels)))) for a in cuts
        ]
        return np.concatenate(parts)

    def _run(self, labels: NDArray[Any], words: NDArray[np.uint64]) -> NDArray[Any]:
        outputs = self._session.run(None, {"label": labels, "entropy": words})
        return np.asarray(outputs[0])

    def _fresh_words(self, count: int) -> NDArray[np.uint64]:
        return random_words(*self._words_shape(count))

    def _words_shape(self, count: int) -> tuple[int, ...]:
        w = self._words_per_label
        return (count,) if w == 1 else (count, w)
