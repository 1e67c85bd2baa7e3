"""The bytes of a text table as UTF-8, from any encoding and from gzip; nothing is stored."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from labeldp_compile.errors import refused
from labeldp_compile.tabular.formats import is_stream
from labeldp_compile.text_form import UTF8

_BOM = b"\xef\xbb\xbf"
_OTHERS = {  # what begins with these bytes is no text
    b"\xff\xfe": "is UTF-16: save it as UTF-8",
    b"\xfe\xff": "is UTF-16: save it as UTF-8",
    b"PAR1\x15": "is Parquet and not text: give it as a file called NAME.parquet",
    b"PARE": "is encrypted Parquet: decrypt it, and give it as a file called NAME.parquet",
    b"\x1f\x8b": "is compressed: decompress it first (gunzip), or give a file called NAME.csv.gz",
}


class TextStream:
    """Reads UTF-8 from a file in UTF-8 or in an encoding of one byte per character.

    A byte that the encoding does not have becomes bytes that are not UTF-8.
    """

    def __init__(self, file: BinaryIO, source: TextSource) -> None:
        """``file`` stands at its beginning."""
        self._file, self._source = file, source
        self._pending, self._begun = b"", False

    def read(self, size: int) -> bytes:
        """Some of the next bytes, none at the end. Raises OSError, DataError for no text."""
        if self._pending:
            data, self._pending = self._pending[:size], self._pending[size:]
            return data
        try:  # what a file begins with has at most five bytes, which no short read may part
            data = self._file.read(size if self._begun else max(size, 5))
        except (EOFError, zlib.error) as error:
            raise OSError("the compressed file is damaged") from error
        is_first, self._begun = not self._begun, True
        if is_first:
            for magic, reason in _OTHERS.items():
                if data.startswith(magic):
                    raise refused(self._source.path, reason)
        if self._source.encoding != UTF8:
            text = data.decode(self._source.encoding, "surrogateescape")
            return text.encode(UTF8, "surrogatepass")
        return data if not is_first else data.removeprefix(_BOM) or self._file.read(size)

    def unread(self, data: bytes) -> None:
        """Bytes that the next ``read`` gives again."""
        self._pending = data + self._pending

    def skip(self, size: int) -> None:
        """Read as many bytes, and forget them.

        Bytes of the file may become more bytes of UTF-8: what is too many is read again.
        """
        while size and (data := self.read(size)):
            self.unread(data[size:])
            size -= len(data[:size])


@dataclass
class TextSource:
    """A text table that can be opened: a file any number of times, standard input once."""

    path: Path
    gzipped: bool = False
    encoding: str = UTF8
    _stream: TextStream | None = field(default=None, repr=False)

    @contextmanager
    def open(self) -> Iterator[TextStream]:
        """The table from its beginning. Raises OSError."""
        with self.path.open("rb") as file:
            if self.gzipped:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield TextStream(cast(BinaryIO, unpacked), self)
            else:
                yield TextStream(file, self)

    @contextmanager
    def open_head(self) -> Iterator[TextStream]:
        """The same, for the header; what is put back is read by ``open_rows``."""
        if is_stream(self.path):
            self._stream = TextStream(sys.stdin.buffer, self)
            yield self._stream
        else:
            with self.open() as stream:
                yield stream

    @contextmanager
    def open_rows(self, start: int) -> Iterator[TextStream]:
        """The table from the byte ``start`` of its UTF-8, where ``open_head`` stopped.

        Raises OSError, and DataError for standard input the second time.
        """
        if is_stream(self.path):
            stream, self._stream = self._stream, None
            if stream is None:
                # Rows are only read again to find out which ids are the same.
                reason = "standard input cannot be read again to find them: give a file"
                raise refused(self.path, f"some rows have the same id, and {reason}")
            yield stream
            return
        with self.open() as stream:
            stream.skip(start)
            yield stream
