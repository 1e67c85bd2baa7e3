"""Apache Beam: randomize a field of rows that are dicts, with a key.

A runner may compute a bundle twice, and keep either result. So there is no form without a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from labeldp_runtime.artifact_file import read_bytes
from labeldp_runtime.columns import read_ids
from labeldp_runtime.engines.layout import (
    KeyedTask,
    KeySource,
    LabelNames,
    Layout,
    Names,
    PrivateNames,
    Shipped,
    default_context,
    key_on_driver,
    refuse_secret,
)
from labeldp_runtime.errors import GroupError, IdError, LabelError, MissingExtraError
from labeldp_runtime.ids import ByteIds, repeated_id
from labeldp_runtime.policy import Policy
from labeldp_runtime.randomizer import Randomizer

try:
    import apache_beam as beam
    from apache_beam.internal.cloudpickle import cloudpickle
except ImportError as error:
    raise MissingExtraError(
        "labeldp_runtime.engines.beam needs Beam: pip install apache-beam"
    ) from error

BATCH_ROWS = 10_000
Row = dict[str, Any]


class Randomize(beam.PTransform):  # type: ignore[misc]  # Beam declares no types
    """Rows, each a dict, with private labels in ``column``, or added as ``add_as``.

    The private field is an int, a float or a str, never None, and comes after the others. A label
    that is null, outside the domain, or not in its row at all follows the out-of-domain rule, and
    makes no error.

    Args:
        column: the label's field. For a label of several columns: its ``label_columns``, or
            which field each of them is, where it has another name:
            ``{"value": "spent", "converted": "converted"}``. Each private label takes the place of
            its label; the number of a set of combinations that of them all, as ``private_label``.
        artifact: path of the file where the pipeline is made; its bytes travel with the plan.
        id_column: the field that names each label: integers, text, bytes or UUIDs.
        key: a key from a file that every worker finds under the same path (mode 0600), or a
            function without arguments that fetches the key: once where the pipeline is made, and
            once in each worker process. The key itself never travels.
        context: what is randomized; by default the name of the private field. Labels of several
            columns have no default.
        version: of the labels; labels that changed need a new one, and spend ε again.
        group_columns: of an artifact with tables by group, which field gives each of those that its
            certificate names, where it has another name: ``{"age": "age_in_2024"}``.
        add_as: name of a field to add, which KEEPS the true label beside it; of several the name of
            each: ``{"value": "private_value", "converted": "private_converted"}``.
        require: what the artifact must be; checked where the pipeline is made. Workers accept only
            the same bytes.
        check_duplicates: look for repeated ids in all rows before the first label is drawn (one
            shuffle of the ids). Without it, only those inside one batch are found. Unbounded
            collections need False.
        prepared: the rows meet what the artifact demands of them together: see
            ``Randomizer.load``.

    Raises a RuntimeArtifactError for an artifact that cannot be used, LabelError, GroupError or
    IdError for names that cannot, and KeyFileError for a key that cannot travel: all where the
    pipeline is made. Where it runs: IdError, DuplicateIdError or GroupError, which fail it.
    """

    def __init__(
        self,
        column: LabelNames,
        artifact: str | Path,
        *,
        id_column: str,
        key: KeySource,
        context: str | None = None,
        version: int = 0,
        group_columns: Mapping[str, str] | None = None,
        add_as: PrivateNames | None = None,
        require: Policy | None = None,
        check_duplicates: bool = True,
        prepared: bool = False,
    ) -> None:
        """Read the artifact and the key, and check the names."""
        super().__init__()
        path = Path(artifact)
        data = read_bytes(path)
        context = default_context(column, add_as) if context is None else context
        secret = key_on_driver(key)
        randomizer = Randomizer(
            data, str(path), key=secret, context=context, require=require, prepared=prepared
        )
        shipped = Shipped.of(data, KeyedTask(key, secret.fingerprint, context))
        self._randomize = _Draw(
            shipped, _fields(randomizer, Names(column, id_column, version, group_columns, add_as))
        )
        self._ids, self._check = id_column, check_duplicates
        refuse_secret(cloudpickle.dumps(self._randomize), secret)

    def expand(self, rows: Any) -> Any:
        """A PCollection of dicts to another, of as many, each with its timestamp and window."""
        if not self._check:
            return rows | "Randomize" >> beam.ParDo(self._randomize)
        if not rows.is_bounded:
            raise IdError(
                "the ids of an unbounded collection cannot be checked in advance: make sure "
                "that no id is ever null or repeated, and give check_duplicates=False"
            )
        repeated = (
            rows
            | "Ids" >> beam.Map(_id_of, self._ids)
            | "All" >> beam.WindowInto(beam.window.GlobalWindows())
            | "Count" >> beam.combiners.Count.PerElement()
            | "Refuse" >> beam.FlatMap(_refuse_repeated, self._ids)
        )
        # It has no elements, and is waited for.
        return rows | "Randomize" >> beam.ParDo(
            self._randomize, checked=beam.pvalue.AsIter(repeated)
        )


class _Draw(beam.DoFn):  # type: ignore[misc]
    """Rows in, rows out; many at a time, since a call of the graph has a cost of its own."""

    def __init__(self, shipped: Shipped, fields: tuple[list[str], Layout]) -> None:
        self._shipped, (self._names, self._layout) = shipped, fields
        self._rows: list[Any] = []

    def start_bundle(self) -> None:
        """Forget what a bundle that failed has left."""
        self._rows = []

    def process(
        self,
        row: Row,
        timestamp: Any = beam.DoFn.TimestampParam,
        window: Any = beam.DoFn.WindowParam,
        checked: Iterable[Any] = (),
    ) -> Iterator[Any]:
        """Keep a row; ``checked`` is there when all ids have been looked at."""
        del checked
        self._rows.append((row, timestamp, window))
        if len(self._rows) == BATCH_ROWS:
            yield from self._answers()

    def finish_bundle(self) -> Iterator[Any]:
        """The rest of them."""
        yield from self._answers()

    def _answers(self) -> Iterator[Any]:
        kept, self._rows = self._rows, []
        if kept:
            rows = self._private([row for row, _, _ in kept])
            for row, (_, timestamp, window) in zip(rows, kept, strict=True):
                yield beam.utils.windowed_value.WindowedValue(row, timestamp, (window,))

    def _private(self, rows: list[Row]) -> Iterator[Row]:
        layout, names = self._layout, self._names
        for name in (names[index] for _, index in layout.groups):
            if not all(name in row for row in rows):
                raise GroupError(f"a row has no field {name!r}, from which its group comes")
        columns = {name: [row.get(name) for row in rows] for name in names}
        made = layout.private(self._shipped.open(), lambda index: columns[names[index]])
        private = [column.tolist() for column in made]
        new = [(name, private[index]) for name, own, index in layout.columns if own]
        kept = {name for name, own, _ in layout.columns if not own}
        gone = [name for name in names if name not in kept]
        for row, *labels in zip(rows, *(column for _, column in new), strict=True):
            out = dict(row)
            for name in gone:
                out.pop(name, None)  # and a private label comes last, whether it was there or not
            for (name, _), label in zip(new, labels, strict=True):
                if name in out:
                    raise LabelError(f"a row has a field {name!r} already")
                out[name] = label
            yield out


def _id_of(row: Row, column: str) -> str:
    """A text that two ids share only if they are the same. Raises IdError."""
    ids = read_ids([row.get(column)])
    return f"{ids.kind}:{ids.value(0).hex()}" if isinstance(ids, ByteIds) else str(ids.value(0))


def _refuse_repeated(found: tuple[str, int], column: str) -> Iterator[None]:
    if found[1] > 1:
        raise repeated_id(f"{found[1]:,} rows have the same id", column)
    yield from ()


def _fields(randomizer: Randomizer, names: Names) -> tuple[list[str], Layout]:
    """The fields of a row that are read, and the layout of a table of these."""
    labels = names.column
    given = (
        [labels]
        if isinstance(labels, str)
        else list(labels.values() if isinstance(labels, Mapping) else labels)
    )
    own = names.group_columns or {}
    groups = [own.get(name, name) for name in randomizer.group_columns]
    fields = list(dict.fromkeys([*given, *groups, str(names.ids)]))

    def find(name: str, error: type[ValueError]) -> int:
        if name not in fields:
            raise error(f"a row has no field {name!r}")
        return fields.index(name)

    def refuse_taken(others: Any, name: str) -> None:
        if name in others:
            raise LabelError(f"a row has a field {name!r} already")

    return fields, names.layout(randomizer, fields, find, refuse_taken)
