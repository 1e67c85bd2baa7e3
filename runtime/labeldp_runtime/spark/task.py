"""What runs on the executors: Arrow batches in, the same batches with a private column out.

Spark pickles the object and sends it to every executor, with the plan's code. It holds the
artifact's bytes, so that no shared file system is needed, and no secret: a key travels as the path
and fingerprint of its file, or as the function that fetches it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from labeldp_runtime.errors import DamagedArtifactError, KeyFileError
from labeldp_runtime.frames import Layout
from labeldp_runtime.keys import Key
from labeldp_runtime.randomizer import Randomizer

KeySource = Key | Callable[[], Key]
_KEPT = 8  # randomizers that a Python worker process keeps
_loaded: dict[tuple[str, str | None, str | None], Randomizer] = {}


@dataclass(frozen=True)
class KeyedTask:
    """The key's source and the fingerprint that it must have, and the context."""

    key: KeySource
    fingerprint: str
    context: str


@dataclass(frozen=True)
class RandomizeLabels:
    """Randomizes the label of every batch; the function that ``mapInArrow`` calls.

    Attributes:
        data: bytes of the artifact.
        sha256: of ``data``.
        layout: where the columns are, and what comes out. The names of incoming columns have no
        meaning. keyed: None for fresh words.
    """

    data: bytes = field(repr=False)
    sha256: str
    layout: Layout
    keyed: KeyedTask | None = field(repr=False)

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches of one partition, with private labels."""
        randomizer = self._randomizer()
        for batch in batches:
            yield self._with(batch, self.layout.private(randomizer, batch.column))

    def _with(self, batch: Any, private: list[Any]) -> Any:
        arrays, fields = [], []
        for name, is_private, index in self.layout.columns:
            array = private[index] if is_private else batch.column(index)
            kind = pa.field("", array.type) if is_private else batch.schema.field(index)
            arrays.append(array)
            fields.append(kind.with_name(name))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _randomizer(self) -> Randomizer:
        """Opened once in each worker process, which then serves many tasks."""
        keyed = self.keyed
        name = (self.sha256, *((keyed.fingerprint, keyed.context) if keyed else (None, None)))
        randomizer = _loaded.get(name)
        if randomizer is None:
            if hashlib.sha256(self.data).hexdigest() != self.sha256:
                raise DamagedArtifactError(
                    "the artifact was damaged on its way to the executor: run the job again"
                )
            if keyed is None:
                randomizer = Randomizer(self.data)
            else:
                randomizer = Randomizer(self.data, key=_fetched(keyed), context=keyed.context)
            while len(_loaded) >= _KEPT:
                _loaded.pop(next(iter(_loaded)))
            _loaded[name] = randomizer
        return randomizer


def _fetched(keyed: KeyedTask) -> Key:
    key = keyed.key if isinstance(keyed.key, Key) else keyed.key()
    if key.fingerprint != keyed.fingerprint:
        raise KeyFileError(
            f"the executor has the key {key.fingerprint}, and the driver has {keyed.fingerprint}, "
            "so other noise would be drawn: give both the same key file"
        )
    return key
