"""A table with private labels of an artifact: opened, and refused if another artifact made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import IntegerDomain, columns_of

from labeldp_compile.errors import InputError
from labeldp_compile.tabular.artifact_columns import renamed
from labeldp_compile.tabular.placement import Placement
from labeldp_compile.tabular.reader import TableReader, open_table
from labeldp_compile.text_form import TextForm


def open_private(
    decoded: Artifact,
    artifact: Path,
    table: Path,
    column: str | Sequence[str] | None,
    group_columns: Mapping[str, str] | None,
    form: TextForm,
) -> TableReader:
    """The table, whose label columns are the private ones; ``artifact`` is a path for messages.

    ``column`` and ``group_columns`` are as of ``estimate_table``. Raises InputError (DataError).
    """
    labels, domain = decoded.certificate.label_columns, decoded.label
    if decoded.answers_with_sets:  # by their numbers
        domain = IntegerDomain(0, decoded.tables[0].outputs - 1)
    columns = [column] if isinstance(column, str) else list(column or ())
    if not columns:  # those that labeldp randomize writes
        columns = list(Placement.of(labels, None, one_answer=decoded.answers_with_sets).names)
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
        form=form,
    )
    reader.require_artifact(decoded.sha256, artifact)
    return reader


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
