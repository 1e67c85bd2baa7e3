"""What several tests need: small specs and artifacts, and the plainest reading of integers."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import onnxruntime
from labeldp_verify.analysis.analysis import Loss
from labeldp_verify.artifact import write_model
from labeldp_verify.artifact.bucket_grid import BucketGrid
from labeldp_verify.forms import Domain, Randomizer, WindowRandomizer

from benchmarks.shared.compiled import INTEGER_SPEC, compile_text, joint_spec, sets_spec
from labeldp_compile.certificate import Provenance, build_certificate

__all__ = [
    "INTEGER_SPEC",
    "all_words",
    "compile_text",
    "joint_spec",
    "plain_counts",
    "run",
    "session_of",
    "sets_spec",
    "write",
]


def write(
    domain: Domain,
    randomizer: Randomizer,
    epsilon: Fraction,
    loss: Loss = "zero_one",
    grid: BucketGrid | None = None,
    weights: list[int] | None = None,
) -> bytes:
    """An artifact from integers, with a certificate."""
    prior = {"kind": "public", "weights": weights or [1] * domain.size}
    provenance = Provenance(
        "test", "randomized_response", "y", epsilon, Fraction(0), prior, "0" * 64, {}
    )
    certificate = build_certificate(domain, randomizer, loss, provenance).to_json()
    return write_model(domain, randomizer, certificate, grid)


def session_of(model: bytes) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def run(model: bytes, labels: Any, entropy: Any) -> list[Any]:
    """The graph's outputs for labels and words."""
    outputs = session_of(model).run(None, {"label": labels, "entropy": entropy})
    return outputs[0].tolist()


def plain_counts(randomizer: WindowRandomizer, row: int) -> Counter[Any]:
    """How many words of a row lead to each output: word by word, as the definition says."""
    line = [i for i, weight in enumerate(randomizer.base) for _ in range(weight)]
    line += [segment.output for segment in randomizer.extra for _ in range(segment.length)]
    T, offset = sum(randomizer.base), randomizer.offsets[row]
    outputs = (line[u + offset] if u >= T else line[u] for u in range(2**randomizer.word_bits))
    return Counter(randomizer.values[i] for i in outputs)


def all_words(word_bits: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Every word of B bits, with noise in the bits below that must not matter."""
    u = np.arange(2**word_bits, dtype=np.uint64)
    low = np.random.default_rng(0).integers(0, 2 ** (64 - word_bits), len(u), np.uint64)
    return (u << np.uint64(64 - word_bits)) | low
