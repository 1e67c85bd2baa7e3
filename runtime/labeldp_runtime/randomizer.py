"""Load an artifact and randomize labels with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, overload

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from labeldp_runtime.artifact_file import check_bytes, read_bytes
from labeldp_runtime.canonical import canonical_labels
from labeldp_runtime.columns import (
    read_ids,
    read_labels,
    refuse_misalignment,
)
from labeldp_runtime.duplicates import refuse_duplicates
from labeldp_runtime.entropy import random_words
from labeldp_runtime.errors import (
    ArtifactError,
    DamagedArtifactError,
    GroupError,
    IdError,
    InsecureArtifactError,
    LabelError,
    PlatformError,
    UnsupportedFormatError,
)
from labeldp_runtime.groups import Feed, Groups
from labeldp_runtime.ids import Ids
from labeldp_runtime.keyed import KeyedWords, check_version
from labeldp_runtime.keys import Key
from labeldp_runtime.policy import Policy
from labeldp_runtime.printable import one_line
from labeldp_runtime.self_test import open_session, run_self_test
from labeldp_runtime.sets import Sets

CHUNK = 1 << 15  # labels a run: the tensors of one chunk stay in a core's cache
_ELEMENT_TYPES = {"tensor(int64)": "int64", "tensor(double)": "float64", "tensor(string)": "string"}
_Words = Callable[[int, int], NDArray[np.uint64]]
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Labels = Collection[object]
"""Arrays of numpy, lists and other sequences."""


class Columns(Protocol):
    """A frame of pandas or Polars, a table of pyarrow, or a mapping: columns by their names."""

    def __getitem__(self, name: str, /) -> object:
        """The column of a name."""


class Column(Protocol):
    """An array of pyarrow, or a Series of pandas or Polars."""

    @property
    def to_numpy(self) -> Callable[..., object]:
        """A method that they all have, and sequences have not."""


ColumnLike = TypeVar("ColumnLike", bound=Column)


class Randomizer:
    """A compiled label randomizer.

    Without a key every call draws fresh secure randomness, and randomizing one record twice spends
    its ε twice. With a key and ids the same id, version and label always give the same private
    label. Calls are thread-safe; forked children draw words of their own; one that was loaded from
    a file can be pickled.

    >>> from pathlib import Path
    >>> from labeldp_compile import compile_spec  # another distribution
    >>> path = compile_spec("specs/health-rating.yaml").write(Path("build"))
    >>> from labeldp_runtime import Randomizer
    >>> randomizer = Randomizer.load(path)
    >>> private = randomizer(["good", "poor", None])
    >>> private.shape, set(private) <= {"excellent", "good", "fair", "poor"}
    ((3,), True)
    """

    def __init__(
        self,
        data: bytes,
        source: str = "artifact",
        *,
        key: Key | str | Path | None = None,
        context: str | None = None,
        require: Policy | None = None,
        path: Path | None = None,
    ) -> None:
        """Load from bytes; ``source`` names them in errors, ``path`` says where they lie.

        See ``load``.
        """
        if (key is None) != (context is None):
            raise ValueError("key and context belong together: give both, or neither")
        if context is not None and not _is_name(context):
            raise ValueError("context is the name of the column that is randomized: a text")
        if isinstance(key, str | Path):
            key = Key.load(key)
        check_bytes(data, source)
        if require is not None:
            require.check_file(data, source, path)
        self._sha256 = hashlib.sha256(data).hexdigest()
        self._path = None if path is None else path.absolute()
        self._key, self._context = key, context
        self._open(data, source)
        if require is not None:
            require.check_certificate(self.certificate, source)
        self._keyed = None if key is None else self._keyed_words(key, str(context), source)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        key: Key | str | Path | None = None,
        context: str | None = None,
        require: Policy | None = None,
    ) -> Randomizer:
        """Load an artifact and test the platform with the vectors that it carries.

        ``key`` (a Key, or the path of a key file) makes the randomizer replay-safe: each call then
        takes ``ids``. ``context`` names the column that is randomized; two columns with the same
        ids need two contexts. ``require`` says what the artifact must be; without it, ``labeldp
        verify`` the file before deployment.

        Raises a RuntimeArtifactError that says why the file cannot be used (a PolicyError if it is
        not what ``require`` demands), KeyFileError for a key file that cannot be used, and
        MissingExtraError if an optional package is missing.
        """
        path = Path(path)
        return cls(
            read_bytes(path), str(path), key=key, context=context, require=require, path=path
        )

    @overload
    def __call__(
        self,
        labels: ColumnLike,
        *,
        groups: Labels | Column | None = None,
        columns: Columns | None = None,
        ids: Labels | Column | None = None,
        version: int = 0,
    ) -> ColumnLike: ...
    @overload
    def __call__(
        self,
        labels: Labels,
        *,
        groups: Labels | Column | None = None,
        columns: Columns | None = None,
        ids: Labels | Column | None = None,
        version: int = 0,
    ) -> NDArray[np.generic]: ...
    def __call__(
        self,
        labels: object,
        *,
        groups: object = None,
        columns: object = None,
        ids: object = None,
        version: int = 0,
    ) -> object:
        """Private labels [n] for labels [n], in the same kind of column.

        numpy arrays, lists and other sequences give numpy arrays (float64, int64 or str objects);
        arrays of pyarrow and Series of pandas and Polars give their own kind, with the same index
        and name. NaN, nulls and labels outside the domain follow the artifact's out-of-domain rule
        and never raise; nor does anything in a list or a column of objects, where what is no number
        (no text) counts as missing. Raises LabelError for another shape or container, or a declared
        type that cannot hold the labels.

        An artifact with tables by group takes ``groups`` [n], the public group of each label, if
        they come from one column: integers, text, or numbers for bands, as the certificate lists
        them. Otherwise, or as well, it takes ``columns``: a frame, a table or a mapping, of which
        it reads the ``group_columns``. Nulls and what is not listed have the table of all others.
        Raises GroupError.

        With a key, ``ids`` [n] name the labels: integers, text, bytes or UUIDs, none null and none
        twice. A label that has changed needs a new ``version``, and spends its ε again. Raises
        IdError, or DuplicateIdError.

        >>> from pathlib import Path
        >>> from labeldp_compile import compile_spec  # another distribution
        >>> path = compile_spec("specs/visits.yaml").write(Path("build"))
        >>> from labeldp_runtime import Key, Randomizer
        >>> keyed = Randomizer.load(path, key=Key.create("labels.key"), context="visits")
        >>> first, again = (keyed([0, 9], ids=["row 1", "row 2"]) for _ in range(2))
        >>> first.dtype, (first == again).all()
        (dtype('float64'), np.True_)
        """
        array, like = read_labels(labels, self._element_type, self._missing)
        group = self._read_groups(labels, groups, columns, len(array))
        if self._keyed is None:
            if ids is not None or version != 0:
                raise IdError("ids and versions need a key: Randomizer.load(…, key=…, context=…)")
            words: _Words = self._fresh_words
        else:
            refuse_misalignment(labels, ids)
            words = self._words_of(array, group, ids, version)
        private = self._chunked(array, words, group)
        return private if like is None else like(private)

    @property
    def label_type(self) -> str:
        """What the artifact takes: int64, float64 or string."""
        return self._element_type

    @property
    def output_type(self) -> str:
        """What a private label is: int64, float64 or string."""
        return _ELEMENT_TYPES[self._session.get_outputs()[0].type]

    @property
    def group_columns(self) -> list[str]:
        """The columns that the groups are declared to come from; none if it takes no groups."""
        return [] if self._groups is None else self._groups.names

    @property
    def group_types(self) -> list[str]:
        """What each of them holds: int64 or string for listed values, float64 for bands."""
        return [] if self._groups is None else self._groups.types

    @property
    def classes(self) -> list[object]:
        """[k] the labels that sets are of, in the order of the columns of ``membership``.

        Raises TypeError for an artifact that does not answer with sets.
        """
        return list(self._the_sets().labels)

    @property
    def membership(self) -> NDArray[np.bool_]:
        """[m, k] whether class k is in the set of number m; for TypeError see ``members``."""
        return self._the_sets().matrix()

    def members(self, output: object) -> list[object]:
        """The labels in a private label, where private labels are sets of them.

        Subset selection answers with the number of a set, or, at a large ε, with a label, which is
        a set of one. Raises TypeError for an artifact of another mechanism, whose private labels
        are no sets, and ValueError for what is no private label of this artifact.
        """
        return self._the_sets().members(output)

    def _the_sets(self) -> Sets:
        if self._sets is None:
            raise TypeError("the private labels of this artifact are no sets of labels")
        return self._sets

    @property
    def certificate(self) -> dict[str, Json]:
        """The certificate as it stands in the file; docs/artifact-format.md names its fields."""
        return self._stated

    @property
    def is_keyed(self) -> bool:
        """Whether calls take ids."""
        return self._keyed is not None

    def __repr__(self) -> str:
        """What it is, as the certificate declares it; of a key only that there is one."""
        stated = self.certificate
        privacy = stated.get("privacy")
        epsilon = privacy.get("epsilon_label") if isinstance(privacy, dict) else None
        return one_line(
            f"<Randomizer {stated.get('name')!r}: ε = {epsilon} of a label, "
            f"{stated.get('labels')} labels, {stated.get('outputs')} outputs, "
            f"sha256 {self._sha256[:12]}…, {'keyed' if self.is_keyed else 'no key'}>"
        )

    def apply_words(
        self,
        labels: Labels | Column,
        words: NDArray[np.uint64],
        groups: Labels | Column | None = None,
        columns: Columns | None = None,
    ) -> NDArray[np.generic]:
        """Private labels for words [n] (or [n, w]) that the caller brings.

        For tests, and to compare platforms. The words must be uniform, secret, and never serve
        twice: otherwise there is no privacy.
        """
        array, _ = read_labels(labels, self._element_type, self._missing)
        if words.dtype != np.uint64 or words.shape != self._words_shape(len(array)):
            raise LabelError(f"expected uint64 words of shape {self._words_shape(len(array))}")
        group = self._read_groups(labels, groups, columns, len(array))
        return self._chunked(array, lambda start, stop: words[start:stop], group)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the paths of artifact and key and their digests, never a secret."""
        if self._path is None:
            raise TypeError("a randomizer that was not loaded from a file cannot be pickled")
        return _reload, (str(self._path), self._sha256, self._key, self._context)

    def _open(self, data: bytes, source: str) -> None:
        """Make the session, read the certificate and test the platform."""
        try:
            self._session = open_session(data)
            plain = open_session(data, optimised=False)  # for the self-test only
            metadata = self._session.get_modelmeta().custom_metadata_map
        except Exception as error:  # onnxruntime raises types of its own
            raise ArtifactError(f"{source}: is not an ONNX file that onnxruntime loads") from error
        try:
            stated: dict[str, Any] = json.loads(metadata["labeldp.certificate"])
            self._stated, insecure = stated, stated["insecure"]
            domain = stated["label"]["domain"]
            rule = domain["out_of_domain"]
            self._missing = domain["min"] if rule == "clamp" else rule["default"]
            label, entropy, *group = self._session.get_inputs()
            self._element_type = _ELEMENT_TYPES[label.type]
            self._groups = _groups_of(stated, group)
            group_types = [_ELEMENT_TYPES[given.type] for given in group]
            self._words_per_label = int(entropy.shape[1]) if len(entropy.shape) == 2 else 1
            self._sets = Sets(stated) if "sets" in stated else None
            vectors = json.loads(metadata["labeldp.self_test"])
        except (KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
            raise DamagedArtifactError(f"{source}: its certificate is damaged") from error
        if insecure is not None:
            raise InsecureArtifactError(
                f"{source}: {insecure!r}: compile it again without a test seed"
            )
        if not run_self_test(
            self._run,
            partial(_run, plain),
            vectors,
            self._element_type,
            self._words_per_label,
            domain,
            dict(zip([given.name for given in group], group_types, strict=True)),
        ):
            raise PlatformError(
                f"{source}: onnxruntime {onnxruntime.__version__} computes wrongly on this "
                "platform (or the file is damaged): use another version of onnxruntime"
            )

    def _keyed_words(self, key: Key, context: str, source: str) -> KeyedWords:
        try:
            self._canonical = canonical_labels(self._stated["label"]["domain"])
            digest = self._stated["digests"]["tables"]
            return KeyedWords(key, context, digest, self._words_per_label)
        except (KeyError, TypeError, ValueError) as error:
            raise UnsupportedFormatError(
                f"{source}: has labels that this labeldp-runtime cannot key: upgrade it"
            ) from error

    def _read_groups(self, labels: Any, groups: Any, columns: Any, count: int) -> Feed:
        """Groups [n] as the graph takes them; nothing for a graph without."""
        if self._groups is not None:
            return self._groups.read(labels, groups, columns, count)
        if groups is not None or columns is not None:
            raise GroupError("this artifact has one table for all labels: it takes no groups")
        return {}

    def _words_of(self, labels: NDArray[Any], groups: Feed, values: Any, version: int) -> _Words:
        """The words of ids; every id is checked before the first label is randomized."""
        keyed, canonical, known = self._keyed, self._canonical, self._groups
        assert keyed is not None
        if values is None:
            raise IdError(
                "this randomizer has a key: give ids=…, or load it without a key for fresh words"
            )
        version, ids = check_version(version), read_ids(values)
        if len(ids) != len(labels):
            raise IdError(f"expected one id a label, got {len(ids)} for {len(labels)} labels")
        refuse_duplicates(ids)

        def words(start: int, stop: int) -> NDArray[np.uint64]:
            part: Ids = ids[start:stop]
            tables = None
            if known is not None:
                tables = known.tables(_part(groups, start, stop))
            return keyed(part, canonical(labels[start:stop]), version, tables)

        return words

    def _chunked(self, labels: NDArray[Any], words: _Words, groups: Feed) -> NDArray[Any]:
        if len(labels) <= CHUNK:
            return self._run(labels, words(0, len(labels)), groups)
        parts = []
        for a in range(0, len(labels), CHUNK):
            b = min(a + CHUNK, len(labels))
            parts.append(self._run(labels[a:b], words(a, b), _part(groups, a, b)))
        return np.concatenate(parts)

    def _run(self, labels: NDArray[Any], words: NDArray[np.uint64], groups: Feed) -> NDArray[Any]:
        return _run(self._session, labels, words, groups)

    def _fresh_words(self, start: int, stop: int) -> NDArray[np.uint64]:
        return random_words(*self._words_shape(stop - start))

    def _words_shape(self, count: int) -> tuple[int, ...]:
        return (count,) if self._words_per_label == 1 else (count, self._words_per_label)


def _run(
    session: onnxruntime.InferenceSession,
    labels: NDArray[Any],
    words: NDArray[np.uint64],
    groups: Feed,
) -> NDArray[Any]:
    return np.asarray(session.run(None, {"label": labels, "entropy": words, **groups})[0])


def _part(groups: Feed, start: int, stop: int) -> Feed:
    """The rows from ``start`` to ``stop``."""
    return {name: column[start:stop] for name, column in groups.items()}


def _groups_of(stated: dict[str, Any], inputs: list[Any]) -> Groups | None:
    """The groups of a certificate, if the graph takes any; ValueError if the two differ."""
    if bool(inputs) != ("groups" in stated):
        raise ValueError("the graph's inputs are not those of the certificate")
    if not inputs:
        return None
    return Groups(stated["groups"], [(given.name, _ELEMENT_TYPES[given.type]) for given in inputs])


def _is_name(context: Any) -> bool:
    """A text that is not empty and has a UTF-8."""
    try:
        return isinstance(context, str) and bool(context.encode())
    except UnicodeEncodeError:
        return False


def _reload(path: str, sha256: str, key: Key | None, context: str | None) -> Randomizer:
    """A pickled randomizer, if its file is still the same."""
    return Randomizer.load(path, key=key, context=context, require=Policy(sha256=sha256))
