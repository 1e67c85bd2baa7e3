"""What the name of a file says of its format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from labeldp_compile.errors import refused

STREAM = "-"  # stdin or stdout, as CSV
EXPECTED = (
    "expected a .parquet or .csv file (.tsv, .csv.gz and .tsv.gz, too), or a folder of such parts"
)
_PARQUET = (".parquet", ".pq")
_TEXT = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class Format:
    """The format of a table.

    Attributes:
        delimiter: of a text table, as its name says; None: Parquet.
        gzipped: of a text table.
    """

    delimiter: str | None = None
    gzipped: bool = False

    @property
    def is_text(self) -> bool:
        """Whether it is CSV, with whatever delimiter."""
        return self.delimiter is not None


def format_of(path: Path, *, stream: bool = False) -> Format | None:
    """What the name says; None for a name that says nothing. With ``stream``, ``-`` is CSV."""
    name = path.name.lower()
    if stream and is_stream(path):
        return Format(_TEXT[".csv"])
    if name.endswith(_PARQUET):
        return Format()
    gzipped = name.endswith(".gz")
    delimiter = _TEXT.get(Path(name.removesuffix(".gz")).suffix)
    return None if delimiter is None else Format(delimiter, gzipped)


def require_format(path: Path, *, stream: bool = False) -> Format:
    """The format of a file that is there. Raises DataError; with ``stream`` ``-`` is there."""
    found = format_of(path, stream=stream)
    if found is None:
        raise refused(path, EXPECTED)
    if not (stream and is_stream(path)) and not path.is_file():
        raise refused(path, "there is no such file")
    return found


def is_stream(path: Path) -> bool:
    """Whether the path is ``-``, where standard input and output are meant."""
    return str(path) == STREAM
