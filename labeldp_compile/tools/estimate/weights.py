"""The weights of the estimates as a table, to be joined with private labels elsewhere.

A row says what one private label adds to one estimate: the mean of ``weight`` over private labels
estimates the share or the mean of the true ones without bias, and the mean of ``noise``, divided by
the number of rows, its variance for these rows.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.forms import AdditiveRandomizer, JointDomain
from numpy.typing import NDArray

from labeldp_compile.errors import InputError
from labeldp_compile.tools.estimate.estimate import Estimation
from labeldp_compile.tools.estimate.estimators import QUANTILES, Estimator, Key
from labeldp_compile.tools.estimate.inversion import MAX_ENTRIES, NotEstimableError
from labeldp_compile.tools.estimate.unbiased_mean import values_of

_BLOCK = 1 << 16  # rows
# Of these names, none is reserved in SQL.
_FIRST = [("table_number", pa.int64()), ("group_name", pa.string()), ("label_column", pa.string())]
_WHAT = [("statistic", pa.string()), ("label", pa.string()), ("position", pa.int64())]
_NUMBERS = [("weight", pa.float64()), ("noise", pa.float64())]


def weights_of(artifact: Artifact, path: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns and the rows of the table; ``path`` names the artifact in messages.

    ``output`` is a private label; a label of several columns has ``output_NAME`` for each. Raises
    InputError if the artifact supports no estimate, or too many rows are needed.
    """
    try:
        estimation = Estimation.of(artifact, tables=range(len(artifact.tables)))
    except NotEstimableError as error:
        raise InputError(f"{path}: its private labels support no estimate: {error}") from None
    rows = sum(
        each.size * artifact.tables[table].outputs
        for table, found in estimation.estimators.items()
        for key, each in found.found.items()
        if _is_given(estimation, key)
    )
    if rows > MAX_ENTRIES:
        raise InputError(
            f"{path}: a table of its weights would have {rows:,} rows; the limit is {MAX_ENTRIES:,}"
        )
    outputs = [_outputs(artifact, artifact.table(table)) for table in estimation.estimators]
    kinds = [(name, column.type) for name, column in outputs[0].items()]
    schema = pa.schema([*_FIRST, *_WHAT, *kinds, *_NUMBERS])
    return schema, _rows(estimation, artifact, outputs, schema)


def _is_given(estimation: Estimation, key: Key) -> bool:
    return key != QUANTILES and estimation.is_given(key)


def _outputs(artifact: Artifact, table: Table) -> dict[str, pa.Array]:
    """The columns [m] of the private labels, in the order of the outputs."""
    domain, r = table.domain, table.randomizer
    if isinstance(domain, JointDomain) and not artifact.answers_with_sets:
        assert not isinstance(r, AdditiveRandomizer)
        places = domain.places_of(np.array([int(value) for value in r.values], np.int64))
        names = table.certificate.label_columns
        return {
            f"output_{name}": pa.array(list(part.listed)).take(pa.array(at))
            for name, part, at in zip(names, domain.parts, places, strict=True)
        }
    if isinstance(r, AdditiveRandomizer):
        return {"output": pa.array(values_of(r)(np.arange(r.outputs)))}
    return {"output": pa.array(r.values)}


def _rows(
    estimation: Estimation,
    artifact: Artifact,
    outputs: list[dict[str, pa.Array]],
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    names = estimation.class_names()
    columns = {name: list(map(str, labels)) for name, labels in estimation.label_columns()}
    whole = ", ".join(artifact.certificate.label_columns)
    for (table, found), private in zip(estimation.estimators.items(), outputs, strict=True):
        for key, each in found.found.items():
            if not _is_given(estimation, key):
                continue
            what, column = key
            labels: list[Any] = columns[column] if column is not None else names
            first = (table, artifact.groups.name(table), whole if column is None else column)
            if what == "mean":
                yield from _block((*first, "mean"), [None], each, private, schema)
            else:
                yield from _block((*first, "share"), labels, each, private, schema)


def _block(
    first: tuple[Any, ...],
    labels: list[Any],
    each: Estimator,
    private: dict[str, pa.Array],
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """The rows of one kind of estimate, label by label."""
    m = len(next(iter(private.values())))
    weight, noise = each.by_output(m)
    step = max(_BLOCK // m, 1)
    for start in range(0, len(labels), step):
        part = labels[start : start + step]
        n = len(part)
        positions: NDArray[Any] = np.repeat(np.arange(start, start + n), m)
        place = pa.nulls(n * m, pa.int64()) if labels == [None] else pa.array(positions)
        arrays = [
            *(pa.repeat(pa.scalar(value), n * m) for value in first),
            pa.array(part, pa.string()).take(pa.array(positions - start)),
            place,
            *(pa.concat_arrays([column] * n) for column in private.values()),
            *(pa.array(a[:, start : start + n].T.ravel()) for a in (weight, noise)),
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
