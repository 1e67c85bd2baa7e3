"""Does this platform compute what the integers demand, whatever onnxruntime rewrites?

The boundary vectors of the file say what is demanded. They run with onnxruntime's graph
optimisations and without: some of its versions leave out nodes that are needed. Real labels run
around the points where their rounding turns, too, and there both ways must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

Feed = dict[str, NDArray[Any]]
Run = Callable[[NDArray[Any], NDArray[np.uint64], Feed], NDArray[Any]]
_GRID_POINTS = 64  # of a real domain, around which its rounding is tried


def open_session(data: bytes, *, optimised: bool = True) -> onnxruntime.InferenceSession:
    """A single-threaded session of an artifact's bytes that logs nothing."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def run_self_test(
    run: Run,
    plain: Run,
    vectors: dict[str, Any],
    element_type: str,
    words: int,
    domain: dict[str, Any],
    group_types: dict[str, str],
) -> bool:
    """True if both ways to run give every expected output, to the last bit, and agree elsewhere.

    ``run`` and ``plain`` take labels [n], words [n] or [n, words], and groups [n] by the names of
    the graph's inputs for them, whose types are ``group_types``; ``domain`` is the certificate's.
    """
    try:
        expected = vectors["outputs"]
        labels = _parsed(vectors["labels"], element_type)
        columns = list(zip(*vectors["groups"], strict=True)) if group_types else []
        groups = {
            name: _parsed(texts, kind)
            for (name, kind), texts in zip(group_types.items(), columns, strict=True)
        }
        entropy = np.array([[int(w, 16) for w in row] for row in vectors["words"]], np.uint64)
        entropy = entropy[:, 0] if words == 1 else entropy
        for way in (run, plain):
            got = way(labels, entropy, groups).tolist()
            if [repr(v) if isinstance(v, float) else str(v) for v in got] != expected:
                return False
        if element_type == "float64":
            labels, entropy = _around_roundings(domain, entropy)
            turn = np.arange(len(labels)) * 7 % len(expected)
            groups = {name: column[turn] for name, column in groups.items()}
            if run(labels, entropy, groups).tobytes() != plain(labels, entropy, groups).tobytes():
                return False
    except Exception:  # vectors of another shape; onnxruntime raises types of its own
        return False
    return len(expected) > 0


def _parsed(texts: Sequence[str], element_type: str) -> NDArray[Any]:
    if element_type == "string":
        return np.array(texts, dtype=object)
    parse = int if element_type == "int64" else float
    return np.array([parse(text) for text in texts], dtype=element_type)


def _around_roundings(
    domain: dict[str, Any], words: NDArray[np.uint64]
) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    """Labels [n] around grid points and halfway between two, with words of the vectors.

    Under unbiased rounding each meets the last rounding word that rounds it up, and the next.
    """
    low, last = float(domain["min"]), domain["points"] - 1
    span = float(domain["max"]) - low
    grid = np.unique(np.linspace(0, last, min(last + 1, _GRID_POINTS)).astype(np.int64))
    near = low + np.minimum(np.concatenate([grid, grid + 0.5, grid + 0.3]), last) / last * span
    labels = np.concatenate([near, *(np.nextafter(near, end) for end in (-np.inf, np.inf))])
    labels = np.tile(labels, 4)
    entropy = words[np.arange(len(labels)) * 7 % len(words)]
    if domain["rounding"] == "unbiased":
        inside = np.clip(labels, low, float(domain["max"]))
        position = np.minimum((inside - low) * (last / span), float(last))
        ups = np.ceil((position - np.floor(position)) * 2.0**53).astype(np.uint64)
        up = np.arange(len(labels)) // (len(labels) // 2) == 0
        turn = np.where(up, np.maximum(ups, 1) - 1, np.minimum(ups, 2**53 - 1)).astype(np.uint64)
        entropy[:, -1] = turn << np.uint64(11)
    return labels, entropy
