"""From Arrow columns to the arrays that the artifact takes as labels and groups, and to counts.

Nothing here looks at a label's value to decide whether to fail: a column either has a usable type,
or it is refused as a whole. Nulls become the label that the out-of-domain rule names.

The rules for groups are the runtime's: nulls, and values that are not listed, have the table of all
other rows. Cells of text (CSV) are read by the runtime's grammar where bands need
numbers; where integers are listed, only an integer without a point or an exponent is one of them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from labeldp_runtime import LabelError
from labeldp_runtime.columns import read_group_column, read_labels
from labeldp_runtime.columns.arrow import is_number, is_text, labels_of_cells
from labeldp_runtime.elements import whole_number_in
from labeldp_verify.forms import CategoricalDomain, Domain, GroupColumn, RealDomain, missing_label
from labeldp_verify.graph import DOUBLE, INT64, group_type
from numpy.typing import NDArray

from labeldp_compile.errors import DataError, InputError, refused

MAX_TOTAL = 2**53  # rows that a histogram file may count
_WHOLE = r"^[0-9]{1,16}(\.0*)?$"
ONLY = ""  # stands for the name of an only column
Kind = Literal["integer", "real", "categorical"]


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values, where they stand in a dictionary, too."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def kind_of(arrow_type: pa.DataType) -> Kind | None:
    """The kind of labels that the type of a column suggests; None if it cannot hold labels."""
    value = value_type(arrow_type)
    if is_text(value):
        return "categorical"
    if pa.types.is_integer(value) or pa.types.is_boolean(value):
        return "integer"
    return "real" if is_number(value) else None


def check_type(domain: Domain, column: str, arrow_type: pa.DataType) -> None:
    """Raise DataError unless a column of this type can hold the domain's labels."""
    kinds: tuple[Kind, ...] = ("integer", "real")
    wanted = "numbers"
    if isinstance(domain, CategoricalDomain):
        kinds, wanted = (("categorical",), "text") if domain.is_text else (("integer",), "integers")
    if kind_of(arrow_type) not in kinds and not pa.types.is_null(value_type(arrow_type)):
        raise DataError(
            f"the label column {column!r} has the type {arrow_type}, "
            f"but the {domain.kind} domain of the spec needs {wanted}"
        )


def label_array(domain: Domain, column: str, values: pa.Array) -> NDArray[Any]:
    """Labels [n] as int64, float64 or text (object), ready for the graph's ``label`` input.

    For an integer domain, numbers with a fraction are rounded to the nearest integer (halves to
    even). Text is read by the runtime's grammar where the domain needs numbers: it comes
    from a CSV file, for ``check_type`` refuses a Parquet file's text when it is opened.
    Raises DataError for a column of the wrong type.
    """
    element, missing = _element_type(domain), missing_label(domain)
    if is_text(values.type) and element != "string":
        assert not isinstance(missing, str)
        return labels_of_cells(values, element, missing)
    check_type(domain, column, values.type)
    return read_labels(values, element, missing)[0]


def number_array(path: Path, column: str, values: pa.Array) -> NDArray[np.float64]:
    """Public numbers [n] of any numeric type, or of text (CSV); NaN where there is none.

    Raises DataError for another type.
    """
    if is_text(values.type):
        return labels_of_cells(values, "float64", float("nan"))
    if not is_number(value_type(values.type)):
        raise refused(path, f"{column!r} has the type {values.type}, expected numbers")
    return read_labels(values, "float64", float("nan"))[0]


def _element_type(domain: Domain) -> str:
    if isinstance(domain, RealDomain):
        return "float64"
    text = isinstance(domain, CategoricalDomain) and domain.is_text
    return "string" if text else "int64"


def check_count_type(path: Path, column: str, arrow_type: pa.DataType) -> None:
    """Raise DataError unless a column of this type can hold counts."""
    if not is_number(arrow_type) or pa.types.is_boolean(arrow_type):
        raise refused(path, f"counts: {column!r} has the type {arrow_type}, expected integers")


def count_array(path: Path, column: str, values: pa.Array) -> NDArray[np.int64]:
    """Counts [n] of any numeric type, or of text (CSV), exactly.

    Raises DataError for nulls, negative and fractional counts, and counts above 2^53. The message
    quotes no count: they are as sensitive as the labels.
    """
    if is_text(values.type):
        import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

        trimmed = pc.utf8_trim_whitespace(values)
        cells = pc.if_else(pc.match_substring_regex(trimmed, _WHOLE), trimmed, None)
        values = pc.replace_substring_regex(cells, r"\..*", "")
    if values.null_count:
        raise _unusable(path, column)
    try:
        counts: NDArray[np.int64] = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        raise _unusable(path, column) from None
    if len(counts) and not 0 <= counts.min() <= counts.max() <= MAX_TOTAL:
        raise _unusable(path, column)
    return counts


def _unusable(path: Path, column: str) -> DataError:
    return refused(path, f"counts: {column!r} must hold a whole number from 0 to 2^53 in every row")


def group_array(path: Path, column: GroupColumn, values: Any, *, cells: bool) -> NDArray[Any]:
    """One column [n] of Arrow or numpy as the artifact takes it.

    ``cells`` says that text is that of a CSV file, where numbers are text, too. Raises DataError
    for a type that cannot hold the groups.
    """
    kind = {DOUBLE: "float64", INT64: "int64"}.get(group_type(column), "string")
    missing = column.outside()[0]
    if cells and not isinstance(missing, str):
        read = whole_number_in if kind == "int64" else None
        return labels_of_cells(values, kind, missing, read)
    try:
        return read_group_column(values, kind, missing)
    except LabelError as error:
        reason = str(error).replace("as labels", "as groups")
        raise refused(path, f"the group column {column.name!r}: {reason}") from None


def with_decimal_points(batch: pa.RecordBatch, numbers: Collection[str]) -> pa.RecordBatch:
    """A batch of text [n] whose columns of ``numbers`` had decimal commas.

    A cell with a point, which may separate thousands there, is no number then.
    """
    import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

    def with_points(cells: pa.Array) -> pa.Array:
        return pc.replace_substring(pc.replace_substring(cells, ".", ";"), ",", ".")

    columns = [
        with_points(column) if name in numbers else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def with_constants(
    batch: pa.RecordBatch, constants: Mapping[str, str | None], names: Sequence[str] | None = None
) -> pa.RecordBatch:
    """A batch [n] with further columns of one text (null for None), in the order of ``names``."""
    if not constants:
        return batch
    fields = {field.name: (field, batch.column(i)) for i, field in enumerate(batch.schema)}
    for name, text in constants.items():
        fields[name] = (pa.field(name, pa.string()), pa.array([text] * len(batch), pa.string()))
    chosen = [fields[name] for name in (fields if names is None else names)]
    schema = pa.schema([field for field, _ in chosen], metadata=batch.schema.metadata)
    return pa.RecordBatch.from_arrays([column for _, column in chosen], schema=schema)


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


def group_columns_in_table(
    columns: tuple[GroupColumn, ...], given: Mapping[str, str], labels: Collection[str]
) -> tuple[GroupColumn, ...]:
    """The artifact's group columns under the names that a table has for them.

    ``given`` has the table's name by the certificate's, or by ``ONLY``; ``labels`` are columns of
    true labels, which are no groups. Raises InputError.
    """
    if given and not columns:
        raise InputError("a group column needs an artifact with a table for each group")
    names = [column.name for column in columns]
    if len(names) == 1 and ONLY in given:
        given = {names[0]: given[ONLY]}
    if unknown := [name for name in given if name not in names]:
        way = "say which, as NAME=COLUMN" if unknown == [ONLY] else f"not {unknown[0]!r}"
        raise InputError(f"the artifact's group columns are {', '.join(map(repr, names))}: {way}")
    columns_there = tuple(
        replace(column, name=given.get(column.name, column.name)) for column in columns
    )
    if len({column.name for column in columns_there}) != len(columns_there):
        raise InputError("two group columns cannot be the same column of the table")
    for column in columns_there:
        if column.name in labels:
            raise InputError(
                f"{column.name!r} cannot be both the label and its group: groups are public"
            )
    return columns_there
