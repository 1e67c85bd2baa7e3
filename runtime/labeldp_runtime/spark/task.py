"""What runs on the executors: Arrow batches in, the same batches with a private column out.

Spark pickles the object and sends it to every executor, with the plan's code. It holds the
artifact's bytes, so that no shared file system is needed, and no secret (``shipped``).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from labeldp_runtime.frames import Layout
from labeldp_runtime.shipped import Shipped


@dataclass(frozen=True)
class RandomizeLabels:
    """Randomizes the label of every batch; the function that ``mapInArrow`` calls.

    Attributes:
        shipped: the randomizer.
        layout: where the columns are, and what comes out. The names of incoming columns have no
            meaning.
    """

    shipped: Shipped
    layout: Layout

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches of one partition, with private labels."""
        randomizer = self.shipped.open()
        for batch in batches:
            yield self._with(batch, self.layout.private(randomizer, batch.column))

    def _with(self, batch: Any, private: list[Any]) -> Any:
        arrays, fields = [], []
        for name, is_private, index in self.layout.columns:
            array = private[index] if is_private else batch.column(index)
            kind = pa.field("", array.type) if is_private else batch.schema.field(index)
            arrays.append(array)
            fields.append(kind.with_name(name))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
