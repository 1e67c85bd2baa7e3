"""Values that several parts of a spec may hold."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StrictStr

from labeldp_compile.text_form import TextForm, read_delimiter, read_encoding
from labeldp_compile.yaml_model import Strict


def _category(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("expected text or an integer: quote it to make it text")
    return value


Category = Annotated[StrictStr | StrictInt, BeforeValidator(_category)]
"""Text, or an integer."""

Delimiter = Annotated[str, AfterValidator(read_delimiter)]
Encoding = Annotated[str, AfterValidator(read_encoding)]


class TextData(Strict):
    """A file that may be text, of which it does not say itself how it is written."""

    delimiter: Delimiter | None = Field(
        None,
        description="CSV: one character between cells, as in ';' (default: a comma; a tab in .tsv)",
    )
    encoding: Encoding | None = Field(
        None, description="CSV: its encoding, as in latin-1 (default: utf-8)"
    )

    @property
    def form(self) -> TextForm:
        """The form of the file, if it is text."""
        return TextForm(self.delimiter, self.encoding)
