"""From an Arrow column to the array that the artifact takes as its labels.

Nothing here looks at a label's value to decide whether to fail: a column either has a usable type,
or it is refused as a whole. Nulls become the label that the out-of-domain rule names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_runtime.columns import read_labels
from labeldp_runtime.columns.arrow import is_text
from labeldp_verify.forms import CategoricalDomain, Domain, RealDomain, missing_label
from labeldp_verify.printable import printable
from numpy.typing import NDArray

from labeldp_compile.errors import DataError
from labeldp_compile.tabular.number_cells import labels_of_cells


def check_type(domain: Domain, column: str, arrow_type: pa.DataType) -> None:
    """Raise DataError unless a column of this type can hold the domain's labels."""
    value = arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type
    text = is_text(value)
    integer = pa.types.is_integer(value) or pa.types.is_boolean(value)
    number = integer or pa.types.is_floating(value) or pa.types.is_decimal(value)
    if pa.types.is_null(value):
        return
    if isinstance(domain, CategoricalDomain):
        fits = text if domain.is_text else integer
        wanted = "text" if domain.is_text else "integers"
    else:
        fits, wanted = number, "numbers"
    if not fits:
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


def plain_numbers(values: pa.Array) -> NDArray[Any]:
    """[n] the numbers of an array of a plain type, and anything in the places of nulls.

    Like ``to_numpy``, which would import pandas, where there is one, for a third of a second.
    """
    data = values.buffers()[1]
    kind = np.dtype(values.type.to_pandas_dtype())
    if data is None:
        return np.zeros(len(values), dtype=kind)
    return np.frombuffer(data, dtype=kind, count=len(values), offset=values.offset * kind.itemsize)


def _element_type(domain: Domain) -> str:
    if isinstance(domain, RealDomain):
        return "float64"
    text = isinstance(domain, CategoricalDomain) and domain.is_text
    return "string" if text else "int64"
