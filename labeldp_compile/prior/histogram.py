"""Count the labels of a table, treating each exactly as the artifact will."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnxruntime
from labeldp_runtime.entropy import random_words
from numpy.typing import NDArray

from labeldp_compile.artifact import write_index_model
from labeldp_compile.tabular import TableReader, label_array


def count_labels(
    table: TableReader, progress: Callable[[int], None] = lambda rows: None
) -> NDArray[np.int64]:
    """[k] how many rows of the table have each label; sums to the number of rows.

    Every row counts, nulls and labels outside the domain included: otherwise the number of rows
    would itself depend on the labels. The rows are binned by the label part of the artifact's own
    graph, and streamed, so that memory does not grow with the table.
    """
    domain = table.domain
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        write_index_model(domain), options, providers=["CPUExecutionProvider"]
    )
    counts = np.zeros(domain.size, dtype=np.int64)
    words = domain.words_per_label
    for batch in table.batches():
        labels = label_array(domain, table.column, batch.column(table.column))
        shape = (len(labels),) if words == 1 else (len(labels), 2)
        # Only randomized rounding reads the words; the Laplace noise is what protects the counts.
        entropy = random_words(*shape) if words == 2 else np.zeros(shape, dtype=np.uint64)
        index = session.run(None, {"label": labels, "entropy": entropy})[0]
        counts += np.bincount(index, minlength=domain.size)
        progress(len(batch))
    return counts
