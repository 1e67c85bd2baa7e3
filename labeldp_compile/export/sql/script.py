"""The whole file: what it is, in comments, and one statement."""

import math
import re
from collections.abc import Sequence

from labeldp_runtime.hmac_words import message_start
from labeldp_runtime.row_rules import row_rules
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import JointDomain, RealDomain, columns_of
from labeldp_verify.printable import one_line
from labeldp_verify.rounded import at_most

from labeldp_compile.errors import InputError
from labeldp_compile.export.sql.dialect import KEY_BYTES, Argument, Dialect, Routine, Step, Type
from labeldp_compile.export.sql.draws import Values, count_integers, draw
from labeldp_compile.export.sql.labels import (
    group_columns,
    label_columns,
    read_groups,
    read_label,
)
from labeldp_compile.export.sql.trees import by_number

ID_TYPES: dict[str, Type] = {"integer": "integer", "text": "text", "binary": "bytes"}
MAX_INTEGERS = 50_000
MAX_NAME = 50  # PostgreSQL cuts names behind 63 bytes
_FAILURE = f"labeldp: an id is NULL, or the key is not {KEY_BYTES} bytes long"


def sql_of(
    artifact: Artifact, dialect: Dialect, name: str, context: str, id_type: str, version: int
) -> str:
    """The text of the file for a verified artifact. Raises InputError if SQL cannot do it."""
    _require_possible(artifact, dialect)
    labels, groups = label_columns(artifact.label), group_columns(artifact.groups)
    own_id = Argument("id", ID_TYPES[id_type])
    steps = [*read_label(dialect, artifact.label), *read_groups(dialect, artifact.groups)]
    steps += _secret_bits(dialect, artifact, own_id, context, version)
    drawn, values = draw(dialect, artifact)
    arguments = [*labels, own_id, *groups]
    outputs = _outputs(dialect, artifact, values)
    routine = Routine(
        name, arguments, dialect.pads(), [*steps, *drawn], "digest", outputs, _FAILURE
    )
    comments = [
        f"-- {one_line(line)}" for line in _head(artifact, dialect, routine, context, version)
    ]
    return "\n".join([*comments, "", dialect.routine(routine), ""])


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
            "which does not show the bits of a float64: compile integer labels, or rounding: "
            "nearest with a mechanism that allows it, or use labeldp randomize"
        )
    if domain.keeps_nulls:
        raise InputError(
            "labels whose nulls stay null (nulls: public) cannot be randomized in SQL, where a "
            "null argument follows the rule for other values: use labeldp randomize"
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
    parts = columns_of(artifact.label)
    listed = [value for part in parts for value in getattr(part, "values", ())]
    return [value for value in listed if isinstance(value, str)]


def _secret_bits(
    d: Dialect, artifact: Artifact, own_id: Argument, context: str, version: int
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
    """What the file is and how it is used, as comments; each string of the artifact is one line."""
    claims = artifact.certificate
    names = dict(zip(_names(routine, "label"), claims.label_columns, strict=True))
    groups = [column.name for column in artifact.groups.columns]
    names |= dict(zip(_names(routine, "group"), groups, strict=True))
    return [
        f"{claims.name}: ε ≤ {at_most(claims.privacy.epsilon_label)} of a label is spent for each",
        "context, id, version and key, however often this runs.",
        f"artifact: SHA-256 {artifact.sha256}",
        f"context: {context!r}, version: {version}",
        *(f"{argument}: {column!r}" for argument, column in names.items()),
        *dialect.usage(routine),
        *(f"ε holds only if {rule}" for rule in row_rules(claims.to_json())),
        "An id names one label: first look for ids that come twice.",
        "Anyone who has the key and may run this can find the label behind a private label.",
        "Recipients of private labels must not have both.",
        *dialect.rights(routine),
    ]


def _names(routine: Routine, start: str) -> list[str]:
    return [column.name for column in routine.arguments if column.name.startswith(start)]
