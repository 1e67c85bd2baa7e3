"""How a text table is written: what separates cells and rows, and what its bytes mean.

An encoding is UTF-8, or has one byte per character and contains ASCII. Then no byte of a label can
swallow a delimiter, a quote or a line end, and no label changes how another is read.
"""

import codecs
from dataclasses import dataclass

UTF8 = "utf-8"
LIKELY = ";\t|,"  # delimiters that a header is tried with
_FORBIDDEN = '"\r\n\0+-.'  # the last three stand in numbers, which have no quotes
_ISO = tuple(f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17)))
_WINDOWS = tuple(f"cp{page}" for page in (*range(1250, 1259), 437, 850, 852, 858, 866, 874))
_ENCODINGS = {UTF8, "ascii", *_ISO, *_WINDOWS, "koi8-r", "koi8-u", "mac-roman"}


@dataclass(frozen=True)
class TextForm:
    """What a text table does not state itself.

    Attributes:
        delimiter: one ASCII character; None: a tab in .tsv, a comma elsewhere.
        encoding: Python's name of it; None: UTF-8.
        decimal: the decimal mark of numbers, ``.`` or ``,``; None: a point.
        multiline_cells: whether quoted cells other than labels are meant to contain line ends.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    multiline_cells: bool = False

    def comma_warning(self) -> list[str]:
        """A line where cells of numbers may have decimal commas: the delimiter alone says so."""
        if self.delimiter != ";" or self.decimal is not None:
            return []
        return [
            "a cell such as 51,62 is not a number but a missing label: if the numbers of this "
            "table have a decimal comma, use --decimal , (in a spec or a config: decimal: ','); "
            "--decimal . ends this warning"
        ]


PLAIN = TextForm()


def read_delimiter(text: str) -> str:
    """One character of an option or a spec; ``\\t`` and ``tab`` are tabs. Raises ValueError."""
    text = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(text) != 1 or not text.isascii() or text.isalnum() or text in _FORBIDDEN:
        raise ValueError(
            "expected one ASCII character such as ';', or tab: no letter, digit, quote, line "
            "end, or one of + - ."
        )
    return text


def read_decimal_mark(text: str) -> str:
    """A point or a comma. Raises ValueError."""
    if text not in (".", ","):
        raise ValueError("expected . or ,")
    return text


def read_encoding(text: str) -> str:
    """Python's name of an encoding that tables may have. Raises ValueError."""
    try:
        name = codecs.lookup(text).name
    except (LookupError, ValueError):
        name = ""
    if name not in _ENCODINGS:
        raise ValueError(
            "expected utf-8, or an encoding of one byte per character such as latin-1, cp1252 or "
            "koi8-r; convert files in other encodings to UTF-8"
        )
    return name


def separated_by(delimiter: str) -> str:
    """How to say that a table has this delimiter, in a shell and in YAML."""
    shell, yaml = ("'\\t'", '"\\t"') if delimiter == "\t" else (f"'{delimiter}'", f'"{delimiter}"')
    return (
        f"the header seems to be separated by {shell}: use --delimiter {shell} (in a spec or a "
        f"config: delimiter: {yaml})"
    )
