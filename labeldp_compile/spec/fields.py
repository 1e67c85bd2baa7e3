"""Values that several parts of a spec may hold."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, StrictInt, StrictStr

from labeldp_compile.text_form import read_delimiter, read_encoding


def _category(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("expected text or an integer: quote it to make it text")
    return value


Category = Annotated[StrictStr | StrictInt, BeforeValidator(_category)]
"""Text, or an integer."""

Delimiter = Annotated[str, AfterValidator(read_delimiter)]
Encoding = Annotated[str, AfterValidator(read_encoding)]
DELIMITER = "CSV: one character between cells, as in ';' (default: a comma; a tab in .tsv)"
ENCODING = "CSV: its encoding, as in latin-1 (default: utf-8)"
