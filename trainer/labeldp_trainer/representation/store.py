"""Representations on the disk: ``representation/`` of a run folder.

facts.json    what decides the vectors, a digest of that, and the SHA-256 of the files
learned.npz    what was learned
train.npy     the vectors of the training part
test.npy      those of the test part, if there is one

It holds features only. A run whose features and options are those of a run beside it takes its
files, as hard links where it can. Its vectors must fit the data. The map of a run folder that came
with a release may be a stranger's, so its arrays are checked.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from labeldp_runtime.whole_file import folder_when_whole, replaced_when_whole
from numpy.typing import NDArray

from labeldp_compile.toolkit import file_digest
from labeldp_trainer.data import Dataset, FeatureShape
from labeldp_trainer.errors import DAMAGE, RunFolderError
from labeldp_trainer.representation.kind import Kind
from labeldp_trainer.representation.representation import (
    Representation,
    inner_arrays,
    kind_named,
    own_arrays,
)
from labeldp_trainer.run.folder import (
    read_arrays,
    read_json,
    write_arrays,
    write_json,
)

FOLDER, FACTS, LEARNT = "representation", "facts.json", "learnt.npz"
PARTS = ("train.npy", "test.npy")
FORMAT_VERSION = "1.0"
_ALGORITHM = 1  # counts changes of what is learned from the same features with the same options

Vectors = NDArray[np.float32]


def digest_of(facts: Mapping[str, Any]) -> str:
    """SHA-256 of all that decides the vectors."""
    text = json.dumps({**facts, "algorithm": _ALGORITHM}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def find(
    output: Path, digest: str, rows: tuple[int, int | None]
) -> tuple[Representation, list[Vectors]] | None:
    """What the run folder ``output``, or one beside it, holds for this digest, undamaged.

    ``rows`` are those of the training part and of the test part, None if there is none.
    """
    for folder in _candidates(output):
        try:
            facts = _facts_of(folder)
            if facts["digest"] != digest:
                continue
            representation = _read(folder, facts)
            return representation, _vectors(folder, facts, rows, representation.width)
        except DAMAGE:
            continue  # it is computed again
    return None


def restored(run: Path) -> Representation:
    """The representation of a run folder. Raises RunFolderError if it is missing or damaged."""
    folder = run / FOLDER
    try:
        return _read(folder, _facts_of(folder))
    except DAMAGE:
        raise RunFolderError(f"{folder}: is missing or damaged; start another run") from None


def save(run: Path, representation: Representation | None, dataset: Dataset) -> None:
    """Write it into a run folder, whole or not at all, instead of one that is damaged.

    ``dataset`` holds its vectors. Files that lie beside are linked.
    """
    folder = run / FOLDER
    if representation is None or representation.stored == folder:
        return
    shutil.rmtree(folder, ignore_errors=True)
    with folder_when_whole(folder) as part:
        if representation.stored is None or not _linked(representation.stored, part):
            _write(part, representation, dataset)


def representation_facts(representation: Representation | None, dataset: Dataset) -> dict[str, Any]:
    """For ``run.json``: what the vectors were learned from, and their SHA-256. A resumed run must
    have the same. Nothing if there is no representation.
    """
    if representation is None:
        return {}
    total = hashlib.sha256()
    for part in dataset.parts:
        total.update(np.ascontiguousarray(part.features).data)
    facts = dict(representation.facts)
    return {"representation": facts, "representation_sha256": total.hexdigest()}


def _candidates(output: Path) -> Iterator[Path]:
    yield output / FOLDER
    try:
        beside = sorted(path for path in output.absolute().parent.iterdir() if path.is_dir())
    except OSError:
        return
    for path in beside:
        if not path.name.startswith(".") and (path / FOLDER / FACTS).is_file():
            yield path / FOLDER


def _facts_of(folder: Path) -> dict[str, Any]:
    facts = read_json(folder / FACTS)
    if str(facts["format_version"]).partition(".")[0] != FORMAT_VERSION.partition(".")[0]:
        raise ValueError("another format")
    return facts


def _read(folder: Path, facts: dict[str, Any]) -> Representation:
    _require_whole(folder / LEARNT, facts)
    shape = facts["shape"]
    kind = kind_named(facts["kind"])
    image = None if shape["image"] is None else tuple(shape["image"])
    arrays = read_arrays(folder / LEARNT)
    _require_ends(arrays, kind)
    return Representation(
        facts["kind"],
        FeatureShape(shape["numeric"], tuple(shape["vocabularies"]), image),
        arrays,
        facts=dict(facts["learnt_from"]),
        notes=tuple(map(str, facts["notes"])),
        stored=folder,
    )


def _require_ends(arrays: Mapping[str, NDArray[Any]], kind: Kind) -> None:
    """Raise ValueError or KeyError unless the last step of each map has its numbers."""
    for number, inner in enumerate(kind.of):
        _require_ends(inner_arrays(arrays, number), inner)
    arrays = own_arrays(arrays)
    columns = arrays["mean"].shape
    shapes = {"mean": columns, "columns": columns, "deviation": columns}
    if "projection" in arrays:
        width = arrays["projection"].shape[-1:]
        shapes = {"mean": columns, "projection": (*columns, *width), "spectrum": width}
    elif kind.of:
        shapes |= {"spectrum": columns, "groups": columns}
    if len(columns) != 1 or any(arrays[name].shape != shape for name, shape in shapes.items()):
        raise ValueError("of other shapes")
    ends = [arrays[name] for name in shapes]
    if not all(end.dtype.kind in "fiu" and np.isfinite(end).all() for end in ends):
        raise ValueError("no finite numbers")


def _vectors(
    folder: Path, facts: dict[str, Any], rows: tuple[int, int | None], width: int
) -> list[Vectors]:
    """Those of each part that there is. Raises ValueError unless they have these rows."""
    found: list[Vectors] = []
    for name, count in zip(PARTS, rows, strict=True):
        if (name in facts["files"]) != (count is not None):
            raise ValueError("of other parts")
        if count is not None:
            _require_whole(folder / name, facts)
            vectors = np.load(folder / name, allow_pickle=False)
            if (vectors.dtype, vectors.shape) != (np.dtype(np.float32), (count, width)):
                raise ValueError("of other rows")
            found.append(vectors)
    return found


def _write(part: Path, representation: Representation, dataset: Dataset) -> None:
    write_arrays(part / LEARNT, dict(representation.arrays))
    names = [LEARNT]
    for name, rows in zip(PARTS, dataset.parts, strict=False):
        with replaced_when_whole(part / name) as file:
            np.save(file, rows.features)
        names.append(name)
    learnt_from = dict(representation.facts)
    deciding = {k: v for k, v in learnt_from.items() if k not in ("digest", "rows", "raw_width")}
    facts = {
        "format_version": FORMAT_VERSION,
        "digest": digest_of(deciding),
        "kind": representation.kind,
        "width": representation.width,
        "shape": asdict(representation.shape),
        "learnt_from": learnt_from,
        "notes": list(representation.notes),
        "files": {name: file_digest(part / name) for name in names},
    }
    write_json(part / FACTS, facts)


def _linked(source: Path, part: Path) -> bool:
    """Whether ``part`` holds the files of ``source`` now; if not, it is empty."""
    try:
        for name in (FACTS, LEARNT, *PARTS):
            if (source / name).exists():
                os.link(source / name, part / name)
        return True
    except OSError:  # on another file system, or gone
        for path in part.iterdir():
            path.unlink()
        return False


def _require_whole(path: Path, facts: dict[str, Any]) -> None:
    if not path.is_file() or file_digest(path) != facts["files"][path.name]:
        raise ValueError("damaged")
