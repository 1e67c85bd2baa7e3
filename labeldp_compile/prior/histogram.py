"""Count the labels of a table, and treat each label and row exactly as the artifact will."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from labeldp_verify.forms import Domain, Groups
from labeldp_verify.graph import group_inputs, label_inputs, write_group_model, write_index_model
from numpy.typing import NDArray

from labeldp_compile.errors import refused
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.prior.group_cells import ONE_TABLE

if TYPE_CHECKING:
    import onnxruntime
    import pyarrow as pa

    from labeldp_compile.spec.model import PersonUnit
    from labeldp_compile.tabular.reader import TableReader

_CHUNK = 1 << 16  # rows


def count_labels(
    table: TableReader,
    asked: Groups = ONE_TABLE,
    observer: Observer = QUIET,
    person: PersonUnit | None = None,
) -> NDArray[np.int64]:
    """[T + 1, k] how many rows have each label, by table of ``asked``; sums to all rows.

    Of a ``person`` only the first rows count, as many as the unit has labels, so that all labels of
    a person change the histogram by at most 2·L, across all tables. The order of rows is public.

    Every other row counts, including nulls and labels outside the domain: otherwise the number of
    rows would depend on the labels. Only where nulls are public, rows without a label do not count.
    The artifact's own graph finds the label and table of each row. Rows are streamed, so memory
    does not grow with the table.

    A histogram file gives the same counts as the rows that it counts: if labels are rounded at
    random, each is rounded separately. Raises DataError if it counts more than 2^53 rows.
    """
    domain = table.domain
    counts = np.zeros(asked.tables * domain.size, dtype=np.int64)
    indexes, tables = label_indexes(domain), table_indexes(table, asked)
    for batch, times in _weighed(table, table.batches(), person):
        labels, first = table.labels_of(batch), tables(batch) * domain.size
        if times is None or domain.words_per_label == 1:
            _add(counts, first + indexes(labels), times)
            observer.rows(len(batch) if times is None else int(times.sum()))
            continue
        for part in _repeated(times):
            _add(counts, first[part] + indexes([column[part] for column in labels]), None)
            observer.rows(len(part))
    return counts.reshape(asked.tables, domain.size)


def count_tables(table: TableReader, asked: Groups, person: PersonUnit | None = None) -> list[int]:
    """[T + 1] the rows of each table that ``count_labels`` counts: public, and no label is read."""
    sizes = np.zeros(asked.tables, dtype=np.int64)
    tables = table_indexes(table, asked)
    counted = [] if table.count_column is None else [table.count_column]
    nulls = list(table.label_columns) if table.domain.keeps_nulls else []
    names = list(dict.fromkeys([*table.group_names, *counted, *table.public_columns, *nulls]))
    for batch, times in _weighed(table, table.columns(names), person):
        _add(sizes, tables(batch), times)
    return [int(size) for size in sizes]


def label_indexes(domain: Domain) -> Callable[[Sequence[NDArray[Any]]], NDArray[np.int64]]:
    """From label columns [n] to their rows in the domain [n], by the artifact's own graph."""
    from labeldp_runtime.entropy import random_words  # noqa: PLC0415  # loads OpenSSL

    session = _session(write_index_model(domain))
    words, inputs = domain.words_per_label, label_inputs(domain)

    def indexes(labels: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
        count = len(labels[0])
        shape = (count,) if words == 1 else (count, 2)
        # Only randomized rounding reads the words; the Laplace noise protects the counts.
        entropy = random_words(*shape) if words == 2 else np.zeros(shape, dtype=np.uint64)
        feed = {**dict(zip(inputs, labels, strict=True)), "entropy": entropy}
        return session.run(None, feed)[0]

    return indexes


def table_indexes(
    table: TableReader, groups: Groups
) -> Callable[[pa.RecordBatch], NDArray[np.int64]]:
    """From batches of n rows to the indices of their tables [n], by the artifact's own graph."""
    if not groups.columns:
        return lambda batch: np.zeros(len(batch), dtype=np.int64)
    indexes = indexes_of_columns(groups)

    def of_batch(batch: pa.RecordBatch) -> NDArray[np.int64]:
        columns = table.groups_of(batch)
        return indexes([columns[name] for name in table.group_names])

    return of_batch


def indexes_of_columns(groups: Groups) -> Callable[[Sequence[NDArray[Any]]], NDArray[np.int64]]:
    """From the columns [n] of the groups, in their order, to the indices of their tables [n].

    By the artifact's own graph; the columns are as it takes them (``group_array``).
    """
    session = _session(write_group_model(groups))
    inputs = group_inputs(groups)

    def indexes(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
        feed = dict(zip(inputs, columns, strict=True))
        feed["label"] = np.zeros(len(columns[0]), dtype=np.int64)
        return session.run(None, feed)[0]

    return indexes


def _session(model: bytes) -> onnxruntime.InferenceSession:
    import onnxruntime  # noqa: PLC0415  # needed only for counting

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _weighed(
    table: TableReader, batches: Iterator[pa.RecordBatch], person: PersonUnit | None
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64] | None]]:
    """The rows of batches that count, and how many rows each represents; None if it is one."""
    from labeldp_compile.tabular.columns import MAX_TOTAL  # noqa: PLC0415  # pyarrow

    if person is not None:
        from labeldp_compile.tabular.persons import PersonBound  # noqa: PLC0415

        bound = PersonBound(person.column, person.labels, beyond="null")
        for batch in batches:
            within = bound.within(table, batch)
            yield rows_with_label(table, batch, None if within.all() else within.astype(np.int64))
        return
    rows = 0
    for batch in batches:
        times = None if table.count_column is None else table.counts_of(batch)
        # In Python's integers: a sum in int64 could overflow.
        rows += 0 if times is None else sum(times.tolist())
        if rows > MAX_TOTAL:
            raise refused(table.path, "counts more than 2^53 rows")
        yield rows_with_label(table, batch, times)


def rows_with_label(
    table: TableReader, batch: pa.RecordBatch, times: NDArray[np.int64] | None
) -> tuple[pa.RecordBatch, NDArray[np.int64] | None]:
    """The rows of a batch that count: all, but for those without a label where that is public."""
    known = table.has_label(batch)
    if known is None or known.all():
        return batch, times
    import pyarrow as pa  # noqa: PLC0415

    return batch.filter(pa.array(known)), None if times is None else times[known]


def _add(
    counts: NDArray[np.int64], places: NDArray[np.int64], times: NDArray[np.int64] | None
) -> None:
    """Count each of the places [n] once, or as often as ``times`` [n] says."""
    if times is None:
        counts += np.bincount(places, minlength=len(counts))
    else:
        np.add.at(counts, places, times)


def _repeated(times: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The index of each row as often as it was counted, in parts of ``_CHUNK``."""
    ends = np.cumsum(times)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, total, _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, total))
        yield np.searchsorted(ends, rows, side="right")
