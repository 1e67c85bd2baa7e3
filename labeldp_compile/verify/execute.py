"""Run the graph where it could go wrong, and compare with the decoded integers.

Every segment boundary is approached from both sides: the words just below and at each cut, for
every label (or, where that would be more than ``MAX_PAIRS`` pairs, for the first and last word of
every label's window and each boundary with one label). The graph was rebuilt from the integers
before, so this checks the graph writer and the platform, not the forger.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from labeldp_compile.randomizer import (
    CategoricalDomain,
    Domain,
    IntegerDomain,
    WindowRandomizer,
)

MAX_PAIRS = 1 << 18
_SECOND_WORD = 0x9E3779B97F4A7C15


def open_session(data: bytes) -> onnxruntime.InferenceSession:
    """A single-threaded session that never prints the model's content."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def boundary_mismatches(
    session: onnxruntime.InferenceSession, domain: Domain, randomizer: WindowRandomizer
) -> tuple[int, int]:
    """(pairs of a label and a word that were run, how many gave a wrong output)."""
    rows, u = boundary_pairs(randomizer)
    second = np.random.default_rng(0).integers(0, 2**64, len(rows), np.uint64)
    inputs, expected_rows = _inputs_for_rows(domain, rows, second)
    low = np.uint64(64 - randomizer.word_bits)
    words = u.astype(np.uint64) << low
    words[1::2] |= (np.uint64(1) << low) - np.uint64(1)  # bits below u must not matter
    entropy = words if domain.words_per_label == 1 else np.stack([words, second], axis=1)
    got = session.run(None, {"label": inputs, "entropy": entropy})[0]
    wanted = outputs_of(randomizer, expected_rows, u)
    return len(rows), int(np.count_nonzero(got != wanted))


def outside_mismatches(
    session: onnxruntime.InferenceSession, domain: Domain, randomizer: WindowRandomizer
) -> tuple[int, int]:
    """The same for labels outside the domain: NaN, infinities, far numbers, unknown categories."""
    labels, rows = _outside(domain)
    T, last = randomizer.base_total, randomizer.words - 1
    u = np.tile(np.array(sorted({0, T - 1, min(T, last), last}), dtype=np.int64), len(rows))
    repeats = len(u) // len(rows)
    words = u.astype(np.uint64) << np.uint64(64 - randomizer.word_bits)
    zeros = np.zeros_like(words)
    entropy = words if domain.words_per_label == 1 else np.stack([words, zeros], axis=1)
    got = session.run(None, {"label": np.repeat(labels, repeats), "entropy": entropy})[0]
    wanted = outputs_of(randomizer, np.repeat(rows, repeats), u)
    return len(u), int(np.count_nonzero(got != wanted))


def outputs_of(
    randomizer: WindowRandomizer, rows: NDArray[np.int64], u: NDArray[np.int64]
) -> NDArray[Any]:
    """What the integers demand for row indices [n] and B-bit words u [n]."""
    offsets = np.array(randomizer.offsets, dtype=np.int64)
    t = np.where(u >= randomizer.base_total, u + offsets[rows], u)
    boundaries = np.array(randomizer.boundaries(), dtype=np.int64)
    segments = np.searchsorted(boundaries, t, side="right") - 1
    owners = np.array(randomizer.segment_outputs(), dtype=np.int64)[segments]
    numeric = isinstance(randomizer.values[0], float | int)
    return np.array(randomizer.values, dtype=None if numeric else object)[owners]


def boundary_pairs(randomizer: WindowRandomizer) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row indices and words u on both sides of every cut."""
    T, X, last = randomizer.base_total, randomizer.window, randomizer.words - 1
    boundaries = np.array(randomizer.boundaries(), dtype=np.int64)
    base_cuts = boundaries[: len(randomizer.base) + 1]
    extra_cuts = boundaries[len(randomizer.base) :]
    offsets = np.array(randomizer.offsets, dtype=np.int64)
    k = len(offsets)
    if k * 2 * len(boundaries) <= MAX_PAIRS:
        pairs = [(np.full(len(base_cuts), y), base_cuts) for y in range(k)]
        for y, s in enumerate(offsets):
            inside = extra_cuts[(extra_cuts >= T + s) & (extra_cuts <= T + s + X)]
            pairs.append((np.full(len(inside) + 2, y), np.append(inside - s, [T, last + 1])))
    else:
        everyone = np.arange(k)
        pairs = [
            (np.arange(len(base_cuts)) % k, base_cuts),
            (everyone, np.full(k, T)),
            (everyone, np.full(k, last + 1)),
        ]
        order = np.argsort(offsets, kind="stable")
        reach = np.searchsorted(offsets[order], extra_cuts - T, side="right") - 1
        rows = order[np.maximum(reach, 0)]  # the label whose window starts last before the cut
        pairs.append((rows, extra_cuts - offsets[rows]))
    rows = np.concatenate([r for r, _ in pairs for _ in range(2)])
    cuts = np.concatenate([c - d for _, c in pairs for d in (1, 0)])
    keep = (cuts >= 0) & (cuts <= last)
    return rows[keep].astype(np.int64), cuts[keep]


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
