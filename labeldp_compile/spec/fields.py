"""Fields that several parts of a spec share."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StrictStr

from labeldp_compile.text_form import TextForm, read_delimiter, read_encoding
from labeldp_compile.yaml_model import Strict


def _category(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("expected text or an integer: put it in quotes to make it text")
    return value


Category = Annotated[StrictStr | StrictInt, BeforeValidator(_category)]
"""Text, or an integer."""

Delimiter = Annotated[str, AfterValidator(read_delimiter)]
Encoding = Annotated[str, AfterValidator(read_encoding)]


class TextData(Strict):
    """A file that may be CSV, and what its text does not state."""

    delimiter: Delimiter | None = Field(
        None,
        description="CSV: the character between cells, such as ';' (default: a comma; a tab in "
        ".tsv)",
    )
    encoding: Encoding | None = Field(
        None, description="CSV: the encoding, such as latin-1 (default: utf-8)"
    )
    decimal: Literal[".", ","] | None = Field(
        None, description="CSV: the decimal mark of numbers (default: a point)"
    )
    multiline_cells: bool = Field(
        False, description="CSV: quoted cells that are no label are meant to contain line ends"
    )

    @property
    def form(self) -> TextForm:
        """The form of the file, if it is text."""
        return TextForm(self.delimiter, self.encoding, self.decimal, self.multiline_cells)
