"""A randomizer as SQL: the integers of a verified file, and HMAC-SHA-256, in six dialects.

An artifact becomes a list of *steps*, each an expression over the columns before it: from the
label to its row, from id and row to secret bits, from both to the private label. A dialect says how
its database writes an expression, and wraps the steps in a function or a query.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from labeldp_compile.cli.command import command, say, tell, verified
from labeldp_compile.cli.options import (
    PATH,
    Whole,
    budget_option,
    overwrite_option,
    prepared_option,
    require_prepared_rows,
)
from labeldp_compile.errors import InputError
from labeldp_compile.export.sql.databases import (
    BigQuery,
    DuckDb,
    Postgres,
    Snowflake,
    Spark,
    Sqlite,
)
from labeldp_compile.export.sql.dialect import Dialect
from labeldp_compile.export.sql.script import ID_TYPES, plain_name, require_name, sql_of
from labeldp_compile.tabular.formats import key_of
from labeldp_compile.whole_file import require_output, write_text

if TYPE_CHECKING:
    from labeldp_verify.budget import Budget


DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (DuckDb(), Postgres(), Sqlite(), BigQuery(), Snowflake(), Spark())
}
NOT_RUN = ("bigquery", "snowflake")  # which the tests can only parse


@command(
    "sql",
    "labeldp export --to sql build/visits.onnx --dialect duckdb -o visits.sql",
    "labeldp export --to sql build/visits.onnx --dialect postgres --id-type text -o visits.sql",
)
@click.argument("file", type=PATH)
@click.option("--dialect", type=click.Choice([*DIALECTS]), required=True, help="The database.")
@click.option(
    "-o", "--output", type=PATH, required=True, metavar="OUT.sql", help="The file to write (.sql)."
)
@click.option(
    "--id-type",
    type=click.Choice([*ID_TYPES]),
    default="integer",
    help="The type of the ids (default: integer).",
)
@click.option(
    "--context",
    help="A name for this use of the label, as in labeldp randomize (default: its column).",
)
@click.option(
    "--version",
    type=Whole(0, 2**64 - 1),
    default=0,
    help="The version of the labels (default: 0). Raise it when labels change.",
)
@click.option(
    "--name", metavar="NAME", help="The name of the function (default: randomize_ and FILE's name)."
)
@prepared_option
@overwrite_option
@budget_option
def target(
    file: Path,
    dialect: str,
    output: Path,
    id_type: str,
    context: str | None,
    version: int,
    name: str | None,
    prepared: bool,
    overwrite: bool,
    budget: Budget,
) -> None:
    """Write the randomizer of the artifact FILE as a function or a query in SQL.

    It takes a label, its id, and a key that is never in the file. Its random bits are
    HMAC-SHA-256 of these, so that each run gives the same private labels. The Python reader gives
    the same ones with construction="hmac-sha256".

    FILE is verified first. Exit code 1: it does not verify. Exit code 2: it cannot be read, or SQL
    cannot do what it does.
    """
    require_output(output, file, endings=(".sql",), overwrite=overwrite)
    if name is not None:
        require_name(name)
    from labeldp_verify.opening import open_artifact  # noqa: PLC0415  # onnx

    with verified(file, ", and no SQL is written"):
        artifact = open_artifact(file, budget)
    require_prepared_rows(artifact.certificate, file, prepared=prepared)
    columns = artifact.certificate.label_columns
    context = _name(key_of(columns) if context is None else context)
    name = name or plain_name(artifact.certificate.name)
    try:
        text = sql_of(artifact, DIALECTS[dialect], name, context, id_type, version)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    write_text(output, text)
    say(str(output))
    if dialect in NOT_RUN:
        tell(
            f"{output}: labeldp's tests parse SQL for {dialect}, but do not run it: compare some "
            "private labels with those of the Python reader"
        )
    tell(
        f"{output}: anyone who has the key and may run this can find the label behind a "
        "private label. Recipients of private labels must not have both"
    )


def _name(context: str) -> str:
    """A text that is not empty and has a UTF-8, or InputError."""
    try:
        empty = not context.encode()
    except UnicodeEncodeError:
        empty = True
    if empty:
        raise InputError("--context: expected the name of a column, as a text")
    return context


__all__ = ["target"]
