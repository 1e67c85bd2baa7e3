"""Test whether this platform computes what the integers of an artifact demand.

The boundary vectors of the file have the expected outputs. They run with and without onnxruntime's
graph optimisations, since some versions remove nodes that are needed. Real labels also run near the
points where rounding changes, and there both ways must agree.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from labeldp_runtime.inputs import Feed, InputColumn, Inputs
from labeldp_runtime.rules import grid_bounds, grid_values

Run = Callable[[Feed, NDArray[np.uint64]], list[NDArray[Any]]]
_GRID_POINTS = 64  # of a real domain, around which its rounding is tried


def open_session(data: bytes, *, optimised: bool = True) -> onnxruntime.InferenceSession:
    """A single-threaded session of an artifact's bytes that logs nothing."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def run_self_test(ways: Sequence[Run], vectors: dict[str, Any], inputs: Inputs, words: int) -> bool:
    """Whether all ways to run give every expected output, to the last bit, and agree elsewhere.

    Each takes a feed [n] and words [n] or [n, words], and gives the outputs [n].
    """
    try:
        expected = _columns(vectors["outputs"])
        texts = _columns(vectors["labels"])
        if inputs.groups:
            texts += _columns(vectors["groups"])
        feed = {
            column.input: _parsed(own, column.element_type)
            for column, own in zip(inputs.columns, texts, strict=True)
        }
        entropy = np.array([[int(w, 16) for w in row] for row in vectors["words"]], np.uint64)
        for way in ways:
            got = way(feed, _of_width(entropy, words))
            if [[_text(v) for v in column.tolist()] for column in got] != expected:
                return False
        for column in inputs.labels:
            if column.element_type == "float64":
                tried, own = _around(column, feed, entropy)
                first, *others = (way(tried, _of_width(own, words)) for way in ways)
                if not all(all(map(_same, first, other)) for other in others):
                    return False
    except Exception:  # vectors of another shape; onnxruntime raises types of its own
        return False
    return True


def _columns(rows: Sequence[Any]) -> list[list[str]]:
    """The columns [n] of rows of texts; plain texts are one column."""
    rows = [[row] if isinstance(row, str) else row for row in rows]
    return [list(column) for column in zip(*rows, strict=True)]


def _of_width(entropy: NDArray[np.uint64], words: int) -> NDArray[np.uint64]:
    """Words [n, w] as the graph takes them: [n] of one word a label."""
    return entropy[:, 0] if words == 1 else entropy


def _around(
    column: InputColumn, feed: Feed, entropy: NDArray[np.uint64]
) -> tuple[Feed, NDArray[np.uint64]]:
    """Labels of one column around its roundings, with rows of the vectors in all others."""
    labels, own = _around_roundings(column.stated, entropy)
    turn = np.arange(len(labels)) * 7 % len(entropy)
    return {**{name: values[turn] for name, values in feed.items()}, column.input: labels}, own


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two columns are equal, to the last bit."""
    if one.dtype == object:
        return bool(one.tolist() == other.tolist())
    return one.tobytes() == other.tobytes()


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


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
    if domain["kind"] == "grid":
        return _around_listed(domain, words)
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


def _around_listed(
    domain: dict[str, Any], words: NDArray[np.uint64]
) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    """The same around listed labels: at each of them, halfway and elsewhere between two."""
    values, bounds = grid_values(domain), grid_bounds(domain)
    grid = np.unique(np.linspace(0, len(values) - 1, min(len(values), _GRID_POINTS)).astype(int))
    between = np.interp(np.concatenate([grid, grid + 0.3]), np.arange(len(values)), values)
    near = np.concatenate([between, bounds[grid]])
    labels = np.concatenate([near, *(np.nextafter(near, end) for end in (-np.inf, np.inf))])
    return labels, words[np.arange(len(labels)) * 7 % len(words)]
