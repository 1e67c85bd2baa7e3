"""Stream a Parquet or CSV file of any size, or a folder of such parts, batch by batch.

Names, types and the number of rows can be read without any cell.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_runtime import IdError
from labeldp_runtime.columns import read_ids
from labeldp_runtime.ids import Ids
from labeldp_verify.forms import CategoricalDomain, Domain, GroupColumn, columns_of
from numpy.typing import NDArray

from labeldp_compile.errors import DataError, refused
from labeldp_compile.tabular.columns import (
    Kind,
    check_count_type,
    check_type,
    count_array,
    group_array,
    kind_of,
    label_array,
    value_type,
    with_constants,
    with_decimal_points,
)
from labeldp_compile.tabular.csv_file import CsvFile, empty_is_null
from labeldp_compile.tabular.csv_rows import Cells
from labeldp_compile.tabular.formats import (
    PLAIN,
    TextForm,
    files_of,
    folder_columns,
    is_stream,
    parts_of,
    refuse_folder_column,
    require_format,
)
from labeldp_compile.tabular.parquet_file import parquet_batches, read_footer
from labeldp_compile.tabular.provenance import read_note, require_true


@dataclass(frozen=True)
class ColumnHeader:
    """The facts that a table states about one column.

    Attributes:
        type: of its cells; None for CSV, which states no types.
        kind: of the labels that the type suggests; None for CSV.
        rows: number of rows, which is public, if the file states it.
    """

    type: pa.DataType | None
    kind: Kind | None
    rows: int | None


def read_header(path: Path, column: str, form: TextForm = PLAIN) -> ColumnHeader:
    """A column as the footer of a Parquet file or the first line of a CSV file states it.

    Of a folder, the first part is read, and the footers of all parts for the number of rows. No
    cell is read, and no minimum or maximum that a footer may hold. Raises DataError if the file or
    the column is missing, or if the column's type cannot hold labels.
    """
    types: list[pa.DataType | None] = []
    counts: list[int | None] = []
    for file in files_of(path):
        refuse_folder_column(file, column)
        schema, rows, csv = read_schema(file, form)
        require_column(file, column, list(schema.names), csv)
        kind = None if csv is not None else schema.field(column).type
        if kind is not None and kind_of(kind) is None:
            reason = f"has the type {kind}, but labels are numbers or text"
            raise refused(file, f"{column!r} {reason}")
        types.append(kind)
        counts.append(rows)
    return ColumnHeader(types[0], kind_of(types[0]) if types[0] else None, rows_in(counts))


def read_schema(
    path: Path, form: TextForm = PLAIN, *, stream: bool = False
) -> tuple[pa.Schema, int | None, CsvFile | None]:
    """The facts that a file states without its cells: columns; the number of rows, if stated; and
    the CSV file, if it is one. Columns of CSV are text. Raises DataError."""
    if require_format(path, stream=stream).is_text:
        csv = CsvFile.open(path, form)
        return pa.schema([(name, pa.string()) for name in csv.names]), None, csv
    metadata, schema = read_footer(path)
    return schema, metadata.num_rows, None


def rows_in(parts: Sequence[int | None]) -> int | None:
    """The number of rows of all parts, if each states its own."""
    return None if None in parts else sum(filter(None, parts))


def require_column(path: Path, column: str, names: list[str], csv: CsvFile | None = None) -> None:
    """Raise DataError, with the nearest name, unless exactly one column has this name."""
    if names.count(column) > 1:
        raise refused(path, f"has several columns called {column!r}")
    if column not in names:
        close = difflib.get_close_matches(column, names, n=1)
        known = ", ".join(map(repr, names[:12])) or "none"
        hint = f"did you mean {close[0]!r}?" if close else f"its columns: {known}"
        if csv is not None and len(names) == 1:
            hint += "; if another character separates them, use --delimiter (in a spec or a "
            hint += "config: delimiter)"
        if names and names[0].startswith("sep="):
            hint = "its first line is for Excel alone: remove it"
        raise refused(path, f"has no column {column!r}; {hint}")


def require_distinct(path: Path, names: Sequence[str]) -> None:
    """Raise DataError if two columns have the same name, or none."""
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise refused(path, f"has several columns called {repeated[-1]!r}: name each, or delete it")


@dataclass(frozen=True)
class TableReader:
    """An open table with label columns of usable types.

    Attributes:
        path: of the file.
        label_columns: names of the label columns, one but for a joint label.
        all_columns: whether ``batches`` yields the other columns too.
        domain: of the labels.
        id_column: name of the column that names the labels, or None.
        count_column: of a histogram file, how many rows have the label; or None.
        group_columns: public columns that choose a row's table.
        public_columns: names of other public columns that ``batches`` yields.
        unread_labels: names of labels that are not read, whose cells decide nothing.
        schema: of what ``batches`` yields.
        rows: number of labels if the file states it (Parquet, one label a row), else None.
        csv: the file if it is CSV, else None.
        metadata: of the schema of a Parquet file.
        folder_columns: columns of text that the names of folders give, not the file.
        parts: of a folder, one reader each; then ``schema`` is that of the first.
    """

    path: Path
    label_columns: tuple[str, ...]
    all_columns: bool
    domain: Domain
    id_column: str | None
    count_column: str | None
    group_columns: tuple[GroupColumn, ...]
    public_columns: tuple[str, ...] = ()
    unread_labels: tuple[str, ...] = ()
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    rows: int | None = None
    csv: CsvFile | None = None
    metadata: dict[bytes, bytes] | None = None
    folder_columns: Mapping[str, str | None] = field(default_factory=dict)
    parts: tuple[TableReader, ...] = ()

    @property
    def files(self) -> tuple[TableReader, ...]:
        """One reader a file: the parts of a folder, or this one."""
        return self.parts or (self,)

    @property
    def _every_label(self) -> tuple[str, ...]:
        return (*self.label_columns, *self.unread_labels)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in order. Raises DataError if the file turns out to be damaged."""
        counted = [self.count_column] if self.count_column else []
        names = [*self.label_columns, *counted, *self.group_names, *self.public_columns]
        names = list(dict.fromkeys(names))  # a group may be a person
        return self.columns(None if self.all_columns else names)

    def columns(self, names: list[str] | None) -> Iterator[pa.RecordBatch]:
        """Some columns of the rows, or all, in order. Raises DataError like ``batches``."""
        for file in self.files:
            yield from _batches(file.path, file.csv, names, self._every_label, self._numbers)

    @property
    def is_text(self) -> bool:
        """Whether cells are text of CSV; the parts of a folder are of one kind."""
        return self.files[0].csv is not None

    @property
    def column(self) -> str:
        """The only label column."""
        (column,) = self.label_columns
        return column

    def labels_of(self, batch: pa.RecordBatch) -> list[NDArray[Any]]:
        """The label columns [n] of one batch, as the artifact takes them."""
        pairs = zip(self.label_columns, columns_of(self.domain), strict=True)
        return [label_array(part, name, self._cells(batch, name, part)) for name, part in pairs]

    def has_label(self, batch: pa.RecordBatch) -> NDArray[np.bool_] | None:
        """[n] which rows have a label, where nulls are public; None where every row has one.

        Typed nulls and empty cells of CSV are no labels; what cannot be read is one.
        """
        if not self.domain.keeps_nulls:
            return None
        known = self._cells(batch, self.column, self.domain).is_valid()
        return np.asarray(known.to_numpy(zero_copy_only=False), bool)

    def _cells(self, batch: pa.RecordBatch, name: str, domain: Domain) -> pa.Array:
        """A label column; empty cells of CSV are null where nulls have a rule of their own."""
        cells = batch.column(name)
        if pa.types.is_dictionary(cells.type) and domain.keeps_nulls:
            cells = cells.dictionary_decode()
        has_rule = domain.keeps_nulls or domain.null is not None
        listed = isinstance(domain, CategoricalDomain) and "" in domain.values
        if not self.is_text or not has_rule or listed:
            return cells
        return empty_is_null(cells)

    @property
    def _numbers(self) -> set[str]:
        """The columns that are read as numbers; a table that is read for its ids has no labels."""
        pairs = zip(self.label_columns, columns_of(self.domain), strict=bool(self.label_columns))
        labels = (
            name
            for name, domain in pairs
            if not (isinstance(domain, CategoricalDomain) and domain.is_text)
        )
        return {*labels, *(group.name for group in self.group_columns if group.bands is not None)}

    @property
    def group_names(self) -> list[str]:
        """The columns that choose a row's table."""
        return [column.name for column in self.group_columns]

    def groups_of(self, batch: pa.RecordBatch) -> dict[str, NDArray[Any]]:
        """The public columns [n] of one batch by their names, as the artifact takes them."""
        return {
            one.name: group_array(
                self.path,
                one,
                batch.column(one.name),
                cells=self.is_text or one.name in self.folder_columns,
            )
            for one in self.group_columns
        }

    def blocks(self) -> Iterator[tuple[Cells, pa.RecordBatch]]:
        """The rows of one CSV file in order, their cells and all columns. Raises DataError."""
        assert self.csv is not None
        own = [name for name in self.schema.names if name not in self.folder_columns]
        for cells, read in self.csv.blocks(own, self._every_label):
            batch = read
            if self.csv.decimal == ",":
                batch = with_decimal_points(read, self._numbers)
            yield cells, with_constants(batch, self.folder_columns)

    def require_column(self, name: str) -> None:
        """Raise DataError unless the table, opened with all columns, has this one, once."""
        for file in self.files:
            require_column(file.path, name, list(file.schema.names), file.csv)

    def noted_columns(self) -> list[str]:
        """The columns that a file notes as private. Raises DataError."""
        files = self.files
        names = {name for file in files for name in read_note(file.path, file.metadata)}
        return [name for name in files[0].schema.names if name in names]

    def ids(self) -> Iterator[Ids]:
        """The ids in order; reads no other column. Raises DataError."""
        assert self.id_column is not None
        for file in self.files:
            for batch in file.columns([self.id_column]):
                yield file.ids_of(batch)

    def ids_of(self, batch: pa.RecordBatch) -> Ids:
        """The ids of one batch. Raises DataError for nulls (empty cells of a CSV file, too)."""
        column = batch.column(self.id_column)
        if self.is_text:
            column = empty_is_null(column)
        try:
            return read_ids(column)
        except IdError as error:
            raise refused(self.path, f"{self.id_column!r}: {error}") from None

    def counts_of(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """How many rows have each label of one batch. Raises DataError for other values."""
        assert self.count_column is not None
        return count_array(self.path, self.count_column, batch.column(self.count_column))


def open_table(
    path: Path,
    columns: str | Sequence[str],
    domain: Domain,
    *,
    all_columns: bool,
    id_column: str | None = None,
    count_column: str | None = None,
    group_columns: tuple[GroupColumn, ...] = (),
    public_columns: tuple[str, ...] = (),
    unread_labels: Sequence[str] = (),
    form: TextForm = PLAIN,
    stream: bool = False,
    true_labels: bool = False,
    only: Sequence[Path] | None = None,
) -> TableReader:
    """Open a table and check its label columns, and those of ids, counts or groups if it needs any.

    The table is a file, a folder of parts (``parts_of``; ``only`` these, if they are given) or,
    with ``stream``, ``-``: standard input as CSV. ``form`` is that of text. Raises DataError if a
    file is missing, damaged or empty of columns, if a column is missing or of the wrong type, if
    parts differ in the type of labels or ids, or, with ``true_labels``, if a file says that its
    labels are private already.
    """
    labels = (columns,) if isinstance(columns, str) else tuple(columns)
    groups = [group.name for group in group_columns]
    for column in labels:
        public = ((name, "person") for name in public_columns)
        for other, what in ((id_column, "id"), *((name, "group") for name in groups), *public):
            if column == other:
                raise refused(
                    path, f"{column!r} cannot be both the label and its {what}: name another column"
                )
        if labels.count(column) > 1:
            raise refused(path, f"{column!r} is named twice as a label column: name it once")
    table = TableReader(
        path,
        labels,
        all_columns,
        domain,
        id_column,
        count_column,
        group_columns,
        public_columns,
        tuple(unread_labels),
    )
    if not path.is_dir() or (stream and is_stream(path)):
        return _open_file(table, form, None, stream=stream, true_labels=true_labels)
    parts: list[TableReader] = []
    for part in parts_of(path) if only is None else only:
        opened, first = replace(table, path=part), parts[0] if parts else None
        parts.append(_open_file(opened, form, first, stream=False, true_labels=true_labels))
    rows = rows_in([part.rows for part in parts])
    return replace(
        table,
        schema=parts[0].schema,
        rows=rows,
        parts=tuple(parts),
        folder_columns=parts[0].folder_columns,
    )


def _open_file(
    table: TableReader,
    form: TextForm,
    first: TableReader | None,
    *,
    stream: bool,
    true_labels: bool,
) -> TableReader:
    """The reader of one file, checked; ``first`` is the first part of its folder."""
    path, labels = table.path, table.label_columns
    for name in labels:
        refuse_folder_column(path, name)
    every, rows, csv = read_schema(path, form, stream=stream)
    given = folder_columns(path, every.names)
    for name in given:
        every = every.append(pa.field(name, pa.string()))
    names = list(every.names)
    others = (table.count_column, table.id_column, *table.group_names, *table.public_columns)
    for name in filter(None, (*labels, *others)):
        require_column(path, name, names, csv)
    if csv is None:
        _check_types(table, every, true_labels=true_labels)
    else:
        require_distinct(path, names)
    kept = [name for name in (*labels, table.id_column) if name is not None]
    schema = every if table.all_columns else pa.schema([every.field(name) for name in kept])
    if first is not None:
        for name in kept:
            _require_same_type(path, name, schema.field(name).type, first)
        if schema.equals(first.schema, check_metadata=True):
            schema = first.schema  # held once, however many parts there are
    if table.count_column is not None:
        rows = None  # the file's own rows are labels that occur, not occurrences
    opened = replace(
        table, schema=schema, rows=rows, csv=csv, metadata=every.metadata, folder_columns=given
    )
    # Refuses the type, if it is wrong.
    if opened.group_columns:
        opened.groups_of(no_rows(every))
    if opened.id_column is not None:
        opened.ids_of(no_rows(every))
    return opened


def read_columns(
    path: Path,
    names: Sequence[str],
    form: TextForm,
    labels: Collection[str],
    *,
    every: bool = False,
    numbers: Collection[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Some columns of the rows of one file, in order, or with ``every`` all; those of CSV as text.

    Columns of ``labels`` may hold bytes that are no UTF-8, and any line ends. The columns of
    ``numbers`` have decimal points, also where the file has commas. Raises DataError.
    """
    for name in labels:
        refuse_folder_column(path, name)
    schema, _, csv = read_schema(path, form)
    known = [*schema.names, *folder_columns(path, schema.names)]
    for name in names:
        require_column(path, name, known, csv)
    yield from _batches(path, csv, None if every else list(names), labels, numbers)


def _batches(
    path: Path,
    csv: CsvFile | None,
    names: list[str] | None,
    labels: Collection[str],
    numbers: Collection[str],
) -> Iterator[pa.RecordBatch]:
    """The rows of one file in order, with the columns that its folders give.

    Text of ``numbers`` has decimal points.
    """
    given = folder_columns(path, () if csv is None else csv.names)
    if given and csv is None:
        given = folder_columns(path, read_footer(path)[1].names)
    asked = None if names is None else [name for name in names if name not in given]
    if csv is not None:
        read = csv.batches(csv.names if asked is None else asked or csv.names[:1], labels)
        if csv.decimal == ",":
            read = (with_decimal_points(batch, numbers) for batch in read)
    else:
        read = parquet_batches(path, asked)
    return (with_constants(batch, given, names) for batch in read)


def _check_types(table: TableReader, schema: pa.Schema, *, true_labels: bool) -> None:
    """Raise DataError if labels or counts of a Parquet file have a type that they cannot have.

    If labels must be true but are private already, the error says that, and not that their type
    is wrong.
    """
    if true_labels:
        for column in table.label_columns:
            require_true(table.path, schema.metadata, column)
    try:
        for column, domain in zip(table.label_columns, columns_of(table.domain), strict=True):
            check_type(domain, column, schema.field(column).type)
    except DataError as error:
        raise refused(table.path, str(error)) from None
    if table.count_column is not None:
        check_count_type(table.path, table.count_column, schema.field(table.count_column).type)


def _require_same_type(path: Path, column: str, kind: pa.DataType, first: TableReader) -> None:
    """Raise DataError unless a column has the type that it has in the first part; null fits all."""
    expected = first.schema.field(column).type
    same = value_type(kind) == value_type(expected)
    if not (same or pa.types.is_null(kind) or pa.types.is_null(expected)):
        raise refused(
            path,
            f"{column!r} has the type {kind}, but {expected} in {first.path.name}: all parts of a "
            "table need the same type",
        )


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows; ``from_pylist`` imports pandas, where there is one."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
