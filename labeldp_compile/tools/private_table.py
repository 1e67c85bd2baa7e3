"""Tables with private labels of artifacts: opened, and refused if another artifact made them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import IntegerDomain, columns_of

from labeldp_compile.errors import InputError, refused
from labeldp_compile.tabular.artifact_columns import renamed
from labeldp_compile.tabular.formats import files_of
from labeldp_compile.tabular.header import read_schema
from labeldp_compile.tabular.parts_folder import listed_in
from labeldp_compile.tabular.placement import Placement
from labeldp_compile.tabular.provenance import Provenance, is_noted, manifest_note, read_note
from labeldp_compile.tabular.reader import TableReader, open_table
from labeldp_compile.text_form import TextForm


def open_private(
    decoded: Artifact,
    artifact: Path,
    table: Path,
    column: str | Sequence[str] | None,
    group_columns: Mapping[str, str] | None,
    form: TextForm,
    only: Sequence[Path] | None = None,
) -> tuple[TableReader, bool]:
    """The table, whose label columns are the private ones, and whether it notes that they are.

    ``artifact`` is a path for messages.

    ``column`` and ``group_columns`` are as of ``estimate_tables``; ``only`` as of ``open_table``.
    Raises InputError (DataError).
    """
    labels, domain = decoded.certificate.label_columns, decoded.label
    if decoded.answers_with_sets:  # by their numbers
        last = decoded.tables[0].outputs - 1
        domain = IntegerDomain(0, last, keeps_nulls=decoded.label.keeps_nulls)
    columns = _private_columns(decoded, column)
    if len(columns) != len(columns_of(domain)):
        raise InputError(
            f"{artifact}: its private labels have {len(columns_of(domain))} columns, but --column "
            f"names {len(columns)}"
        )
    reader = open_table(
        table,
        columns,
        domain,
        all_columns=True,
        group_columns=renamed(
            decoded.groups.columns,
            group_columns or {},
            [name for name in labels if name not in columns],
        ),
        unread_labels=labels,
        form=form,
        only=only,
    )
    files = [(file.path, file.metadata) for file in reader.files]
    return reader, is_noted(table, files, columns, decoded.sha256, artifact)


def _private_columns(decoded: Artifact, column: str | Sequence[str] | None) -> list[str]:
    """The columns that are given, or those that labeldp randomize writes."""
    columns = [column] if isinstance(column, str) else list(column or ())
    if columns:
        return columns
    labels, one_answer = decoded.certificate.label_columns, decoded.answers_with_sets
    return list(Placement.of(labels, None, one_answer=one_answer).names)


def open_all(
    decoded: Sequence[Artifact],
    pairs: Sequence[tuple[Path, Path]],
    column: str | Sequence[str] | None,
    group_columns: Mapping[str, str] | None,
    form: TextForm,
) -> list[TableReader]:
    """The table of each pair (artifact, table); no row belongs to two of them.

    A table that is given for several artifacts is divided: each artifact has the parts that note
    it. Raises InputError (DataError), also if the artifacts have different labels.
    """
    first = decoded[0]
    for one, (path, _) in zip(decoded, pairs, strict=True):
        stated = one.certificate.label_columns
        if (one.label, stated) != (first.label, first.certificate.label_columns):
            raise InputError(
                f"{path}: cannot be combined with {pairs[0][0]}: their labels have different "
                "columns, ranges, categories or rules for missing values"
            )
    grouped = [bool(one.groups.columns) for one in decoded]
    readers, seen = [], set()
    for i, (one, (artifact, table)) in enumerate(zip(decoded, pairs, strict=True)):
        shared = sum(_is_same(table, other) for _, other in pairs) > 1
        only = _parts_that_note(one, artifact, table, column, decoded, form) if shared else None
        names = group_columns if grouped[i] or not any(grouped) else None
        reader, _ = open_private(one, artifact, table, column, names, form, only)
        for file in reader.files:
            found = file.path.stat()
            if (found.st_dev, found.st_ino) in seen:
                raise refused(file.path, "is given twice: its rows would count twice")
            seen.add((found.st_dev, found.st_ino))
        readers.append(reader)
    return readers


def _is_same(table: Path, other: Path) -> bool:
    return table == other or (table.exists() and other.exists() and table.samefile(other))


def _parts_that_note(
    decoded: Artifact,
    artifact: Path,
    table: Path,
    column: str | Sequence[str] | None,
    every: Sequence[Artifact],
    form: TextForm,
) -> list[Path]:
    """The parts whose private columns an artifact made, where others made the other parts."""
    mine, listed = [], listed_in(table)
    for part in files_of(table):
        note = read_note(part, read_schema(part, form)[0].metadata)
        note = note or manifest_note(listed.get(part.name))
        if not any(_notes(note, one, column) for one in every):
            raise refused(
                part,
                "does not note that one of these artifacts made its private labels: give each "
                "artifact a table of its own",
            )
        if _notes(note, decoded, column):
            mine.append(part)
    if not mine:
        raise refused(table, f"notes no private labels of {artifact}")
    return mine


def _notes(
    note: Mapping[str, Provenance], decoded: Artifact, column: str | Sequence[str] | None
) -> bool:
    """Whether a note says that an artifact made its private columns."""
    names = _private_columns(decoded, column)
    return all(name in note and note[name].artifact_sha256 == decoded.sha256 for name in names)


def require_public(reader: TableReader, decoded: Artifact, artifact: Path, name: str) -> None:
    """Raise InputError unless a column exists and is not the true label."""
    reader.require_column(name)
    if name in decoded.certificate.label_columns and name not in (
        *reader.label_columns,
        *reader.noted_columns(),
    ):
        raise InputError(
            f"{name!r} is the label of {artifact}: grouping by true labels would reveal their "
            "counts; use a public column"
        )
