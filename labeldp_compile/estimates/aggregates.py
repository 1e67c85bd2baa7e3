"""From artifacts and tables of private labels to the estimates of each group.

Estimates, and their weights, are written as long tables: a row for each number. **Estimates** are
for pandas, DuckDB and dashboards. First come the columns of the groups, under their own names, then
those of ``COLUMNS``. Names of columns must differ, so a column of groups cannot have the name of
one of these.

**Weights** are joined with private labels elsewhere. A row says what one private label adds to one
estimate: the mean of ``weight`` over private labels estimates the share or the mean of the true
ones without bias, and the mean of ``noise``, divided by the number of rows, its variance for these
rows.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_learn.toolkit import (
    ALONE,
    CONFIDENCE,
    MOST_ENTRIES,
    QUANTILES,
    ColumnEstimates,
    Confidence,
    Estimates,
    Estimation,
    Estimator,
    GroupEstimates,
    PrivateLabelError,
    Quantile,
    Target,
    values_of,
)
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.claims import nulls_counted_as
from labeldp_verify.forms import AdditiveRandomizer, JointDomain
from labeldp_verify.opening import readable
from labeldp_verify.printable import clipped

from labeldp_compile.errors import InputError
from labeldp_compile.estimates.counts import (
    PrivateReader,
    count_outputs,
    in_words,
    open_all,
    require_public,
)
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.tabular.columns import value_type
from labeldp_compile.tabular.csv_sink import csv_holds
from labeldp_compile.tabular.formats import PLAIN, TextForm
from labeldp_compile.tabular.reader import TableReader, rows_in

FORMAT_VERSION = "1.0"
GROUP = "group_name"  # the column of the groups of artifacts
_NAMED, _COLUMNS = 3, 32  # private columns in a warning, and characters of their names
Progress = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]


@dataclass(frozen=True)
class Aggregates:
    """Estimates from private labels.

    Attributes:
        columns: the columns of the private labels; several if a label has several.
        target: what the intervals are about.
        groups: all rows first, then each group by its name.
        estimation: the estimators of the artifacts, and what they do not support.
        warnings: why these may not be private labels of the artifacts, in words.
        by: the columns of the groups with their types, if all tables have the same; ``GROUP`` for
            those of the artifacts.
        confidence: how often an interval may miss.
    """

    columns: list[str]
    target: Target
    groups: list[GroupEstimates]
    estimation: Estimation
    warnings: list[str] = field(default_factory=list)
    by: dict[str, pa.DataType | None] = field(default_factory=dict)
    confidence: Confidence = ALONE

    @property
    def refused(self) -> dict[str, str]:
        """Aggregates that the artifacts do not support: mean, histogram, quantiles → the reason."""
        return self.estimation.refused

    def class_labels(self) -> list[list[Any]]:
        """The labels of each class, as people write them."""
        listed = readable(self.estimation.table).domain.listed
        return [[listed[y] for y in own.tolist()] for own in self.estimation.class_members()]

    def to_json(self) -> dict[str, Any]:
        """``{format_version, artifact, artifacts, by, target, confidence, simultaneous, classes,
        refused, groups, nulls}``; for a label of several columns, a group also has ``columns``.

        Classes are lists of labels; histograms have the same order. The first group is all rows. A
        group of several columns ``by`` is the list of its values. ``simultaneous`` is the number of
        intervals that hold at once, null if each is for itself. ``nulls`` says what nulls of each
        artifact were counted as.
        """
        classes, artifacts = self.class_labels(), self.estimation.artifacts
        names = [artifact.certificate.name for artifact in artifacts]
        return {
            "format_version": FORMAT_VERSION,
            "artifact": names[0],
            "artifacts": names,
            "by": list(self.by),
            "target": self.target,
            "confidence": CONFIDENCE,
            "simultaneous": self.confidence.together or None,
            "classes": None if "histogram" in self.refused else classes,
            "refused": self.refused,
            "groups": [_group(group, classes) for group in self.groups],
            "nulls": [nulls_counted_as(artifact.label) for artifact in artifacts],
        }


def _group(group: GroupEstimates, classes: list[list[Any]]) -> dict[str, Any]:
    stated = {
        "group": plain(group.name),
        "rows": group.rows,
        "mean": group.mean and group.mean.at(0),
        "quantiles": [_quantile(q, classes) for q in group.quantiles] if group.quantiles else None,
        "histogram": group.histogram and _shares(group),
    }
    if group.columns:
        stated["columns"] = [
            {
                "column": column.name,
                "mean": column.mean and column.mean.at(0),
                "histogram": [
                    {"label": label, **share}
                    for label, share in zip(column.labels, _shares(column), strict=True)
                ],
            }
            for column in group.columns
        ]
    return stated


def plain(name: Any) -> Any:
    """A name as JSON has it, which knows no infinite numbers."""
    if isinstance(name, tuple):
        return [plain(value) for value in name]
    known = math.isfinite(name) if isinstance(name, float) else isinstance(name, str | int | None)
    return name if known else in_words(name)


def _quantile(quantile: Quantile, classes: list[list[Any]]) -> dict[str, Any]:
    def ends(low: int, high: int) -> list[Any]:
        return [classes[low][0], classes[high][-1]]

    return {
        "share": quantile.share,
        "estimate": ends(quantile.estimate, quantile.estimate),
        "interval": quantile.interval and ends(*quantile.interval),
    }


def _shares(of: GroupEstimates | ColumnEstimates) -> list[dict[str, Any]]:
    """The shares of a group or a column that has a histogram."""
    assert of.histogram is not None and of.projected is not None
    projected = enumerate(of.projected.tolist())
    return [{**of.histogram.at(i), "projected": share} for i, share in projected]


def _silent(_: str, rows: int | None) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(QUIET.rows)


def estimate_tables(
    decoded: Sequence[Artifact],
    pairs: Sequence[tuple[Path, Path]],
    column: str | Sequence[str] | None = None,
    *,
    by: Sequence[str] = (),
    group_columns: Mapping[str, str] | None = None,
    target: Target = "rows",
    simultaneous: bool = False,
    form: TextForm = PLAIN,
    progress: Progress = _silent,
) -> Aggregates:
    """The estimates of private labels, for all rows and for the groups of ``by``.

    ``pairs`` are the paths of ``decoded`` artifacts and of their tables, whose rows are disjoint; a
    table that is given for several artifacts is divided by what its parts note. ``column`` is the
    private column, or several in the order of the label, if they do not have the names of the spec.
    ``group_columns`` maps the artifact's names of group columns to those of the table, if they
    differ (a single one has the name ""). With ``simultaneous``, all intervals hold at once.
    ``form`` is the form of a text table. ``progress`` opens a display with a name, and with the
    number of rows if it is known.

    Raises InputError (DataError) if the input is wrong or supports no estimate, if a table notes
    that another artifact made its labels, or if the artifacts have different labels.
    """
    if repeated := [name for name in by if by.count(name) > 1]:
        raise InputError(f"{repeated[0]!r} is named twice to group by: name it once")
    readers = open_all(decoded, pairs, column, group_columns, form)
    for name in by:
        for reader, one, (artifact, _) in zip(readers, decoded, pairs, strict=True):
            require_public(reader, one, artifact, name)
    sources = [PrivateReader(*one) for one in zip(readers, decoded, strict=True)]
    with progress("counting", rows_in([reader.rows for reader in readers])) as count:
        counts = count_outputs(sources, by, Observer(rows=count))
    names = " and ".join(dict.fromkeys(str(artifact) for artifact, _ in pairs))
    estimation = estimators_of(names, *decoded, tables=counts[0].by_table)
    confidence = Confidence(estimation.intervals(counts)) if simultaneous else ALONE
    # Exact intervals for thousands of small groups take minutes.
    every = sum(group.rows for group in counts)
    with (_silent if len(counts) == 1 else progress)("estimating", every) as count:
        groups = estimation(counts, target, confidence, count)
    columns = list(dict.fromkeys(name for reader in readers for name in reader.label_columns))
    unlikely = estimation.hardly_private(counts[0])
    warnings = [
        line
        for position, reader in enumerate(readers)
        for line in private_warnings(reader, position in unlikely)
    ]
    types: dict[str, pa.DataType | None] = {name: _type_of(name, readers) for name in by}
    if not by and len(counts) > 1:
        types = {GROUP: pa.string()}
    return Aggregates(columns, target, groups, estimation, warnings, types, confidence)


def estimators_of(path: object, *artifacts: Artifact, tables: Iterable[int]) -> Estimation:
    """The estimators of artifacts. Raises InputError, with ``path``, if there are none."""
    try:
        return Estimation.of(*artifacts, tables=tables)
    except PrivateLabelError as error:
        raise InputError(f"{path}: its private labels support no estimate: {error}") from None


def _type_of(name: str, readers: Sequence[TableReader]) -> pa.DataType | None:
    """The type of a column, if all tables have the same."""
    files = [file for reader in readers for file in reader.files]
    first, *others = (value_type(file.schema.field(name).type) for file in files)
    return first if all(other == first for other in others) else None


def private_warnings(reader: TableReader, hardly_private: bool) -> list[str]:
    """Why the label columns are probably no private labels, in at most one line.

    ``hardly_private`` is as of ``Estimation.hardly_private``, of this table.
    """
    columns, reasons = reader.label_columns, []
    named = ", ".join(map(repr, columns))
    if hardly_private:
        reasons.append(
            "these can hardly be private labels of this artifact: their estimates are impossible, "
            f"far beyond chance (is {named} the private column, with all rows?)"
        )
    noted = reader.noted_columns()
    if noted and not set(columns) <= set(noted):
        names = ", ".join(clipped(repr(name), _COLUMNS) for name in noted[:_NAMED])
        more = ", …" if len(noted) > _NAMED else ""
        reasons.append(f"the file marks {names}{more} as private, but not {named}")
    return [f"{reader.path}: {'; '.join(reasons)}"] if reasons else []


# None of these names is reserved in SQL.
COLUMNS = pa.schema(
    [
        ("all_rows", pa.bool_()),  # whether the row is about all rows; then groups are null
        ("rows", pa.int64()),
        ("label_column", pa.string()),
        ("statistic", pa.string()),  # mean, share or quantile
        ("label", pa.string()),  # whose share it is, or that is the quantile
        ("position", pa.int64()),  # of the label in its order, from 0
        ("quantile", pa.float64()),  # 0.05 … 0.95
        ("estimate", pa.float64()),  # null for a quantile that is no single number
        ("standard_error", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("projected", pa.float64()),  # of a share
        ("target", pa.string()),
        ("confidence", pa.float64()),
        ("simultaneous", pa.int64()),  # intervals that hold at once, null if each is for itself
    ]
)
_WEIGHTS_OF = pa.schema(
    [
        ("table_number", pa.int64()),
        ("group_name", pa.string()),
        ("label_column", pa.string()),
        ("statistic", pa.string()),
        ("label", pa.string()),
        ("position", pa.int64()),
    ]
)
_NUMBERS = pa.schema([("weight", pa.float64()), ("noise", pa.float64())])
_BLOCK = 1 << 16  # rows
Row = tuple[Any, ...]


def require_free_names(by: tuple[str, ...]) -> None:
    """Raise InputError if a column of groups is called like another column of the table."""
    for name in by:
        if name in COLUMNS.names:
            raise InputError(
                f"{name!r} is also a column of the table that is written: rename the column of "
                "the groups"
            )


def schema_of(aggregates: Aggregates) -> pa.Schema:
    """Columns of groups have their own types; text if their tables differ, or CSV has no such."""
    types = ((name, _written_type(kind)) for name, kind in aggregates.by.items())
    return pa.schema([*types, *COLUMNS])


def _written_type(kind: pa.DataType | None) -> pa.DataType:
    numbers = kind is not None and (pa.types.is_primitive(kind) or pa.types.is_decimal(kind))
    return kind if numbers and csv_holds(kind) else pa.string()


def rows_of(aggregates: Aggregates) -> Iterator[Row]:
    """The rows of the table, in the order of ``schema_of``."""
    names = aggregates.estimation.class_names()
    ends = [(labels[0], labels[-1]) for labels in aggregates.class_labels()]
    how = (aggregates.target, CONFIDENCE, aggregates.confidence.together or None)
    are_text = [pa.types.is_string(_written_type(kind)) for kind in aggregates.by.values()]
    for group in aggregates.groups:
        cell = group.cell or (None,) * len(are_text)
        values = (
            in_words(value) if is_text and value is not None else value
            for value, is_text in zip(cell, are_text, strict=True)
        )
        about = (*values, not group.cell, group.rows)
        whole = [*_shares_and_mean(group, names), *_quantiles(group, names, ends)]
        yield from ((*about, ", ".join(aggregates.columns), *row, *how) for row in whole)
        for part in group.columns:
            rows = _shares_and_mean(part, list(map(str, part.labels)))
            yield from ((*about, part.name, *row, *how) for row in rows)


def _quantiles(
    group: GroupEstimates, names: list[str], ends: list[tuple[Any, Any]]
) -> Iterator[Row]:
    for q in group.quantiles or []:
        least, most = map(float, ends[q.estimate])
        low = high = None
        if q.interval is not None:
            low, high = float(ends[q.interval[0]][0]), float(ends[q.interval[1]][1])
        value = least if least == most else None
        yield ("quantile", names[q.estimate], q.estimate, q.share, value, None, low, high, None)


def _shares_and_mean(of: GroupEstimates | ColumnEstimates, names: list[str]) -> Iterator[Row]:
    if of.mean is not None:
        yield ("mean", None, None, None, *_numbers(of.mean, 0), None)
    if of.histogram is not None and of.projected is not None:
        for i, (name, projected) in enumerate(zip(names, of.projected.tolist(), strict=True)):
            yield ("share", name, i, None, *_numbers(of.histogram, i), projected)


def _numbers(estimates: Estimates, i: int) -> Row:
    stated = estimates.at(i)
    return stated["estimate"], float(estimates.error[i]), stated["low"], stated["high"]


def weights_of(artifact: Artifact, path: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns and the rows of the table of weights; ``path`` names the artifact in messages.

    ``output`` is a private label; a label of several columns has ``output_NAME`` for each. Raises
    InputError if the artifact supports no estimate, or too many rows are needed.
    """
    estimation = estimators_of(path, artifact, tables=range(len(artifact.tables)))
    parts = [
        (table, key, each)
        for table, estimators in estimation.estimators.items()
        for key, each in estimators.estimators.items()
        if key != QUANTILES and estimation.is_given(key)
    ]
    rows = sum(each.size * artifact.tables[table].outputs for table, _, each in parts)
    if rows > MOST_ENTRIES:
        raise InputError(
            f"{path}: a table of its weights would have {rows:,} rows; the limit is "
            f"{MOST_ENTRIES:,}"
        )
    outputs = {t: _outputs(artifact, artifact.table(t)) for t in estimation.estimators}
    kinds = [(name, column.type) for name, column in outputs[0].items()]
    schema = pa.schema([*_WEIGHTS_OF, *kinds, *_NUMBERS])
    labels: dict[str | None, list[str]] = {None: estimation.class_names()}
    labels |= {name: list(map(str, own)) for name, own in estimation.label_columns()}

    def batches() -> Iterator[pa.RecordBatch]:
        for table, (what, column), each in parts:
            names = column or ", ".join(artifact.certificate.label_columns)
            first = (table, artifact.groups.name(table), names)
            of = [None] if what == "mean" else labels[column]
            statistic = "mean" if what == "mean" else "share"
            yield from _blocks((*first, statistic), of, each, outputs[table], schema)

    return schema, batches()


def _outputs(artifact: Artifact, table: Table) -> dict[str, pa.Array]:
    """The columns [m] of the private labels, in the order of the outputs."""
    domain, r = table.domain, table.randomizer
    if isinstance(r, AdditiveRandomizer):
        return {"output": pa.array(values_of(r)(np.arange(r.outputs)))}
    if isinstance(domain, JointDomain) and not artifact.answers_with_sets:
        places = domain.places_of(np.array([int(value) for value in r.values], np.int64))
        names = table.certificate.label_columns
        return {
            f"output_{name}": pa.array(list(part.listed)).take(pa.array(at))
            for name, part, at in zip(names, domain.parts, places, strict=True)
        }
    return {"output": pa.array(r.values)}


def _blocks(
    first: Row,
    labels: list[Any],
    each: Estimator,
    outputs: dict[str, pa.Array],
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """The rows of one kind of estimate, label by label."""
    m = len(next(iter(outputs.values())))
    weight, noise = each.by_output(m)
    step = max(_BLOCK // m, 1)
    for start in range(0, len(labels), step):
        part = labels[start : start + step]
        n = len(part)
        positions = np.repeat(np.arange(start, start + n), m)
        arrays = [
            *(pa.repeat(pa.scalar(value), n * m) for value in first),
            pa.array(part, pa.string()).take(pa.array(positions - start)),
            pa.nulls(n * m, pa.int64()) if labels == [None] else pa.array(positions),
            *(pa.concat_arrays([column] * n) for column in outputs.values()),
            *(pa.array(a[:, start : start + n].T.ravel()) for a in (weight, noise)),
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
