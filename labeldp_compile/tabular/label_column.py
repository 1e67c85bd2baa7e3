"""From an Arrow column to the array that the artifact takes as its labels.

Nothing here looks at a label's value to decide whether to fail: a column either has a usable type,
or it is refused as a whole. Nulls become the label that the out-of-domain rule names.
"""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
from labeldp_runtime.columns import read_labels
from labeldp_runtime.columns.arrow import is_number, is_text
from labeldp_verify.forms import CategoricalDomain, Domain, RealDomain, missing_label
from labeldp_verify.printable import printable
from numpy.typing import NDArray

from labeldp_compile.errors import DataError
from labeldp_compile.tabular.number_cells import labels_of_cells

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
    kinds, wanted = ("integer", "real"), "numbers"
    if isinstance(domain, CategoricalDomain):
        kinds, wanted = (("categorical",), "text") if domain.is_text else (("integer",), "integers")
    if kind_of(arrow_type) not in kinds and not pa.types.is_null(value_type(arrow_type)):
        raise DataError(
            f"the label column {column!r} has the type {printable(str(arrow_type))}, "
            f"but the {domain.kind} domain of the spec needs {wanted}"
        )


def label_array(domain: Domain, column: str, values: pa.Array) -> NDArray[Any]:
    """Labels [n] as int64, float64 or text (object), ready for the graph's ``label`` input.

    For an integer domain, numbers with a fraction are rounded to the nearest integer (halves to
    even). Text is read by the grammar of ``number_cells`` where the domain needs numbers: it comes
    from a CSV file, for ``check_type`` refuses a Parquet file's text when it is opened.
    Raises DataError for a column of the wrong type.
    """
    element, missing = _element_type(domain), missing_label(domain)
    if is_text(values.type) and element != "string":
        assert not isinstance(missing, str)
        return labels_of_cells(values, element, missing)
    check_type(domain, column, values.type)
    return read_labels(values, element, missing)[0]


def _element_type(domain: Domain) -> str:
    if isinstance(domain, RealDomain):
        return "float64"
    text = isinstance(domain, CategoricalDomain) and domain.is_text
    return "string" if text else "int64"
