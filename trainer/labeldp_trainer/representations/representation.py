"""A representation: a map of features alone, learned without labels; in memory, and on the disk.

A run folder holds it in ``representation/``:

facts.json    what decides the vectors, and a digest of that
learnt.npz    what was learned
train.npy     the vectors of the training part, and
test.npy      those of the test part, if there is one; both only if they take little room

It holds features only. A run whose features and options are those of a run beside it takes its
files, as hard links where it can. Its vectors must fit the data. The map of a run folder that came
with a release may be a stranger's, so its arrays are checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float32
from labeldp_runtime.whole_file import folder_when_whole, replaced_when_whole
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from labeldp_trainer.config.representation import Arrays, Kind, kind_class
from labeldp_trainer.data import Dataset, Features, FeatureShape, array_digest
from labeldp_trainer.data.features import batches
from labeldp_trainer.errors import DAMAGE, RunFolderError
from labeldp_trainer.operators import joined, matmul
from labeldp_trainer.run.folder import open_file, read_arrays, read_json, write_arrays, write_json

ENDS = frozenset({"mean", "projection", "columns", "deviation"})
"""Arrays of ``projected``."""
_NAME = re.compile(r"[a-z_]+|[(),]")
Raw = Callable[[Any, Mapping[str, Any]], Any]
AT_ONCE = 1024  # examples for which a device is called once


@dataclass(frozen=True)
class Representation:
    """A map of features to vectors that no label has entered.

    Attributes:
        kind: as in the config, with the kinds that it is made from in brackets: ``graph(patches)``.
        shape: of the features that it takes; of kind ``file`` they are the embeddings.
        arrays: everything that was learned.
        facts: what it was learned from, and how: what ``run.json`` says.
        notes: sentences for the user.
        stored: the folder where it and its vectors are, if they are on the disk.
    """

    kind: str
    shape: FeatureShape
    arrays: Arrays
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    stored: Path | None = None

    @property
    def width(self) -> int:
        """Columns of a vector."""
        return width_of(self.arrays)

    @property
    def spectrum(self) -> NDArray[np.float64] | None:
        """[width] eigenvalues of the components that columns are, decreasing, before whitening.

        None if the columns are no components. Of a joined one, those of each group are decreasing.
        """
        return self.arrays.get("spectrum")

    @property
    def groups(self) -> NDArray[np.int32] | None:
        """[width] the number of the representation that a column is from, if several are joined."""
        return self.arrays.get("groups")

    def apply(self, features: Features) -> Float32[Any, "b width"]:
        """The vectors of a batch: images, flat arrays, or {"numeric", "categorical"}. Pure JAX."""
        return self.vectors(features, jnp.asarray)

    def vectors(self, features: Any, placed: Callable[[NDArray[Any]], Any]) -> Any:
        """The digest of features and arrays of any kind that ``models.layers`` knows."""
        arrays = {name: placed(array) for name, array in of_the_map(self.arrays).items()}
        return _composed(kind_named(self.kind), features, arrays)


@dataclass(frozen=True)
class ComposedKind:
    """A kind, and the kinds from whose vectors, side by side, it is made."""

    kind: type[Kind]
    of: tuple[ComposedKind, ...] = ()


def kind_name(config: Kind) -> str:
    """Its kind, with those that it is made from."""
    inner = ",".join(map(kind_name, config.members))
    return f"{config.kind}({inner})" if inner else config.kind


def kind_named(name: str) -> ComposedKind:
    """The kinds of such a name. Raises ValueError or KeyError for other texts."""
    tokens = _NAME.findall(name)
    kind, rest = _read_kind(tokens)
    if rest or "".join(tokens) != name:
        raise ValueError("no name of a kind")
    return kind


def _read_kind(tokens: Sequence[str]) -> tuple[ComposedKind, Sequence[str]]:
    if not tokens:
        raise ValueError("a kind is missing")
    kind, rest = kind_class(tokens[0]), tokens[1:]
    inner: list[ComposedKind] = []
    while rest and rest[0] == ("," if inner else "("):
        member, rest = _read_kind(rest[1:])
        inner.append(member)
    if inner and rest[:1] != [")"]:
        raise ValueError("a bracket is missing")
    return ComposedKind(kind, tuple(inner)), rest[1:] if inner else rest


def own_arrays(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Without those of the representations that it is made from."""
    return {name: array for name, array in arrays.items() if "." not in name}


def inner_arrays(arrays: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Those of a representation that it is made from."""
    start = f"{number}."
    return {n[len(start) :]: array for n, array in arrays.items() if n.startswith(start)}


def width_of(arrays: Arrays) -> int:
    """Columns of the vectors of a representation with these arrays."""
    return int(arrays["projection"].shape[1] if "projection" in arrays else len(arrays["mean"]))


def _composed(kind: ComposedKind, features: Any, arrays: Mapping[str, Any]) -> Any:
    """The vectors of all kinds, from the innermost to the outermost."""
    if kind.of:
        features = joined(
            *(_composed(k, features, inner_arrays(arrays, i)) for i, k in enumerate(kind.of))
        )
    return projected(kind.kind.raw(features, arrays), arrays)


def projected(raw: Float32[Any, "b w"], arrays: Mapping[str, Any]) -> Float32[Any, "b width"]:
    """The vectors of raw ones."""
    if "projection" not in arrays:
        centred = raw[:, arrays["columns"]] - arrays["mean"][None, :]
        return centred / arrays["deviation"][None, :]
    return matmul(raw - arrays["mean"][None, :], arrays["projection"])


def in_batches(
    function: Raw, arrays: Arrays, features: Features, rows: int, chunk: int
) -> Iterator[NDArray[np.float32]]:
    """The results of ``function`` for all rows, in order, by batches; the last is shorter.

    A CPU computes ``chunk`` examples at a time, so that what lies between stays in its cache.
    """
    at_once = min(AT_ONCE, -(-rows // chunk) * chunk)
    if jax.default_backend() != "cpu":
        chunk = at_once

    placed = jax.device_put(dict(of_the_map(arrays)))
    for batch, count in batches(features, rows, at_once):
        yield np.asarray(_mapped(function, chunk, placed, batch))[:count]


@partial(jax.jit, static_argnums=(0, 1))
def _mapped(function: Raw, chunk: int, arrays: Mapping[str, jax.Array], x: Any) -> jax.Array:
    def in_chunks(leaf: jax.Array) -> jax.Array:  # there may be no columns
        return leaf.reshape(leaf.shape[0] // chunk, chunk, *leaf.shape[1:])

    split = jax.tree.map(in_chunks, x)
    results = lax.map(lambda part: function(part, arrays), split)
    whole: jax.Array = results.reshape(-1, results.shape[-1])
    return whole


def of_the_map(arrays: Arrays) -> Arrays:
    """Without what only describes the columns."""
    described = {"spectrum", "groups"}
    return {n: array for n, array in arrays.items() if n.rpartition(".")[2] not in described}


FOLDER, FACTS, LEARNT = "representation", "facts.json", "learnt.npz"
PARTS = ("train.npy", "test.npy")
_MOST_BYTES = 32 << 20  # of vectors that are stored; others are computed again from their map
_ALGORITHM = 1  # counts changes of what is learned from the same features with the same options

Vectors = NDArray[np.float32]


class _Facts(BaseModel):
    """The contents of ``facts.json``.

    Attributes:
        digest: SHA-256 of all that decides the vectors.
        kind: as of a ``Representation``.
        learnt_from: what decides the vectors, and sizes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format_version: Literal["1.0"] = "1.0"
    digest: str
    kind: str
    shape: FeatureShape
    learnt_from: dict[str, Any]
    notes: tuple[str, ...]


def digest_of(facts: Mapping[str, Any]) -> str:
    """SHA-256 of all that decides the vectors."""
    text = json.dumps({**facts, "algorithm": _ALGORITHM}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def find(
    output: Path, digest: str, rows: tuple[int, int | None]
) -> tuple[Representation, list[Vectors] | None] | None:
    """The representation of this digest in the run folder ``output``, or beside it, if undamaged,
    and the vectors, if they are few enough to be stored.

    ``rows`` are those of the training part and of the test part, None if there is none.
    """
    for folder in _candidates(output):
        try:
            if _Facts.model_validate(read_json(folder / FACTS)).digest != digest:
                continue
            representation = _read(folder)
            return representation, _vectors(folder, rows, representation.width)
        except DAMAGE:
            continue  # it is computed again
    return None


def restored(run: Path) -> Representation:
    """The representation of a run folder. Raises RunFolderError if it is missing or damaged."""
    folder = run / FOLDER
    try:
        return _read(folder)
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
        if representation.stored is None:
            _write(part, representation, dataset)
        else:
            shutil.copytree(representation.stored, part, copy_function=_link, dirs_exist_ok=True)


def representation_facts(representation: Representation | None, dataset: Dataset) -> dict[str, Any]:
    """For ``run.json``: what the vectors were learned from, and their SHA-256. A resumed run must
    have the same. Nothing if there is no representation.
    """
    if representation is None:
        return {}
    vectors = [part.features for part in dataset.parts]
    facts = dict(representation.facts)
    return {"representation": facts, "representation_sha256": array_digest(vectors)}


def _candidates(output: Path) -> Iterator[Path]:
    yield output / FOLDER
    try:
        beside = sorted(path for path in output.absolute().parent.iterdir() if path.is_dir())
    except OSError:
        return
    for path in beside:
        if not path.name.startswith(".") and (path / FOLDER / FACTS).is_file():
            yield path / FOLDER


def _read(folder: Path) -> Representation:
    facts = _Facts.model_validate(read_json(folder / FACTS))
    arrays = read_arrays(folder / LEARNT)
    _require_ends(arrays, kind_named(facts.kind))
    return Representation(
        facts.kind, facts.shape, arrays, facts.learnt_from, facts.notes, stored=folder
    )


def _require_ends(arrays: Mapping[str, NDArray[Any]], kind: ComposedKind) -> None:
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


def are_stored(rows: Iterable[int | None], width: int) -> bool:
    """Whether a run folder holds vectors of parts with these rows; None for a part that is not."""
    size = sum(filter(None, rows)) * width * np.dtype(np.float32).itemsize
    return size <= _MOST_BYTES


def _vectors(folder: Path, rows: tuple[int, int | None], width: int) -> list[Vectors] | None:
    """Those of each part that there is, if any are stored. Raises ValueError unless they have these
    rows."""
    if not are_stored(rows, width):
        return None
    of_parts: list[Vectors] = []
    for name, count in zip(PARTS, rows, strict=True):
        if (folder / name).exists() != (count is not None):
            raise ValueError("of other parts")
        if count is not None:
            with open_file(folder / name) as file:
                vectors = np.load(file, allow_pickle=False)
            if (vectors.dtype, vectors.shape) != (np.dtype(np.float32), (count, width)):
                raise ValueError("of other rows")
            of_parts.append(vectors)
    return of_parts


def _write(part: Path, representation: Representation, dataset: Dataset) -> None:
    write_arrays(part / LEARNT, dict(representation.arrays))
    stored = are_stored((one.rows for one in dataset.parts), representation.width)
    for name, rows in zip(PARTS, dataset.parts if stored else (), strict=False):
        with replaced_when_whole(part / name) as file:
            np.save(file, rows.features)
    learnt_from = dict(representation.facts)
    deciding = {k: v for k, v in learnt_from.items() if k not in ("digest", "rows", "raw_width")}
    facts = _Facts(
        digest=digest_of(deciding),
        kind=representation.kind,
        shape=representation.shape,
        learnt_from=learnt_from,
        notes=representation.notes,
    )
    write_json(part / FACTS, facts.model_dump())


def _link(source: str, copy: str) -> None:
    """Link or copy a file: another name of it, or a copy on another file system."""
    try:
        os.link(source, copy)
    except OSError:
        shutil.copyfile(source, copy)
