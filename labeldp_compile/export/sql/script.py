"""The whole file: what it is, in comments, and one statement."""

import math
import re
from collections.abc import Sequence
from typing import Any

from labeldp_runtime.artifact_file import row_rules
from labeldp_runtime.keyed import message_start
from labeldp_verify.artifact import Artifact
from labeldp_verify.forms import (
    AdditiveRandomizer,
    CategoricalDomain,
    Domain,
    GridDomain,
    GroupColumn,
    GroupedWindows,
    Groups,
    IntegerDomain,
    Integers,
    JointDomain,
    Part,
    RealDomain,
    TableRandomizer,
    WindowRandomizer,
    columns_of,
    missing_label,
)
from labeldp_verify.graph import alias_entries, column_bits
from labeldp_verify.printable import at_most, one_line

from labeldp_compile.errors import InputError
from labeldp_compile.export.sql.dialect import (
    KEY_BYTES,
    Argument,
    Dialect,
    Routine,
    Step,
    Type,
    by_number,
    interval,
    listed,
)


def label_columns(domain: Domain) -> list[Argument]:
    """The arguments of the label."""
    return _named("label", [_type(part) for part in columns_of(domain)])


def group_columns(groups: Groups) -> list[Argument]:
    """The arguments of the group."""
    types: list[Type] = [
        "number" if column.values is None else "text" if column.is_text else "integer"
        for column in groups.columns
    ]
    return _named("group", types, always=True)


def read_label(d: Dialect, domain: Domain) -> list[Step]:
    """The steps to ``row_index`` and ``canonical``."""
    steps, places = [], []
    parts = columns_of(domain)
    for number, (column, part) in enumerate(zip(label_columns(domain), parts, strict=True), 1):
        steps += _place(d, column, part, number)
        places.append(f"place_{number} * {domain.strides[number - 1]}")
    row = " + ".join(places) if len(parts) > 1 else "place_1"
    # Of one column of integers the canonical label is the label itself, not its place.
    is_own_label = isinstance(parts[0], IntegerDomain) and len(parts) == 1
    canonical = "inside_1" if is_own_label else "row_index"
    return [*steps, Step("row_index", "integer", row), Step("canonical", "integer", canonical)]


def read_groups(d: Dialect, groups: Groups) -> list[Step]:
    """The step to ``table_number``."""
    if not groups.columns:
        return [Step("table_number", "integer", "0")]
    steps, cells = [], []
    for number, (column, stated, stride) in enumerate(
        zip(group_columns(groups), groups.columns, groups.strides, strict=True), 1
    ):
        expression = _band_or_value(d, f"read_group_{number}", stated)
        steps.append(Step(f"read_group_{number}", column.type, d.argument(column)))
        steps.append(Step(f"group_place_{number}", "integer", expression))
        cells.append(f"group_place_{number} * {stride}")
    steps.append(Step("cell", "integer", " + ".join(cells)))
    tables = by_number("cell", [str(table) for table in groups.table_of_cell])
    whole = f"CASE WHEN cell IS NULL THEN {groups.own_tables} ELSE {tables} END"
    return [*steps, Step("table_number", "integer", whole)]


def _named(name: str, types: list[Type], *, always: bool = False) -> list[Argument]:
    if len(types) == 1 and not always:
        return [Argument(name, types[0])]
    return [Argument(f"{name}_{number}", kind) for number, kind in enumerate(types, 1)]


def _type(part: Part) -> Type:
    if isinstance(part, RealDomain):
        return "number"
    return "text" if isinstance(part, CategoricalDomain) and part.is_text else "integer"


def _place(d: Dialect, column: Argument, part: Part, number: int) -> list[Step]:
    given, inside, place = f"read_{number}", f"inside_{number}", f"place_{number}"
    first = Step(given, column.type, d.argument(column, rounded=True))
    if isinstance(part, CategoricalDomain):
        default = str(part.values.index(part.default))
        places = {value: str(row) for row, value in enumerate(part.values)}
        row_of_label = _listed(d, given, places, default)
        if part.null is not None:
            row = part.values.index(part.null)
            row_of_label = f"CASE WHEN {given} IS NULL THEN {row} ELSE {row_of_label} END"
        return [first, Step(place, "integer", row_of_label)]
    low, high, other = (_number(d, part, y) for y in (part.min, part.max, missing_label(part)))
    missing = d.is_missing(given) if isinstance(part, RealDomain) else f"{given} IS NULL"
    read = [first, Step(inside, column.type, _inside(d, given, missing, low, high, other, part))]
    if isinstance(part, IntegerDomain):
        return [*read, Step(place, "integer", f"{inside} - {low}")]
    if isinstance(part, GridDomain):
        bounds = [d.number(bound) for bound in part.bounds[1:]]
        row_of_label = interval(inside, bounds, [str(row) for row in range(part.size)])
        return [*read, Step(place, "integer", row_of_label)]
    steps, last = f"steps_{number}", d.number(float(part.points - 1))
    scaled = f"({inside} - {low}) * {d.number(part.points_per_unit)}"
    least = f"CASE WHEN {steps} > {last} THEN {last} ELSE {steps} END"
    nearest = Step(place, "integer", d.floor(f"{least} + {d.number(0.5)}"))
    return [*read, Step(steps, "number", scaled), nearest]


def _inside(
    d: Dialect, given: str, missing: str, low: str, high: str, other: str, part: Part
) -> str:
    if part.null is not None:
        beyond = low if part.default is None else _number(d, part, part.default)
        above = high if part.default is None else beyond
        return (
            f"CASE WHEN {missing} THEN {other} WHEN {given} < {low} THEN {beyond} "
            f"WHEN {given} > {high} THEN {above} ELSE {given} END"
        )
    if part.default is not None:
        outside = f"{missing} OR {given} < {low} OR {given} > {high}"
        return f"CASE WHEN {outside} THEN {other} ELSE {given} END"
    return (
        f"CASE WHEN {missing} OR {given} < {low} THEN {low} "
        f"WHEN {given} > {high} THEN {high} ELSE {given} END"
    )


def _number(d: Dialect, part: Part, label: Any) -> str:
    return d.number(float(label)) if isinstance(part, RealDomain) else d.integer(int(label))


def _band_or_value(d: Dialect, given: str, column: GroupColumn) -> str:
    """The place of a public value; NULL if it is in none."""
    if column.values is not None:
        places = {value: str(place) for place, value in enumerate(column.values)}
        return _listed(d, given, places, "NULL")
    edges = [d.number(edge) for edge in column.edges]
    band = interval(given, edges, [str(place) for place in range(column.size)])
    return f"CASE WHEN {d.is_missing(given)} THEN NULL ELSE {band} END"


def _listed(d: Dialect, given: str, places: dict[str | int, str], default: str) -> str:
    """The place of a text, compared byte by byte under any collation, or of a whole number."""
    texts = {key.encode(): place for key, place in places.items() if isinstance(key, str)}
    if texts:
        keys = {d.data(key): texts[key] for key in sorted(texts)}
        return listed(d.utf8(given), keys, default)
    numbers = {key: place for key, place in places.items() if isinstance(key, int)}
    return listed(given, {d.integer(key): numbers[key] for key in sorted(numbers)}, default)


Values = Sequence[float | str | int]
_WORD = 8  # bytes


def count_integers(integers: Integers) -> int:
    """How many integers the SQL of an artifact would hold, without making it."""
    first = integers.tables[0]
    if isinstance(first, AdditiveRandomizer):
        return 4 * (len(first.blocks) + first.period)
    if isinstance(first, TableRandomizer):
        return len(first.counts) << column_bits(first.outputs)
    tables = [table for table in integers.tables if isinstance(table, WindowRandomizer)]
    return sum(len(t.base) + len(t.extra) + len(t.offsets) for t in tables)


def draw(dialect: Dialect, integers: Integers) -> tuple[list[Step], Values | None]:
    """The steps from ``row_index``, ``table_number`` and ``digest`` to ``answer``, and what the
    answers stand for: without values the answer is the private label itself."""
    first = integers.tables[0]
    if isinstance(first, AdditiveRandomizer):
        return _noisy(dialect, first), None
    if isinstance(first, TableRandomizer):
        return _aliased(dialect, first), first.values
    windows = tuple(table for table in integers.tables if isinstance(table, WindowRandomizer))
    return _windowed(dialect, GroupedWindows(integers.groups, windows))


def _windowed(d: Dialect, lookup: GroupedWindows) -> tuple[list[Step], Values]:
    """u is moved to its point of the common line, and the segment there is the answer."""
    table, starts = "table_number", list(lookup.starts())
    bits = [_bits(d, "digest", 1, 64 - size, size) for size in lookup.word_bits]
    total = by_number(table, [str(window.base_total) for window in lookup.windows])
    behind = [
        str(extra - window.base_total + offset)
        for window, (_, extra) in zip(lookup.windows, starts, strict=True)
        for offset in window.offsets
    ]
    place = f"({table} * {lookup.labels} + row_index)" if len(starts) > 1 else "row_index"
    before = by_number(table, [str(base) for base, _ in starts])
    move = f"CASE WHEN u < ({total}) THEN {before} ELSE {by_number('window_place', behind)} END"
    values = list(dict.fromkeys(lookup.segment_values))
    numbers = {value: str(number) for number, value in enumerate(values)}
    bounds = [str(bound) for bound in lookup.lines.boundaries()[1:-1]]
    answers = [numbers[value] for value in lookup.segment_values]
    return [
        Step("u", "integer", by_number(table, bits)),
        Step("window_place", "integer", place),
        Step("on_line", "integer", f"u + {move}"),
        Step("answer", "integer", interval("on_line", bounds, answers)),
    ], values


def _aliased(d: Dialect, r: TableRandomizer) -> list[Step]:
    entries = [entry for row in r.counts for entry in alias_entries(row, r.word_bits)]
    start = f"row_index * {1 << column_bits(r.outputs)}"
    return _item(d, "answer", 1, r.word_bits, column_bits(r.outputs), entries, start)


def _noisy(d: Dialect, r: AdditiveRandomizer) -> list[Step]:
    """A block, a place in it, and the point where label and noise lead; then the float64 there."""
    blocks = alias_entries(r.blocks, r.word_bits)
    shapes = [entry for shape in r.shapes for entry in alias_entries(shape, r.word_bits)]
    columns = column_bits(r.period)
    start = f"CASE WHEN block >= {r.reach + 1} THEN {1 << columns} ELSE 0 END"
    point = f"row_index * {r.spacing} + (block - {r.reach + 1}) * {r.period} + noise"
    low, high = d.integer(r.low), d.integer(r.high)
    clamped = (
        f"CASE WHEN on_line < {low} THEN {low} WHEN on_line > {high} THEN {high} ELSE on_line END"
    )
    value = f"{d.as_number('clamped')} * {d.number(r.unit)} + {d.number(r.origin)}"
    return [
        *_item(d, "block", 1, r.word_bits, column_bits(len(r.blocks)), blocks),
        *_item(d, "noise", 1 + _WORD, r.word_bits, columns, shapes, start),
        Step("on_line", "integer", point),
        Step("clamped", "integer", clamped),
        Step("answer", "number", value),
    ]


def _item(
    d: Dialect,
    name: str,
    place: int,
    word_bits: int,
    columns: int,
    entries: Sequence[int],
    start: str = "0",
) -> list[Step]:
    """The item of a word in an alias table: min(u, P) mod 2^c, with u and P as 8 bytes.

    P takes the high bits, as u does, and ones below: so w ≤ P exactly where u ≤ P.
    """
    unused = 64 - word_bits
    packed = b"".join((((p + 1) << unused) - 1).to_bytes(_WORD, "big") for p in entries)
    column = _bits(d, "digest", place, unused, columns)
    entry = d.part(d.data(packed), f"{_WORD} * {name}_column + 1", _WORD)
    word, entry_name = d.part("digest", str(place), _WORD), f"{name}_entry"
    return [
        Step(f"{name}_column", "integer", f"{start} + {column}"),
        Step(entry_name, "bytes", entry),
        Step(
            f"{name}_least",
            "bytes",
            f"CASE WHEN {word} <= {entry_name} THEN {word} ELSE {entry_name} END",
        ),
        Step(name, "integer", _bits(d, f"{name}_least", 1, unused, columns)),
    ]


def _bits(d: Dialect, data: str, place: int, shift: int, count: int) -> str:
    """``count`` ≤ 62 bits of the 8 bytes from ``place`` on, above the ``shift`` lowest ones."""
    high, low = (d.unsigned(d.part(data, str(place + start), 4)) for start in (0, 4))
    if shift >= 32:
        shifted = d.shift_right(high, shift - 32)
        return shifted if shift + count == 64 else d.low_bits(shifted, count)
    if shift + count <= 32:
        shifted = d.shift_right(low, shift)
        return shifted if shift + count == 32 else d.low_bits(shifted, count)
    above = high if shift + count == 64 else d.low_bits(high, shift + count - 32)
    return f"({above} * {1 << (32 - shift)} + {d.shift_right(low, shift)})"


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
    """The steps to ``digest``, by the message that ``labeldp_runtime.keyed`` describes."""
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
    """The purpose and use of the file, as comments; each string of the artifact is one line."""
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
