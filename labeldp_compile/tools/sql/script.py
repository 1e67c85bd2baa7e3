"""The whole file: what it is, in comments, and one statement."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from labeldp_runtime.hmac_words import message_start
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import JointDomain, RealDomain
from labeldp_verify.printable import one_line

from labeldp_compile.errors import InputError
from labeldp_compile.tools.sql.dialect import KEY_BYTES, Column, Dialect, Routine, Step, Type
from labeldp_compile.tools.sql.draws import Values, count_integers, draw
from labeldp_compile.tools.sql.functions import BigQuery, DuckDb, Postgres
from labeldp_compile.tools.sql.labels import (
    group_columns,
    label_columns,
    read_groups,
    read_label,
)
from labeldp_compile.tools.sql.queries import Snowflake, Spark, Sqlite
from labeldp_compile.tools.sql.trees import by_number

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (DuckDb(), Postgres(), Sqlite(), BigQuery(), Snowflake(), Spark())
}
ID_TYPES: dict[str, Type] = {"integer": "integer", "text": "text", "binary": "bytes"}
MAX_INTEGERS = 50_000
MAX_NAME = 50  # PostgreSQL cuts names behind 63 bytes
_FAILURE = f"labeldp: an id is NULL, or the key has not {KEY_BYTES} bytes"


def sql_of(
    artifact: Artifact, dialect: Dialect, name: str, context: str, id_type: str, version: int
) -> str:
    """The text of the file for a verified artifact. Raises InputError if SQL cannot do it."""
    _require_possible(artifact, dialect)
    labels, groups = label_columns(artifact.label), group_columns(artifact.groups)
    own_id = Column("id", ID_TYPES[id_type])
    steps = [*read_label(dialect, artifact.label), *read_groups(dialect, artifact.groups)]
    steps += _secret_bits(dialect, artifact, own_id, context, version)
    drawn, values = draw(dialect, artifact)
    arguments = [*labels, own_id, *groups]
    outputs = _outputs(dialect, artifact, values)
    routine = Routine(
        name, arguments, dialect.pads(), [*steps, *drawn], "digest", outputs, _FAILURE
    )
    return "\n".join(
        [*_head(artifact, dialect, routine, context, version), dialect.routine(routine), ""]
    ) + _rights(dialect, routine)


def plain_name(name: str) -> str:
    """The name of a function for an artifact of this name."""
    return "randomize_" + re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()[:30]


def require_name(name: str) -> None:
    """Raise InputError unless every database takes this name as it is."""
    if not re.fullmatch(rf"[a-z][a-z0-9_]{{0,{MAX_NAME - 1}}}", name, re.ASCII):
        raise InputError(
            f"--name: expected up to {MAX_NAME} lower-case letters, digits and _, and a letter "
            "first"
        )


def _require_possible(artifact: Artifact, dialect: Dialect) -> None:
    domain = artifact.label
    if isinstance(domain, RealDomain) and domain.rounding == "unbiased":
        raise InputError(
            "labels that are rounded at random (rounding: unbiased) cannot be randomized in SQL, "
            "which does not show the bits of a float64"
        )
    count = count_integers(artifact)
    if count > MAX_INTEGERS:
        raise InputError(
            f"the artifact has {count:,} integers, and a statement of SQL holds at most "
            f"{MAX_INTEGERS:,}"
        )
    if not dialect.has_nul and any("\0" in text for text in _texts(artifact)):
        raise InputError(f"a category holds the character NUL, which no text of {dialect.name} has")


def _texts(artifact: Artifact) -> list[str]:
    domain = artifact.label
    parts = domain.parts if isinstance(domain, JointDomain) else (domain,)
    listed = [value for part in parts for value in getattr(part, "values", ())]
    return [value for value in listed if isinstance(value, str)]


def _secret_bits(
    d: Dialect, artifact: Artifact, own_id: Column, context: str, version: int
) -> list[Step]:
    """The steps to ``digest``, by the message that ``labeldp_runtime.hmac_words`` describes."""
    start = message_start(context, artifact.certificate.digests.tables, version, 0)
    given = d.argument(own_id)
    kind, name = {
        "integer": (b"i", d.decimal(given)),
        "text": (b"t", d.utf8(given)),
        "bytes": (b"b", given),
    }[own_id.type]
    table = [d.decimal("table_number")] if artifact.groups.columns else []
    parts = [d.data(start), d.decimal("canonical"), d.data(b":"), *table]
    message = d.join(*parts, d.data(b":" + kind + b":"), name)
    return [Step("message", "bytes", message), *d.hmac("message")]


def _outputs(d: Dialect, artifact: Artifact, values: Values | None) -> list[Step]:
    domain = artifact.label
    if values is None:
        return [Step("private_label", "number", "answer")]
    if isinstance(domain, JointDomain) and not artifact.answers_with_sets:
        columns = zip(*(domain.combination(int(value)) for value in values), strict=True)
        return [
            _output(d, f"private_label_{number}", column)
            for number, column in enumerate(columns, 1)
        ]
    return [_output(d, "private_label", values)]


def _output(d: Dialect, name: str, values: Sequence[float | str | int]) -> Step:
    first = values[0]
    if isinstance(first, str):
        return Step(name, "text", by_number("answer", [d.text(str(v)) for v in values]))
    if isinstance(first, float):
        assert all(map(math.isfinite, map(float, values)))
        return Step(name, "number", by_number("answer", [d.number(float(v)) for v in values]))
    return Step(name, "integer", by_number("answer", [d.integer(int(v)) for v in values]))


def _head(
    artifact: Artifact, dialect: Dialect, routine: Routine, context: str, version: int
) -> list[str]:
    claims = artifact.certificate
    arguments = ", ".join(column.name for column in routine.arguments)
    columns = [c.name for c in artifact.groups.columns]
    meant = [
        f"label: {', '.join(map(repr, claims.label_columns))}",
        *([f"group: {', '.join(map(repr, columns))}"] if columns else []),
    ]
    return [
        f"-- {one_line(claims.name)}: each call spends ε ≤ {claims.privacy.epsilon_label} of a label,",
        "-- once for each id, context, version and key, however often it is repeated.",
        f"-- SHA-256 of the artifact: {artifact.sha256}",
        f"-- context {one_line(repr(context))}, version {version}",
        *(f"-- {one_line(line)}" for line in meant),
        f"-- {dialect.takes.format(name=routine.name, arguments=arguments)}",
        "-- An id names one label. First look for ids that come twice, and for NULL.",
        "-- The key undoes the noise. Who may run this with the key may try every label of an id:",
        "-- recipients of private labels must not be able to.",
        "",
    ]


def _rights(dialect: Dialect, routine: Routine) -> str:
    signature = dialect.signature(routine) if isinstance(dialect, Postgres) else ""
    return "".join(
        f"{line.format(name=routine.name, signature=signature)}\n" for line in dialect.rights
    )
