"""Count the rows of each person, and enforce the most that one may have.

Only the public column of persons is read here, and a public column that orders rows: whether a row
is beyond the bound depends on no label, and a row counts whether or not its label is null.

Persons are told apart by digests of 64 bits, which are held in memory, and written nowhere but into
files without a name that ``evaluate`` reads.
Two persons with one digest (once in 2^64 pairs) count as one, so that a row too many is beyond the
bound, never one too few.

Who a person is: one rule for every command and format. Two values are one person if they are equal

* as numbers, exactly: 3, 3.0 and the text "3", −0.0 and 0.0, but not 2^53 and 2^53 + 1;
* as text in Unicode form NFC without white space at either end. Text that is a number by the
  grammar of ``labeldp_runtime.labels`` is that number, so that Parquet, CSV and archives agree;
* as bytes, or as times.

A dictionary, an extension type or a run-end encoding is only how values are stored. All other
differences, such as upper and lower case, make two persons. Treating two persons as one only makes
a promise stronger than stated, because it then covers changes of both together. Treating one person
as two would break it. A row without a person (null, NaN, NaT, empty text) is refused.

``randomize``, private priors, ``evaluate`` and the trainer all call ``person_names``.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from labeldp_runtime import IdError
from labeldp_runtime.columns import read_ids
from labeldp_runtime.columns.arrow import is_number, is_text
from labeldp_runtime.elements import number_in
from numpy.typing import NDArray

from labeldp_compile.errors import DataError, InputError, refused
from labeldp_compile.tabular.columns import chosen_rows
from labeldp_compile.tabular.formats import TextForm, files_of, is_stream
from labeldp_compile.tabular.reader import TableReader, read_columns

if TYPE_CHECKING:
    from labeldp_compile.tabular.selection import Beyond

# Text that is its own name: a whole number, or visible ASCII that is neither number nor word, for
# its first character is in none, or a later one is in none that begins like this.
_OWN_NAME = (
    r"^(0|[1-9][0-9]{0,18}|[!-*,/:-EGHJ-SU-eghj-su-~][!-~]*"
    r"|[0-9][0-9.eE+-]*[!-*,/:-DF-df-~][!-~]*|[fFiItT][!-~]*[0-9][!-~]*)$"
)
_MOST_PLACES = 20  # before the point, or zeros behind it, of a number without an exponent
_NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_DAY = 86_400 * 10**9
_BYTES = ("binary", "large_binary", "binary_view")


def person_names(values: Any, source: str, column: str) -> pa.Array:
    """[n] one name for each person, as ``large_binary``: equal for rows of one person.

    ``values`` are an Arrow array, chunked or not, or a numpy array; ``source`` and ``column`` are
    for messages. Raises DataError for a row without a person, and for a type that names nobody.
    """
    try:
        values = _as_stored(_of_numpy(values) if isinstance(values, np.ndarray) else values)
        kind = values.type
        if values.null_count or (pa.types.is_null(kind) and len(values)):
            raise _nobody(source, column)
        names = _names(values, kind)
    except (pa.ArrowException, ValueError, TypeError, SystemError):  # damaged text, odd types
        names, kind = None, values.dtype if isinstance(values, np.ndarray) else values.type
    if names is None:
        raise DataError(
            f"{source}: {column!r} has the type {kind}, "
            "which names no persons: expected numbers, text, bytes or times"
        )
    if names.null_count:
        raise _nobody(source, column)
    return names


def _as_stored(values: Any) -> Any:
    """The values of a column in one array, without the way in which they are stored."""
    import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.chunks else pa.array([], values.type)
    while True:
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        elif isinstance(values, pa.DictionaryArray):
            values = values.dictionary_decode()
        elif pa.types.is_run_end_encoded(values.type):
            values = pc.run_end_decode(values)
        else:
            return values


def _of_numpy(values: NDArray[Any]) -> pa.Array:
    kind = values.dtype.kind
    if kind not in "biufUSMm":
        raise TypeError(kind)
    if kind in "biuf":
        wide = np.float64 if kind == "f" else values.dtype.newbyteorder("=")
        return pa.array(values.astype(wide))
    if kind in "Mm" and np.datetime_data(values.dtype)[0] not in _NANOSECONDS:
        values = values.astype(f"{kind}8[s]")
    return pa.array(values)


def _names(values: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """[n] with nulls for nobody; None for a type that names nobody."""
    if is_text(kind):
        return _names_of_text(values)
    if is_number(kind):
        return _names_of_numbers(values, kind)
    if pa.types.is_fixed_size_binary(kind) or str(kind) in _BYTES:
        return _each_once(values.cast(pa.large_binary()), lambda value: value or None)
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        unit = _NANOSECONDS["ms"] if pa.types.is_date64(kind) else _DAY
        if not pa.types.is_date(kind):
            unit = _NANOSECONDS[kind.unit]
        whole = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        return _each_once(whole, lambda value: b"%d" % (value * unit))
    return pa.array([], pa.large_binary()) if pa.types.is_null(kind) else None


def _names_of_numbers(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        if kind.bit_width < 128:  # which has no dictionaries
            values = values.cast(pa.decimal128(38, kind.scale))
        return _each_once(values, _number_name)
    if pa.types.is_floating(kind):
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
        whole = (np.trunc(numbers) == numbers).all() and (np.abs(numbers) < 2**53).all()
        if not whole:
            return _each_once(pa.array(numbers), _number_name)
        values = pa.array(numbers.astype(np.int64))
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    return values.cast(pa.string()).cast(pa.large_binary())


def _each_once(values: pa.Array, name: Callable[[Any], bytes | None]) -> pa.Array:
    """[n] the name of each value, which is found once for equal ones."""
    encoded = values.dictionary_encode()
    names = [name(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(names, pa.large_binary()).take(encoded.indices)


def _names_of_text(values: pa.Array) -> pa.Array:
    import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

    texts = values.cast(pa.large_binary())
    own = pc.match_substring_regex(texts, _OWN_NAME)
    if pc.all(own).as_py():
        return texts
    rest = _each_once(texts.filter(pc.invert(own)), _text_name)
    return pc.replace_with_mask(texts, pc.invert(own), rest)


def _text_name(cell: bytes) -> bytes | None:
    text = unicodedata.normalize("NFC", cell.decode("utf-8", "surrogateescape")).strip()
    name = text.encode("utf-8", "surrogateescape")
    number = number_in(name)
    return (name or None) if number is None else _number_name(number)


def _number_name(number: Decimal | float) -> bytes | None:
    """A number, exactly, in one form, which is its own name as text; None for NaN."""
    if isinstance(number, float):
        if not math.isfinite(number):
            return None if math.isnan(number) else str(number).encode()
        number = Decimal(number)
    if not number:
        return b"0"
    if abs(number.adjusted()) < _MOST_PLACES:
        text = format(number, "f")
        return (text.rstrip("0").rstrip(".") if "." in text else text).encode()
    sign, digits, exponent = number.as_tuple()
    whole = "".join(map(str, digits))
    short = whole.rstrip("0")
    return f"{'-' * sign}{short}e{int(exponent) + len(whole) - len(short)}".encode()


def _nobody(source: str, column: str) -> DataError:
    return DataError(
        f"{source}: {column!r}: a row names no person (null, NaN or empty): "
        "give every row a person, or remove the rows without one"
    )


_HELD_ROWS = 1 << 20  # that ``count`` gathers before it sorts them
Persons = NDArray[np.uint64]


class PersonCounts:
    """Rows of each person so far; 16 bytes a person."""

    def __init__(self) -> None:
        """No rows."""
        self._known = np.empty(0, dtype=np.uint64)
        self._counts = np.empty(0, dtype=np.int64)
        self._held: list[Persons] = []

    @property
    def persons(self) -> int:
        """How many persons have rows."""
        return len(self._merged())

    @property
    def rows(self) -> int:
        """Rows of all persons."""
        return int(self._merged().sum())

    @property
    def largest(self) -> int:
        """The most rows of one person; 0 without rows."""
        return int(self._merged().max(initial=0))

    def beyond(self, most: int) -> tuple[int, int]:
        """How many persons have more than ``most`` rows, and how many rows are too many."""
        counts = self._merged()
        over = counts[counts > most] - most
        return len(over), int(over.sum())

    def since(self, earlier: PersonCounts, most: int) -> int:
        """How many persons have more rows than in ``earlier``, and had fewer than ``most``."""
        counts, before = self._merged(), earlier.of(self._known)
        return int(np.count_nonzero((counts > before) & (before < most)))

    def count(self, persons: Persons) -> None:
        """Count rows by the digests [n] of their persons; ``add`` also numbers them."""
        self._held.append(persons)
        if sum(map(len, self._held)) >= max(_HELD_ROWS, len(self._known)):
            self._merged()

    @classmethod
    def of_table(cls, table: TableReader, column: str) -> PersonCounts:
        """The rows of each person of an open table. Raises DataError."""
        found = cls()
        for file in table.files:
            for batch in file.columns([column]):
                found.count(persons_of(file.path, column, batch.column(column)))
        return found

    def seed(self, path: Path, column: str, form: TextForm, labels: Collection[str] = ()) -> None:
        """Count the rows of an earlier table, file or folder, by its column of persons; columns of
        ``labels`` are not looked at.

        Raises DataError.
        """
        for file in files_of(path):
            for batch in read_columns(file, [column], form, labels):
                self.count(persons_of(file, column, batch.column(column)))

    def add(self, persons: Persons) -> NDArray[np.int64]:
        """Count rows by the digests [n] of their persons.

        Returns [n] the number of each row among the rows of its person: 1, 2, 3, …, those of
        earlier calls included.
        """
        found, of_row, counts = np.unique(persons, return_inverse=True, return_counts=True)
        before = self.of(found)
        # The rows of one person one after the other, in their order: the k-th is number k.
        order = np.argsort(of_row, kind="stable")
        first = np.cumsum(counts) - counts
        numbers = np.empty(len(persons), dtype=np.int64)
        numbers[order] = np.arange(len(persons)) - np.repeat(first, counts) + 1
        self._put(found, before + counts)
        return numbers + before[of_row]

    def of(self, persons: Persons) -> NDArray[np.int64]:
        """[n] the rows so far of the persons with these digests [n]."""
        self._merged()
        if not len(self._known):
            return np.zeros(len(persons), dtype=np.int64)
        at = np.minimum(np.searchsorted(self._known, persons), len(self._known) - 1)
        return np.where(self._known[at] == persons, self._counts[at], 0)

    def reset_to(self, earlier: PersonCounts) -> PersonCounts:
        """New counts of the same persons, which start with ``earlier`` rows: ``add`` is then quick,
        because it meets no new person."""
        self._merged()
        found = PersonCounts()
        found._known, found._counts = self._known, earlier.of(self._known)
        return found

    def _merged(self) -> NDArray[np.int64]:
        """The counts, those that were held included."""
        held, self._held = self._held, []
        if held:
            found, counts = np.unique(np.concatenate(held), return_counts=True)
            self._put(found, self.of(found) + counts)
        return self._counts

    def _put(self, found: Persons, counts: NDArray[np.int64]) -> None:
        """The counts of some persons, each once and in order, from now on."""
        at = np.searchsorted(self._known, found)
        old = at < len(self._known)
        old[old] = self._known[at[old]] == found[old]
        self._counts[at[old]] = counts[old]
        if not old.all():
            self._known = np.insert(self._known, at[~old], found[~old])
            self._counts = np.insert(self._counts, at[~old], counts[~old])


def persons_of(path: Path | str, column: str, values: Any) -> Persons:
    """[n] digests of the persons of a batch (``person_names``).

    Raises DataError for a row without a person, and for a type that names nobody.
    """
    names = person_names(values, str(path), column)
    try:
        return read_ids(names).digests()
    except IdError as error:  # a name that is too long
        raise DataError(f"{path}: {column!r}: {error}") from None


Keep = Callable[[TableReader, pa.RecordBatch], NDArray[np.bool_]]


@dataclass
class PersonBound:
    """At most ``most`` rows of each person in a table, those in ``earlier`` tables included.

    ``measure`` reads the public columns before anything is drawn. Then ``within`` says of every
    batch, once and in order, which rows are within the bound. Without ``order`` the first rows of a
    person in the table are, with it those that are least in this public column (equal ones in the
    order of the table).

    Attributes:
        column: of persons.
        beyond: what happens to rows beyond it: ``measure`` refuses the table, or the caller gives
            them no label, or leaves them out.
        extra: rows of the table that are beyond the bound, after ``measure``.
    """

    column: str
    most: int
    _: KW_ONLY
    beyond: Beyond = "refuse"
    order: str | None = None
    earlier: PersonCounts = field(default_factory=PersonCounts)
    extra: int = field(default=0, init=False)
    _counts: PersonCounts | None = field(default=None, init=False)
    _running: PersonCounts | None = field(default=None, init=False)
    _late: NDArray[np.int64] | None = field(default=None, init=False)
    _place: int = field(default=0, init=False)

    def measure(
        self,
        table: TableReader,
        keep: Keep = lambda file, batch: np.ones(len(batch), dtype=bool),
        rewind: Callable[[], None] = lambda: None,
        names: Sequence[str] = (),
    ) -> None:
        """Count the rows of all persons, and find the rows beyond the bound if they have an order.

        Only rows that ``keep`` keeps count; it needs the columns ``names``, and ``rewind`` before
        each pass over the table.

        Raises DataError if a row names no person, if a column is missing, and with ``refuse`` if a
        row is beyond the bound. Raises InputError for standard input, which is read only once,
        unless rows beyond it stay without a label in the order of the table.
        """
        for name in (self.column, *([self.order] if self.order else [])):
            table.require_column(name)
        if is_stream(table.path):
            if self.beyond == "null" and self.order is None:
                return
            raise InputError(
                f"{table.path}: the rows of each person are counted before anything is drawn, "
                "which reads the table twice: give a file, or --beyond null"
            )

        def kept() -> Iterator[tuple[pa.RecordBatch, Persons]]:
            rewind()
            columns = list(dict.fromkeys(filter(None, (self.column, self.order, *names))))
            for file in table.files:
                for batch in file.columns(columns):
                    rows = chosen_rows(batch, keep(file, batch))
                    yield rows, self._of(file, rows)

        counts = self._counts = self.earlier.reset_to(self.earlier)
        for _, persons in kept():
            counts.count(persons)
        too_many = counts.beyond(self.most)[0]
        self.extra = counts.beyond(self.most)[1] - self.earlier.beyond(self.most)[1]
        if self.extra and self.beyond == "refuse":
            raise refused(table.path, self._in_words(counts, too_many))
        self._running = counts.reset_to(self.earlier)
        if self.order is not None and self.extra:
            self._late = self._latest(table, counts, kept())

    @property
    def persons(self) -> int:
        """How many persons have a label in the output; known when the table was read."""
        counts = self._counts or self._running
        return 0 if counts is None else counts.since(self.earlier, self.most)

    def within(self, table: TableReader, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which rows [n] of the next batch of a table or part are within the bound. DataError."""
        if self._late is not None:
            places = np.arange(self._place, self._place + len(batch))
            self._place += len(batch)
            return ~np.isin(places, self._late, assume_unique=True)
        if self._running is None:
            self._running = self.earlier.reset_to(self.earlier)
        return self._running.add(self._of(table, batch)) <= self.most

    def unlabelled(self, table: TableReader, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which rows [n] of the next batch get no label, as a ``Keep``. Raises DataError."""
        beyond = ~self.within(table, batch)
        if self._counts is None:  # standard input, of which nothing was known before
            self.extra += int(beyond.sum())
        if self.beyond == "refuse" and beyond.any():
            raise refused(table.path, "was changed while it was read: run this again")
        return beyond

    def _of(self, file: TableReader, batch: pa.RecordBatch) -> Persons:
        return persons_of(file.path, self.column, batch.column(self.column))

    def _latest(
        self,
        table: TableReader,
        counts: PersonCounts,
        rows_of: Iterator[tuple[pa.RecordBatch, Persons]],
    ) -> NDArray[np.int64]:
        """The places of the rows beyond the bound: the last of each person in the order."""
        assert self.order is not None
        place, found = 0, []
        for batch, persons in rows_of:
            beyond = counts.of(persons) > self.most
            rows, order = np.flatnonzero(beyond), chosen_rows(batch, beyond).column(self.order)
            places = pa.array(rows + place)
            found.append(pa.table([pa.array(persons[rows]), order, places], ["person", "by", "at"]))
            place += len(batch)
        ordered = self._sorted(table, found)
        numbers = counts.reset_to(self.earlier).add(ordered.column("person").to_numpy())
        late: NDArray[np.int64] = ordered.column("at").to_numpy()[numbers > self.most]
        return np.sort(late)

    def _sorted(self, table: TableReader, found: list[pa.Table]) -> pa.Table:
        """Rows of many persons in their order; text that is all numbers is ordered as numbers."""
        import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

        rows = pa.concat_tables(found, promote_options="permissive")
        by = rows.column("by")
        if pa.types.is_dictionary(by.type):
            by = by.cast(by.type.value_type)
        if by.null_count or (pa.types.is_string(by.type) and pc.any(pc.equal(by, "")).as_py()):
            raise refused(
                table.path,
                f"{self.order!r} is empty in a row of a person beyond the bound: rows without an "
                "order cannot be ordered",
            )
        if pa.types.is_string(by.type):
            with suppress(pa.ArrowInvalid):  # dates of ISO 8601, for example
                by = by.cast(pa.float64())
        rows = rows.set_column(1, "by", by)
        try:
            keys = [("person", "ascending"), ("by", "ascending"), ("at", "ascending")]
            return rows.take(pc.sort_indices(rows, sort_keys=keys))
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise refused(
                table.path, f"{self.order!r} has the type {by.type}, which has no order"
            ) from None

    def _in_words(self, counts: PersonCounts, too_many: int) -> str:
        whose = "" if not self.earlier.rows else ", with those of earlier tables"
        return (
            f"{too_many:,} of {counts.persons:,} persons in {self.column!r} have more than "
            f"{self.most:,} rows{whose} (the most: {counts.largest:,}): {self.extra:,} rows too "
            "many. Nothing was drawn. Aggregate to fewer rows a person first, compile for more "
            "labels a person, or give these rows no label with --beyond null, or remove them with "
            "--beyond drop --order-column COLUMN"
        )
