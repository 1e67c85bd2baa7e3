"""Run the graph where it could go wrong, and compare with the decoded integers.

The graph was rebuilt from the integers before, so this checks the graph writer and the platform,
not the forger.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from labeldp_compile.randomizer import CategoricalDomain, Domain, IntegerDomain
from labeldp_compile.verify.form import Form, Words

_WORDS_OUTSIDE = 8  # words tried on every label outside the domain


def open_session(data: bytes) -> onnxruntime.InferenceSession:
    """A single-threaded session that never prints the model's content."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def threshold_mismatches(
    session: onnxruntime.InferenceSession, domain: Domain, form: Form
) -> tuple[int, int]:
    """(labels and words that were run, how many gave a wrong output)."""
    rows, words = form.critical_words()
    second = np.random.default_rng(0).integers(0, 2**64, len(rows), np.uint64)
    inputs, expected_rows = _inputs_for_rows(domain, rows, second)
    got = _run(session, domain, inputs, words, second)
    return len(rows), int(np.count_nonzero(got != form.outputs_of(expected_rows, words)))


def outside_mismatches(
    session: onnxruntime.InferenceSession, domain: Domain, form: Form
) -> tuple[int, int]:
    """The same for labels outside the domain: NaN, infinities, far numbers, unknown categories."""
    labels, rows = _outside(domain)
    _, words = form.critical_words()
    spread = np.linspace(0, len(words) - 1, _WORDS_OUTSIDE).astype(np.int64)
    tried = np.tile(words[spread], (len(rows), 1))
    zeros = np.zeros(len(tried), np.uint64)
    got = _run(session, domain, np.repeat(labels, _WORDS_OUTSIDE), tried, zeros)
    wanted = form.outputs_of(np.repeat(rows, _WORDS_OUTSIDE), tried)
    return len(tried), int(np.count_nonzero(got != wanted))


def _run(
    session: onnxruntime.InferenceSession,
    domain: Domain,
    labels: NDArray[Any],
    words: Words,
    rounding: NDArray[np.uint64],
) -> NDArray[Any]:
    if domain.words_per_label == 2:
        words = np.column_stack([words, rounding])
    entropy = words[:, 0] if words.shape[1] == 1 else words
    outputs = session.run(None, {"label": labels, "entropy": np.ascontiguousarray(entropy)})
    return np.asarray(outputs[0])


def _inputs_for_rows(
    domain: Domain, rows: NDArray[np.int64], second: NDArray[np.uint64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Labels that stand for the rows, and the rows that they must reach."""
    if isinstance(domain, IntegerDomain):
        return rows + np.int64(domain.min), rows
    if isinstance(domain, CategoricalDomain):
        return np.array(domain.values, dtype=object if domain.is_text else np.int64)[rows], rows
    labels = np.array([float(y) for y in domain.labels()])[rows]
    pairs = zip(labels.tolist(), second.tolist(), strict=True)
    return labels, np.array([domain.index(y, w) for y, w in pairs], dtype=np.int64)


def _outside(domain: Domain) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Labels outside the domain, and the rows that the out-of-domain rule sends them to."""
    last = domain.size - 1
    if isinstance(domain, CategoricalDomain):
        unknown: list[Any] = ["", "\x7flabeldp: not a category"] if domain.is_text else [-(2**63)]
        unknown = [u for u in unknown if u not in domain.values] or [domain.default]
        labels = np.array(unknown, dtype=object if domain.is_text else np.int64)
        return labels, np.full(len(labels), domain.values.index(domain.default))
    if isinstance(domain, IntegerDomain):
        below, above = [domain.min - 1, -(2**63)], [domain.max + 1, 2**31, 2**63 - 1]
        above = [x for x in above if x > domain.max]
        labels = np.array([*below, *above], dtype=np.int64)
        if domain.default is not None:
            return labels, np.full(len(labels), domain.default - domain.min)
        return labels, np.array([0] * len(below) + [last] * len(above))
    below, above = np.nextafter(domain.min, -np.inf), np.nextafter(domain.max, np.inf)
    low, high = [float("nan"), -np.inf, float(below)], [np.inf, float(above)]
    labels = np.array([*low, *high])
    if domain.default is not None:
        return labels, np.full(len(labels), domain.index(domain.default, 0))
    return labels, np.array([0] * len(low) + [last] * len(high))
