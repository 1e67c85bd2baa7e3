"""Some rows of a batch with columns of any type."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def chosen_rows(batch: pa.RecordBatch, chosen: NDArray[np.bool_]) -> pa.RecordBatch:
    """The ``chosen`` [n] rows of a batch [n], in their order."""
    if chosen.all():
        return batch
    try:
        return batch.filter(pa.array(chosen))
    except pa.ArrowNotImplementedError:  # text and lists of the view types have no filter
        edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen, [0]])))
        runs = edges.reshape(-1, 2).tolist()
        parts = [batch.slice(0, 0), *(batch.slice(start, end - start) for start, end in runs)]
        columns = [
            pa.concat_arrays([part.column(i) for part in parts]) for i in range(len(batch.schema))
        ]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
