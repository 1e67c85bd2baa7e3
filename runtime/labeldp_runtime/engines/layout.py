"""Shared by all engines: where a frame's columns are, and a randomizer that travels to workers.

A randomizer travels as its bytes, without a secret. A key travels as the path and fingerprint of
its file, or as the function that fetches it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labeldp_runtime.errors import (
    DamagedArtifactError,
    GroupError,
    IdError,
    KeyFileError,
    LabelError,
)
from labeldp_runtime.inputs import PRIVATE_SET
from labeldp_runtime.keyed import check_version
from labeldp_runtime.keys import Key
from labeldp_runtime.randomizer import NO_KEY, Randomizer

LabelNames = str | Sequence[str] | Mapping[str, str]
"""One column of a frame; or, of a joint label, the artifact's ``label_columns``, or which column of
the frame each of them is where it has another name."""
PrivateNames = str | Mapping[str, str]
"""The name of the private column, or of each of those of a joint label, by the label columns."""


@dataclass(frozen=True)
class Layout:
    """The columns of a frame that go in and come out, by position.

    Attributes:
        labels: the artifact's label columns, each with its position.
        groups: its group columns, likewise.
        ids: the position of the ids; None without a key.
        columns: what comes out: the name; whether it is private; the position, in the frame or
            among the private columns.
    """

    labels: tuple[tuple[str, int], ...]
    groups: tuple[tuple[str, int], ...]
    ids: int | None
    version: int
    columns: tuple[tuple[str, bool, int], ...] = ()

    def private(self, randomizer: Randomizer, column: Callable[[int], Any]) -> list[Any]:
        """The private columns, in the order of the labels; ``column`` gives those of the frame."""
        given: dict[str, Any] = {}
        if self.groups:
            given["columns"] = {name: column(index) for name, index in self.groups}
        if self.ids is not None:
            given |= {"ids": column(self.ids), "version": self.version}
        labels = {name: column(index) for name, index in self.labels}
        answer = randomizer(labels if len(labels) > 1 else next(iter(labels.values())), **given)
        return list(answer.values()) if isinstance(answer, dict) else [answer]


@dataclass(frozen=True)
class Names:
    """The columns of a frame that a caller names: see ``engines.polars.randomize``."""

    column: LabelNames
    ids: str | None
    version: int
    group_columns: Mapping[str, str] | None
    add_as: PrivateNames | None

    def layout(
        self,
        randomizer: Randomizer,
        columns: Sequence[str],
        find: Callable[[str, type[ValueError]], int],
        refuse_taken: Callable[[Sequence[str], str], None],
    ) -> Layout:
        """Their positions among a frame's ``columns``.

        ``find`` gives a column's position or raises the error; ``refuse_taken`` raises LabelError
        if the name of a new column is taken. One private column for several labels takes the place
        of the first. Raises LabelError, GroupError or IdError.
        """
        version = check_version(self.version)
        sources = label_sources(randomizer, self.column)
        private = private_names(randomizer, sources, self.add_as)
        places = [find(source, LabelError) for source in sources.values()]
        for i, name in enumerate(private):
            if self.add_as is not None or name not in sources.values():
                refuse_taken([*columns, *private[:i]], name)
        if not randomizer.is_keyed and (self.ids is not None or version != 0):
            raise IdError(NO_KEY)
        if randomizer.is_keyed and self.ids is None:
            raise IdError("this randomizer has a key: give ids=, the column that names each label")
        ids = None if self.ids is None else find(self.ids, IdError)
        if self.ids in sources.values():
            raise IdError(f"{self.ids!r} cannot be both the label and its id")
        labels = {*sources.values(), *randomizer.label_columns}
        groups = group_sources(randomizer.group_columns, self.group_columns, columns, labels)
        new = [(name, True, i) for i, name in enumerate(private)]
        kept = [(name, False, i) for i, name in enumerate(columns)]
        instead = {} if self.add_as is not None else dict(zip(places, new, strict=False))
        dropped = set() if self.add_as is not None else set(places) - set(instead)
        found = [instead.get(i, own) for i, own in enumerate(kept) if i not in dropped]
        return Layout(
            tuple(zip(sources, places, strict=True)),
            tuple((name, find(source, GroupError)) for name, source in groups.items()),
            ids,
            version,
            tuple(found if instead else [*found, *new]),
        )


def default_context(column: LabelNames, add_as: PrivateNames | None) -> str:
    """The name of the private column. Raises IdError for a label of several columns."""
    name = column if add_as is None else add_as
    if not isinstance(name, str) or not isinstance(column, str):
        raise IdError("a label of several columns has no default context: give context=")
    return name


def label_sources(randomizer: Randomizer, given: LabelNames) -> dict[str, str]:
    """From each of the artifact's label columns to the frame's column that gives it.

    Raises LabelError.
    """
    names = randomizer.label_columns
    if len(randomizer.label_types) == 1:
        if not isinstance(given, str):
            raise LabelError("the label of this artifact is one column: give its name as a text")
        return {given: given}
    if isinstance(given, str):
        raise LabelError(
            f"the label of this artifact has several columns: give {names}, or which column each "
            f"is, as {{{names[0]!r}: …}}"
        )
    sources = dict(given) if isinstance(given, Mapping) else {name: name for name in given}
    if set(sources) != set(names) or len(sources) != len(given):
        raise LabelError(f"expected the artifact's label columns {names}, each once")
    if len(set(sources.values())) < len(sources):
        raise LabelError("two label columns cannot be the same column of the frame")
    return {name: sources[name] for name in names}


def private_names(
    randomizer: Randomizer, sources: Mapping[str, str], add_as: PrivateNames | None
) -> list[str]:
    """The names of the private columns: ``add_as``, or those of the labels that they replace.

    The numbers of sets of combinations are none of the label columns, and called private_label.
    Raises LabelError.
    """
    if len(randomizer.output_types) == 1:
        if isinstance(add_as, Mapping):
            raise LabelError("the private label of this artifact is one column: give its name")
        if add_as is None:
            return [PRIVATE_SET] if len(sources) > 1 else list(sources.values())
        return [add_as]
    if add_as is None:
        return list(sources.values())
    if not isinstance(add_as, Mapping) or set(add_as) != set(sources):
        raise LabelError(
            f"expected a name for each private column, as a mapping with the keys {list(sources)}"
        )
    if len(set(add_as.values())) < len(add_as):
        raise LabelError("two private columns cannot have the same name")
    return [add_as[name] for name in sources]


def group_sources(
    names: list[str],
    given: Mapping[str, str] | None,
    columns: Collection[str],
    labels: Collection[str],
) -> dict[str, str]:
    """From each group column to the column of a frame that gives it: that of its name, unless
    ``given`` says another.

    ``columns`` are those of the frame, ``labels`` those of the labels, there and in the artifact.
    Raises GroupError.
    """
    given = {} if given is None else given
    for name in given:
        if name not in names:
            known = f"its groups come from {names}" if names else "it takes no groups"
            raise GroupError(f"the artifact has no group column {name!r}: {known}")
    sources = {name: given.get(name, name) for name in names}
    for name, source in sources.items():
        if source in labels:
            raise GroupError(f"{source!r} cannot be both the label and a group: groups are public")
        if source not in columns:
            raise GroupError(
                f"the frame has no group column {source!r}: if it has another name, give "
                f"group_columns={{{name!r}: …}}"
            )
    return sources


KeySource = Key | Callable[[], Key]
_KEPT = 8  # randomizers that a worker process keeps
_loaded: dict[tuple[str, str | None, str | None], Randomizer] = {}


@dataclass(frozen=True)
class KeyedTask:
    """The key's source and the fingerprint that it must have, and the context."""

    key: KeySource
    fingerprint: str
    context: str


@dataclass(frozen=True)
class Shipped:
    """The settings with which a worker opens a randomizer.

    Attributes:
        data: bytes of the artifact.
        sha256: of ``data``.
        keyed: None for fresh words.
    """

    data: bytes = field(repr=False)
    sha256: str
    keyed: KeyedTask | None = field(repr=False)

    @classmethod
    def of(cls, data: bytes, keyed: KeyedTask | None) -> Shipped:
        """These bytes, with their digest."""
        return cls(data, hashlib.sha256(data).hexdigest(), keyed)

    def open(self) -> Randomizer:
        """Opened once in each worker process, which then serves many tasks.

        Raises DamagedArtifactError, or KeyFileError for a key that is not the driver's.
        """
        keyed = self.keyed
        name = (self.sha256, *((keyed.fingerprint, keyed.context) if keyed else (None, None)))
        randomizer = _loaded.get(name)
        if randomizer is None:
            if hashlib.sha256(self.data).hexdigest() != self.sha256:
                raise DamagedArtifactError(
                    "the artifact was damaged on its way to the worker: run the job again"
                )
            if keyed is None:
                randomizer = Randomizer(self.data, prepared=True)  # the driver has looked
            else:
                randomizer = Randomizer(
                    self.data, key=_fetched(keyed), context=keyed.context, prepared=True
                )
            while len(_loaded) >= _KEPT:
                _loaded.pop(next(iter(_loaded)))
            _loaded[name] = randomizer
        return randomizer


def key_on_driver(key: KeySource) -> Key:
    """The key where the job is planned. Raises KeyFileError for one that cannot travel."""
    if not isinstance(key, Key):
        secret = key()
        if not isinstance(secret, Key):
            raise KeyFileError("the function that fetches the key must return a Key")
        return secret
    try:
        key.__reduce__()
    except TypeError:
        raise KeyFileError(
            "this key came from no file, and would have to travel inside the plan: use Key.load "
            "with a file that every worker finds under the same path, or give a function that "
            "fetches the key from your secret manager: key=lambda: Key(…)"
        ) from None
    return key


def refuse_secret(code: bytes, key: Key) -> None:
    """Raise KeyFileError if the pickled task, with the function that fetches the key, has the key.

    ``code`` is not compressed.
    """
    secret = key.secret
    forms = (secret, secret.hex().encode(), secret.hex().upper().encode(), base64.b64encode(secret))
    if any(form in code for form in forms):
        raise KeyFileError(
            "the function that fetches the key contains the key itself, which would travel inside "
            "the plan: let the function read the key where it runs"
        )


def _fetched(keyed: KeyedTask) -> Key:
    key = keyed.key if isinstance(keyed.key, Key) else keyed.key()
    if key.fingerprint != keyed.fingerprint:
        raise KeyFileError(
            f"the worker has the key {key.fingerprint}, and the driver has {keyed.fingerprint}, "
            "so other noise would be drawn: give both the same key file"
        )
    return key
