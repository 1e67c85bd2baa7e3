"""Load an artifact and randomize labels with it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, get_args, overload

import numpy as np
from numpy.typing import NDArray

from labeldp_runtime.artifact_file import check_bytes, read_bytes, require_prepared
from labeldp_runtime.columns import plain, read_ids, refuse_misaligned
from labeldp_runtime.domains import Sets
from labeldp_runtime.entropy import random_words
from labeldp_runtime.errors import (
    IdError,
    LabelError,
    UnsupportedFormatError,
    one_line,
)
from labeldp_runtime.ids import CheckedIds, Ids, refuse_duplicates
from labeldp_runtime.inputs import PRIVATE_SET, Feed, Given, Outputs
from labeldp_runtime.keyed import HmacWords, KeyedWords, check_version
from labeldp_runtime.keys import Key
from labeldp_runtime.opened import DAMAGED, as_texts, open_artifact, run_graph
from labeldp_runtime.policy import Policy

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Labels = Collection[object]
"""Arrays of numpy, lists and other sequences."""


class Columns(Protocol):
    """A frame of pandas or Polars, a table of pyarrow, or a mapping: columns by their names."""

    def __getitem__(self, name: str, /) -> object:
        """The column of a name."""


class Frame(Columns, Protocol):
    """A frame of pandas or Polars, or a table of pyarrow."""

    @property
    def columns(self) -> object:
        """The columns, or their names."""


class Column(Protocol):
    """An array of pyarrow, or a Series of pandas or Polars."""

    @property
    def to_numpy(self) -> Callable[..., object]:
        """A method that they all have, and sequences have not."""


ColumnLike = TypeVar("ColumnLike", bound=Column)
Private: TypeAlias = "dict[str, NDArray[np.generic] | Column] | NDArray[np.generic] | Column"
"""Private labels of several columns: by the columns' names; of sets, one column of numbers."""


CHUNK = 1 << 16  # labels a run: with fewer the calls cost, with more the tensors leave the cache
NO_KEY = "ids and versions need a key: use Randomizer.load(…, key=…, context=…)"
Construction = Literal["aes-256", "hmac-sha256"]
_Words = Callable[[int, int], NDArray[np.uint64]]


class Randomizer:
    """A compiled label randomizer.

    Without a key every call draws fresh secure randomness, and randomizing one record twice spends
    its ε twice. With a key and ids the same id, version and label always give the same private
    label. Calls are thread-safe; forked children draw other random bits; a randomizer that was
    loaded from a file can be pickled.

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
        construction: Construction = "aes-256",
        require: Policy | None = None,
        prepared: bool = False,
        path: Path | None = None,
    ) -> None:
        """Load from bytes; ``source`` names them in errors, ``path`` is where they are.

        See ``load``.
        """
        if (key is None) != (context is None):
            raise ValueError("key and context belong together: give both, or neither")
        if context is not None and not _is_name(context):
            raise ValueError("context must be the name of the column that is randomized, as a text")
        if construction not in get_args(Construction):
            raise ValueError(f"construction must be one of {', '.join(get_args(Construction))}")
        if isinstance(key, str | Path):
            key = Key.load(key)
        check_bytes(data, source)
        if require is not None:
            require.check_file(data, source, path)
        self._sha256 = hashlib.sha256(data).hexdigest()
        self._path = None if path is None else path.absolute()
        self._key, self._context, self._construction = key, context, construction
        self._opened = opened = open_artifact(data, source)
        self._session, self._stated, self._inputs = opened.session, opened.stated, opened.inputs
        self._words_per_label = opened.words_per_label
        if require is not None:
            require.check_certificate(self.certificate, source)
        if not prepared:
            require_prepared(self.certificate, source, "if your rows meet it, say prepared=True")
        self._prepared = prepared
        self._keyed = None if key is None else self._keyed_words(key, str(context), source)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        key: Key | str | Path | None = None,
        context: str | None = None,
        construction: Construction = "aes-256",
        require: Policy | None = None,
        prepared: bool = False,
    ) -> Randomizer:
        """Load an artifact and test the platform with the vectors that it carries.

        ``key`` (a Key, or the path of a key file) makes the randomizer replay-safe: each call then
        takes ``ids``. ``context`` names the column that is randomized; two columns with the same
        ids need two contexts. ``construction`` says how random bits follow from the key:
        ``hmac-sha256`` gives those of ``labeldp export --to sql``, and is slower; another
        construction is new noise. ``require`` says what the artifact must be; without it,
        ``labeldp verify`` the file before deployment. ``prepared`` says that the rows meet what an
        artifact demands of them together: how many a person has. Such an artifact is refused
        without it (an UnpreparedRowsError).

        Raises a RuntimeArtifactError that says why the file cannot be used (a PolicyError if it is
        not what ``require`` demands), KeyFileError for a key file that cannot be used, and
        MissingExtraError if an optional package is missing.
        """
        path = Path(path)
        return cls(
            read_bytes(path),
            str(path),
            key=key,
            context=context,
            construction=construction,
            require=require,
            prepared=prepared,
            path=path,
        )

    @overload
    def __call__(  # type: ignore[overload-overlap]  # a mapping is a collection, too
        self,
        labels: Mapping[str, object] | Frame,
        *,
        ids: Labels | Column | None = None,
        version: int = 0,
    ) -> Private: ...
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
        and never raise; nor does the type of a column, which libraries infer from the labels: what
        is not a number (not text) counts as missing. Raises LabelError for another shape or
        container.

        Where the label has several columns, ``labels`` is a mapping, a frame or a table, of which
        the ``label_columns`` [n] are read, and the private columns [n] come as a dict by the same
        names, each in the kind of its own. Sets of combinations are one column, of their numbers,
        in the kind of the first. Raises LabelError for columns that are missing, or of different
        lengths.

        An artifact with tables by group takes ``groups`` [n], the public group of each label, if
        they come from one column: integers, text, or numbers for bands, as the certificate lists
        them. Otherwise it takes ``columns``: a frame, a table or a mapping, of which it reads the
        ``group_columns``. Nulls and what is not listed have the table of all others.
        Groups are public. Raises GroupError, also if the label is given as its own group: the same
        object, a Series of the same name, or the same memory; values are never compared.

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
        given = self._inputs.read(labels, groups, columns)
        if self._keyed is not None:
            words = self._words_of(given, ids, version)
        elif ids is not None or version != 0:
            raise IdError(NO_KEY)
        else:
            words = self._fresh_words
        return self._inputs.answer(self._chunked(given, words), given.likes)

    @property
    def label_type(self) -> str:
        """The type of a label: int64, float64 or string.

        Raises TypeError where the label has several columns: see ``label_types``.
        """
        if len(self.label_types) > 1:
            raise TypeError("the label has several columns: use label_types")
        return self.label_types[0]

    @property
    def output_type(self) -> str:
        """The type of a private label: int64, float64 or string.

        Raises TypeError where it has several columns: see ``output_types``.
        """
        if len(self._opened.output_types) > 1:
            raise TypeError("the private label has several columns: use output_types")
        return self._opened.output_types[0]

    @property
    def label_columns(self) -> list[str]:
        """The declared columns of the label: one, or several for a combination.

        >>> from pathlib import Path
        >>> from labeldp_compile import compile_spec  # another distribution
        >>> _ = Path("sales.yaml").write_text('''
        ... {version: 1, name: sales, loss: zero_one, privacy: {epsilon: 8}, prior: {kind: uniform},
        ...  mechanism: {kind: randomized_response}, label: {columns: [
        ...   {column: sold, domain: {kind: categorical, values: ["no", "yes"]},
        ...    out_of_domain: {default: "no"}},
        ...   {column: items, domain: {kind: integer, min: 0, max: 4}}]}}''')
        >>> path = compile_spec("sales.yaml").write(Path("build"))
        >>> from labeldp_runtime import Randomizer
        >>> randomizer = Randomizer.load(path)
        >>> randomizer.label_columns, randomizer.label_types, randomizer.output_types
        (['sold', 'items'], ['string', 'int64'], ['string', 'float64'])
        >>> private = randomizer({"sold": ["no", "yes"], "items": [0, 99]})
        >>> list(private), private["items"].shape
        (['sold', 'items'], (2,))
        """
        return [column.name for column in self._inputs.labels if column.name is not None]

    @property
    def label_types(self) -> list[str]:
        """The type of each of them: int64, float64 or string."""
        return [column.element_type for column in self._inputs.labels]

    @property
    def output_types(self) -> list[str]:
        """The type of each private column: one a label column, or int64 for numbers of sets."""
        return list(self._opened.output_types)

    @property
    def private_columns(self) -> list[str]:
        """The names of the private columns: those of the label, or one of numbers of sets."""
        names = self.label_columns
        return [PRIVATE_SET] if len(names) > len(self._opened.output_types) else names

    @property
    def group_columns(self) -> list[str]:
        """The declared columns of the groups; none if the artifact takes no groups."""
        return [str(column.name) for column in self._inputs.groups]

    @property
    def group_types(self) -> list[str]:
        """The type of each of them: int64 or string for listed values, float64 for bands."""
        return [column.element_type for column in self._inputs.groups]

    @property
    def classes(self) -> list[object]:
        """[k] the labels that sets are of, in the order of the columns of ``membership``.

        Where the label has several columns they are tuples, one label a column.

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
        a set of one. Labels of several columns are tuples, here and there. Raises TypeError for an
        artifact whose private labels are not sets, and ValueError for what is not a private label
        of this artifact.
        """
        return self._the_sets().members(output)

    def _the_sets(self) -> Sets:
        if self._opened.sets is None:
            raise TypeError("the private labels of this artifact are not sets of labels")
        return self._opened.sets

    @property
    def certificate(self) -> dict[str, Json]:
        """The certificate as it is in the file; docs/artifact-format.md lists its fields."""
        return self._stated

    @property
    def is_keyed(self) -> bool:
        """Whether calls take ids."""
        return self._keyed is not None

    def __repr__(self) -> str:
        """Its name and ε, as the certificate states them, and whether it has a key."""
        stated = self.certificate
        privacy = stated.get("privacy")
        epsilon = privacy.get("epsilon_label") if isinstance(privacy, dict) else None
        return one_line(
            f"<Randomizer {stated.get('name')!r}: ε = {epsilon} per label, "
            f"{stated.get('labels')} labels, {stated.get('outputs')} outputs, "
            f"sha256 {self._sha256[:12]}…, {'keyed' if self.is_keyed else 'no key'}>"
        )

    @overload
    def apply_words(  # type: ignore[overload-overlap]
        self, labels: Mapping[str, object] | Frame, words: NDArray[np.uint64]
    ) -> dict[str, NDArray[np.generic]] | NDArray[np.generic]: ...
    @overload
    def apply_words(
        self,
        labels: Labels | Column,
        words: NDArray[np.uint64],
        groups: Labels | Column | None = None,
        columns: Columns | None = None,
    ) -> NDArray[np.generic]: ...
    def apply_words(
        self,
        labels: object,
        words: NDArray[np.uint64],
        groups: object = None,
        columns: object = None,
    ) -> object:
        """Private labels for words [n] (or [n, w]) that the caller supplies, as arrays of numpy.

        For tests, and to compare platforms. The words must be uniform, secret, and never used
        twice: otherwise there is no privacy.
        """
        given = self._inputs.read(labels, groups, columns)
        shape = self._words_shape(given.count)
        if words.dtype != np.uint64 or words.shape != shape:
            raise LabelError(f"expected uint64 words of shape {shape}")
        outputs = self._chunked(given, lambda start, stop: words[start:stop])
        return self._inputs.answer(outputs, [partial(plain.like, None)] * len(outputs))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the paths of artifact and key and their digests, never a secret."""
        if self._path is None:
            raise TypeError("a randomizer that was not loaded from a file cannot be pickled")
        own = (str(self._path), self._sha256, self._key, self._context, self._construction)
        return _reload, (*own, self._prepared)

    def _keyed_words(self, key: Key, context: str, source: str) -> KeyedWords | HmacWords:
        try:
            self._canonical = self._inputs.canonical()
            digest = self._stated["digests"]["tables"]
            source_of_words = KeyedWords if self._construction == "aes-256" else HmacWords
            return source_of_words(key, context, digest, self._words_per_label)
        except DAMAGED as error:
            raise UnsupportedFormatError(
                f"{source}: has labels for which this labeldp-runtime has no keyed randomization: "
                "upgrade it"
            ) from error

    def _words_of(self, given: Given, values: Any, version: int) -> _Words:
        """The words of ids; every id is checked before the first label is randomized."""
        keyed, canonical, inputs = self._keyed, self._canonical, self._inputs
        assert keyed is not None
        for labels in given.labels:
            refuse_misaligned(labels, values, "ids", IdError)
        if values is None:
            raise IdError(
                "this randomizer has a key: give ids=…, or load it without a key for fresh random "
                "bits"
            )
        version = check_version(version)
        ids = values.ids if isinstance(values, CheckedIds) else read_ids(values)
        if len(ids) != given.count:
            raise IdError(f"expected one id per label, got {len(ids)} for {given.count} labels")
        if not isinstance(values, CheckedIds):
            refuse_duplicates(ids)

        def words(start: int, stop: int) -> NDArray[np.uint64]:
            part: Ids = ids[start:stop]
            here = _rows(given.feed, start, stop)
            return keyed(part, canonical(here), version, inputs.tables(here))

        return words

    def _chunked(self, given: Given, words: _Words) -> Outputs:
        count = given.count
        outputs: list[NDArray[Any]] = []
        for a in range(0, max(count, 1), CHUNK):
            b = min(a + CHUNK, count)
            part = self._run(_rows(given.feed, a, b), words(a, b))
            if not outputs:
                outputs = [np.empty(count, dtype=column.dtype) for column in part]
            for whole, column in zip(outputs, part, strict=True):
                whole[a:b] = column
        return as_texts(self._opened.texts, outputs)

    def _run(self, feed: Feed, words: NDArray[np.uint64]) -> list[NDArray[Any]]:
        return run_graph(self._session, self._opened.limbs, feed, words)

    def _fresh_words(self, start: int, stop: int) -> NDArray[np.uint64]:
        return random_words(*self._words_shape(stop - start))

    def _words_shape(self, count: int) -> tuple[int, ...]:
        return (count,) if self._words_per_label == 1 else (count, self._words_per_label)


def _rows(feed: Feed, start: int, stop: int) -> Feed:
    return {name: column[start:stop] for name, column in feed.items()}


def _is_name(context: Any) -> bool:
    """A text that is not empty and has a UTF-8."""
    try:
        return isinstance(context, str) and bool(context.encode())
    except UnicodeEncodeError:
        return False


def _reload(
    path: str,
    sha256: str,
    key: Key | None,
    context: str | None,
    construction: Construction,
    prepared: bool,
) -> Randomizer:
    """A pickled randomizer, if its file is still the same."""
    require = Policy(sha256=sha256)
    return Randomizer.load(
        path,
        key=key,
        context=context,
        construction=construction,
        require=require,
        prepared=prepared,
    )
