"""Where private labels come from, in the metadata of a Parquet file's schema.

It is a note, not a proof: anyone can write another one. It protects against mistakes: randomizing a
column twice, or reading one artifact's labels with another.
"""

import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from labeldp_verify.graph import canonical_json

from labeldp_compile.errors import DataError, refused
from labeldp_compile.tabular.parts_folder import ListedPart, listed_in

KEY = b"labeldp"
FORMAT_VERSION = "1.0"
NOT_SHOWN = "declared private, not shown"
"""What is said of labels that no note says an artifact made."""
_MAX_BYTES = 1 << 20
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
    """What made one private column.

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
    note = json.loads(text) if len(text) <= _MAX_BYTES else {}
    if str(note["format_version"]).partition(".")[0] != FORMAT_VERSION.partition(".")[0]:
        raise ValueError("of another version")
    return {str(name): _entry(entry) for name, entry in note["columns"].items()}


def _entry(stated: dict[str, Any]) -> Provenance:
    """What this version knows of an entry; a later one may say more."""
    entry = Provenance(**{field.name: stated[field.name] for field in fields(Provenance)})
    written = _NEVER if entry.written is None else entry.written
    made = _HASH.fullmatch(entry.artifact_sha256), _TIME.fullmatch(written)
    epsilon: Any = entry.epsilon_label
    if not all(made) or type(epsilon) not in (int, float) or not 0 <= epsilon < math.inf:
        raise ValueError("not what a note says")
    return entry
