"""Where private labels come from: the note in a Parquet file, the manifest of a folder of parts.

A note is no proof: anyone can write another one. It protects against mistakes: randomizing a column
twice, or reading one artifact's labels with another.

A folder of parts grows by one part a run. A part is written beside its name, then listed and
booked, and only then named:

    1  write   .NAME.labeldp-partial is complete, on the disk, and its owner's alone
    2  list    the manifest has the digest of the part
    3  book    the ledger, if there is one
    4  name    the part is there

A run that is killed before 3 has added nothing: the next run takes the part off the list, and draws
again, which gives the same private labels. After 3, the next run of any part gives the file its
name. So no part is visible that is not listed and booked, and each id is in one part.

The manifest begins with ``_``, so that neither labeldp nor Spark takes it for a part. It holds no
key and no id.
"""

from __future__ import annotations

import hmac
import itertools
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from labeldp_runtime import Key
from labeldp_runtime.whole_file import partial_of, sync_folder
from labeldp_verify.graph import canonical_json
from labeldp_verify.printable import printable

from labeldp_compile.errors import DataError, InputError, refused
from labeldp_compile.tabular.formats import format_of, parts_of
from labeldp_compile.whole_file import file_digest, is_others, name_held_in, write_text

MANIFEST = "_labeldp.json"
_PART_TAG = b"labeldp-part-1"
FORMAT_VERSION = "1.0"
_MAX_MANIFEST_BYTES = 1 << 28
_NO_LINK = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
_ENDING = re.compile(r"\.(parquet|pq|csv|tsv|csv\.gz|tsv\.gz)$", re.IGNORECASE)
_WAY_OUT = "put it back, or go on in another folder"


@dataclass(frozen=True)
class ListedPart:
    """The entry of one part in the manifest.

    Attributes:
        sha256, rows: of the file.
        digest: of the same bytes, under the drawing key: how a ledger knows the part.
        columns: the private columns.
        id_column: of the ids that it holds.
        artifact_sha256: of the artifact that drew the labels.
        key, context, version: the fingerprint of the key, and what the draw is bound to.
        data_set: for which the ledger booked it; None without a ledger.
    """

    sha256: str
    digest: str
    rows: int
    columns: list[str]
    id_column: str
    artifact_sha256: str
    key: str
    context: str
    version: int
    data_set: str | None


@dataclass(frozen=True)
class _Manifest:
    """The manifest's JSON; a later version may write more."""

    format_version: str
    folder: str
    parts: dict[str, ListedPart]


@dataclass
class PartsFolder:
    """A folder whose only writer this process is (``held``).

    Attributes:
        path: of the folder.
        name: 32 hexadecimal digits, drawn when the folder was begun; the ledger knows it by them.
        listed: the parts by their names, in the order in which they were added.
    """

    path: Path
    name: str
    listed: dict[str, ListedPart]

    @classmethod
    @contextmanager
    def held(cls, path: Path) -> Iterator[PartsFolder]:
        """The folder, which is begun if it is missing or empty, and locked.

        Call ``finish`` before a part is added. Raises InputError (DataError) if another run holds
        the folder, or if it has files and no manifest.
        """
        with name_held_in(path, "_append"):
            yield cls._read(path)

    def parts(self) -> list[Path]:
        """The parts in the order in which they were added."""
        return [self.path / name for name in self.listed]

    def require_whole(self) -> None:
        """Raise InputError unless the parts are those that are listed, byte for byte."""
        self._require_listed()
        for name, part in self.listed.items():
            path = self.path / name
            if path.is_symlink() or not path.is_file():
                raise refused(path, "is in the manifest, but not a file in the folder")
            if file_digest(path) != part.sha256:
                raise refused(path, "was changed after --append wrote it")

    def remove(self, name: str) -> None:
        """Take a part off the list that has no name yet, and remove its file. Raises DataError."""
        del self.listed[name]
        self._write()
        partial_of(self.path / name).unlink(missing_ok=True)

    def put(self, name: str, part: ListedPart) -> None:
        """List a part, or list it anew. Raises DataError if it is not listed then."""
        self.listed[name] = part
        try:
            self._write()
        except DataError:
            # The manifest may have its name, and only its folder could not be synced. The part must
            # follow then, which syncs the same folder: without it, no run can go on.
            found = self.read(self.path)
            if found is None or name not in found.listed:
                raise

    def seal(
        self, name: str, part: ListedPart, key: Key, book: Callable[[int, str], None]
    ) -> Callable[[Path, int], None]:
        """List and book a complete part before it gets its name."""

        def sealed(path: Path, rows: int) -> None:
            sha256 = file_digest(path)
            digest = hmac.digest(key.secret, _PART_TAG + sha256.encode(), "sha256")[:8].hex()
            self.put(name, replace(part, sha256=sha256, digest=digest, rows=rows))
            try:
                book(rows, digest)
            except Exception:
                self.remove(name)
                raise

        return sealed

    def name_of(self, given: str | None, table: Path) -> str:
        """The file name of a part: the ``given`` one or the table's, with an ending that fits.

        Raises InputError.
        """
        first = next(iter(self.listed), None)
        file = parts_of(table)[0] if table.is_dir() else table
        name = given or (table.resolve().name if table.is_dir() else table.name)
        if not _ENDING.search(name):
            found = _ENDING.search(first or file.name)
            name += "" if found is None else found[0]
        form = format_of(Path(name))
        if form is None or Path(printable(name)).name != name or name.startswith((".", "_")):
            raise InputError(
                f"--part: {name!r} is not the name of a part: expected letters, digits and dots, "
                "such as 2026-11-26"
            )
        if first is not None and form.is_text != _is_text(first):
            raise InputError(f"--part: {name!r} is not in the format of the other parts ({first})")
        return name

    @classmethod
    def _read(cls, path: Path) -> PartsFolder:
        if (found := cls.read(path)) is not None:
            return found
        if any(not one.name.startswith(".") for one in path.iterdir()):
            raise InputError(
                f"{path}: holds files that no --append added: begin with an empty folder"
            )
        return cls(path, secrets.token_hex(16), {})

    @classmethod
    def read(cls, path: Path) -> PartsFolder | None:
        """The manifest of a folder; None without one. Raises DataError."""
        manifest = path / MANIFEST
        if not os.path.lexists(manifest):
            return None
        from pydantic import TypeAdapter  # noqa: PLC0415  # what appends nothing need not wait

        try:
            # Follow no link and wait for no pipe: labeldp made this file.
            with os.fdopen(os.open(manifest, _NO_LINK), "rb") as file:
                is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                data = file.read(_MAX_MANIFEST_BYTES + 1) if is_file else b""
            if not is_file or len(data) > _MAX_MANIFEST_BYTES:
                raise ValueError("no file, or too large")
            stated = TypeAdapter(_Manifest).validate_json(data, strict=True)
            if stated.format_version.partition(".")[0] != FORMAT_VERSION.partition(".")[0]:
                raise ValueError("of another version")
            if any(name != Path(name).name or name.startswith(".") for name in stated.parts):
                raise ValueError("not the name of a part")
            return cls(path, stated.folder, stated.parts)
        except (OSError, ValueError):
            raise refused(manifest, "is damaged, or of a later version of labeldp") from None

    def _write(self) -> None:
        stated = asdict(_Manifest(FORMAT_VERSION, self.name, self.listed))
        write_text(self.path / MANIFEST, json.dumps(stated, indent=1, ensure_ascii=False) + "\n")

    @property
    def unnamed(self) -> str | None:
        """The part that a killed run listed last, and that has no file yet."""
        last = next(reversed(self.listed), None)
        return None if last is None or (self.path / last).exists() else last

    def finish(self, say: Callable[[str], None]) -> None:
        """Give the part its name that a killed run had listed, and booked; ``say`` gets a line.

        Raises DataError, also if the folder holds what no run listed.
        """
        for name, part in self.listed.items():
            path = self.path / name
            if path.exists():
                continue
            partial = partial_of(path)
            try:
                ours = not partial.is_symlink() and not is_others(partial.stat())
                if not ours or file_digest(partial) != part.sha256:
                    raise FileNotFoundError
                partial.rename(path)
                sync_folder(self.path)
            except OSError:
                reason = "is in the manifest but not in the folder, so its ids are not known"
                raise refused(path, f"{reason}: {_WAY_OUT}") from None
            say(
                f"{path}: was complete when a run was killed, and is in its place now; only you "
                "may read it"
            )
        self._require_listed()

    def _require_listed(self) -> None:
        """Raise DataError for a part that no run listed: it may hold true labels."""
        if self.listed:
            for path in parts_of(self.path):
                if path.name not in self.listed:
                    raise refused(path, "was not added by --append: remove it from the folder")


def listed_in(table: Path) -> dict[str, ListedPart]:
    """The listed parts of a table by their names; none unless it is a folder with a manifest."""
    found = PartsFolder.read(table) if table.is_dir() else None
    return {} if found is None else found.listed


def _is_text(name: str) -> bool:
    form = format_of(Path(name))
    return form is not None and form.is_text


KEY = b"labeldp"
NOT_SHOWN = "declared private, not shown"
"""The warning about labels without a note of the artifact that made them."""
_MAX_NOTE_BYTES = 1 << 20
_SHOWN_DIGITS = 16
_HASH = re.compile(r"[0-9a-f]{64}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_NEVER = "0000-00-00T00:00:00Z"
_DAMAGED = (
    "its note on private labels (labeldp, in the schema's metadata) is damaged, or written by a "
    "later version of labeldp"
)


@dataclass(frozen=True)
class Provenance:
    """The origin of one private column.

    Attributes:
        artifact_sha256: of the artifact's file.
        epsilon_label: ε that was spent on each label.
        written: UTC, to the second; None with a key, for a repetition gives the same file.
    """

    artifact_sha256: str
    epsilon_label: float
    written: str | None = None


def write_note(columns: Mapping[str, Provenance]) -> bytes:
    """The value of ``KEY``: private columns by name."""
    stated = {name: asdict(entry) for name, entry in columns.items()}
    return canonical_json({"format_version": FORMAT_VERSION, "columns": stated}).encode()


def run_note(run: Mapping[str, Any]) -> dict[bytes, bytes]:
    """The metadata of a file without private columns that post-processes this run of training."""
    return {
        KEY: canonical_json({"format_version": FORMAT_VERSION, "columns": {}, "run": run}).encode()
    }


def read_note(path: Path, metadata: Mapping[bytes, bytes] | None) -> dict[str, Provenance]:
    """The private columns of a schema by name; none without a note. Raises DataError."""
    text = (metadata or {}).get(KEY)
    if text is None:
        return {}
    try:
        return _read(text)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise refused(path, _DAMAGED) from None


def require_true(
    path: Path,
    metadata: Mapping[bytes, bytes] | None,
    column: str,
    hint: str = "randomize the table with the true ones",
) -> None:
    """Raise DataError if the file says that the column holds private labels.

    ``hint`` says what to do instead.
    """
    entry = read_note(path, metadata).get(column)
    if entry is not None:
        raise refused(
            path,
            f"{column!r} already holds private labels (of the artifact "
            f"{entry.artifact_sha256[:_SHOWN_DIGITS]}…): {hint}",
        )


def is_noted(
    table: Path,
    files: Iterable[tuple[Path, Mapping[bytes, bytes] | None]],
    columns: Sequence[str],
    sha256: str,
    artifact: Path,
) -> bool:
    """Whether all files of a table note that this artifact made these columns.

    A note is in the metadata of a Parquet schema, or in the manifest of a folder that --append
    wrote; a CSV file alone has none. Raises DataError if a note names another artifact, or says
    that this one made other columns: the true labels may be under the label's name.
    """
    listed, files = listed_in(table), list(files)
    noted = bool(files)
    for path, metadata in files:
        notes = [read_note(path, metadata), manifest_note(listed.get(path.name))]
        for column, note in itertools.product(columns, notes):
            entry = note.get(column)
            made = [name for name, one in note.items() if one.artifact_sha256 == sha256]
            if entry is None and made:
                others = ", ".join(map(repr, made))
                raise refused(
                    path,
                    f"{column!r} does not hold the private labels of {artifact}, and may hold true "
                    f"ones: the private ones are in {others}",
                )
            if entry is not None and entry.artifact_sha256 != sha256:
                shown, expected = (text[:_SHOWN_DIGITS] for text in (entry.artifact_sha256, sha256))
                raise refused(
                    path,
                    f"another artifact made the private labels in {column!r} (sha256 {shown}…, but "
                    f"{artifact} is {expected}…): give the artifact that made them",
                )
        noted &= all(any(column in note for note in notes) for column in columns)
    return noted


def no_note(table: Path, columns: Sequence[str], artifact: Path, way_out: str) -> DataError:
    """The error about a table for which ``is_noted`` is False."""
    named = ", ".join(map(repr, columns))
    return refused(
        table,
        f"no note says that {artifact} made {named}, so these may be true labels. If they are "
        f"private (CSV holds no note, and many tools drop it), {way_out}",
    )


def manifest_note(part: ListedPart | None) -> dict[str, Provenance]:
    """The note that an entry of a manifest is; none without an entry."""
    if part is None:
        return {}
    return dict.fromkeys(part.columns, Provenance(part.artifact_sha256, 0.0))


def _read(text: bytes) -> dict[str, Provenance]:
    note = json.loads(text) if len(text) <= _MAX_NOTE_BYTES else {}
    if str(note["format_version"]).partition(".")[0] != FORMAT_VERSION.partition(".")[0]:
        raise ValueError("of another version")
    return {str(name): _entry(entry) for name, entry in note["columns"].items()}


def _entry(stated: dict[str, Any]) -> Provenance:
    """The known fields of an entry; a later version may write more."""
    entry = Provenance(**{field.name: stated[field.name] for field in fields(Provenance)})
    written = _NEVER if entry.written is None else entry.written
    made = _HASH.fullmatch(entry.artifact_sha256), _TIME.fullmatch(written)
    epsilon: Any = entry.epsilon_label
    if not all(made) or type(epsilon) not in (int, float) or not 0 <= epsilon < math.inf:
        raise ValueError("not what a note says")
    return entry
