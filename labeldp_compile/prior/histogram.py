"""Count the labels of a table, treating each exactly as the artifact will."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnxruntime
from labeldp_runtime.entropy import random_words
from labeldp_verify.artifact import write_index_model
from labeldp_verify.forms import Domain
from numpy.typing import NDArray

from labeldp_compile.tabular import TableReader, label_array, refused
from labeldp_compile.tabular.count_column import MAX_TOTAL

_CHUNK = 1 << 16  # rows


def count_labels(
    table: TableReader, progress: Callable[[int], None] = lambda rows: None
) -> NDArray[np.int64]:
    """[k] how many rows have each label; sums to the number of rows.

    Every row counts, nulls and labels outside the domain included: otherwise the number of rows
    would itself depend on the labels. The rows are binned by the label part of the artifact's own
    graph, and streamed, so that memory does not grow with the table.

    A histogram file gives what the rows that it counts would give: where labels are rounded at
    random, each of them is rounded on its own. Raises DataError if it counts more than 2^53.
    """
    domain = table.domain
    indexes = label_indexes(domain)
    counts, rows = np.zeros(domain.size, dtype=np.int64), 0
    for batch in table.batches():
        labels = label_array(domain, table.column, batch.column(table.column))
        if table.count_column is None:
            counts += np.bincount(indexes(labels), minlength=domain.size)
            progress(len(batch))
            continue
        times = table.counts_of(batch)
        counted = sum(times.tolist())  # in Python's integers: a sum in int64 could overflow
        rows += counted
        if rows > MAX_TOTAL:
            raise refused(table.path, "counts more than 2^53 rows")
        if domain.words_per_label == 1:
            np.add.at(counts, indexes(labels), times)
            progress(counted)
        else:
            for part in _repeated(labels, times):
                counts += np.bincount(indexes(part), minlength=domain.size)
                progress(len(part))
    return counts


def label_indexes(domain: Domain) -> Callable[[NDArray[Any]], NDArray[np.int64]]:
    """From labels [n] to their rows in the domain [n], by the artifact's own graph."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        write_index_model(domain), options, providers=["CPUExecutionProvider"]
    )
    words = domain.words_per_label

    def indexes(labels: NDArray[Any]) -> NDArray[np.int64]:
        shape = (len(labels),) if words == 1 else (len(labels), 2)
        # Only randomized rounding reads the words; the Laplace noise is what protects the counts.
        entropy = random_words(*shape) if words == 2 else np.zeros(shape, dtype=np.uint64)
        result: NDArray[np.int64] = session.run(None, {"label": labels, "entropy": entropy})[0]
        return result

    return indexes


def _repeated(labels: NDArray[Any], times: NDArray[np.int64]) -> Iterator[NDArray[Any]]:
    """Each label as often as it was counted, in parts of ``_CHUNK``."""
    ends = np.cumsum(times)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, total, _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, total))
        yield labels[np.searchsorted(ends, rows, side="right")]
