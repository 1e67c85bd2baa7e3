"""From the arguments to a row, its canonical label and its table, as the artifact's graph does it.

No value fails: NULL, NaN and labels outside the domain follow the out-of-domain rule.
"""

from typing import Any

from labeldp_verify.forms import (
    CategoricalDomain,
    Domain,
    GridDomain,
    GroupColumn,
    Groups,
    IntegerDomain,
    Part,
    RealDomain,
    columns_of,
    missing_label,
)

from labeldp_compile.export.sql.dialect import Argument, Dialect, Step, Type
from labeldp_compile.export.sql.trees import by_number, interval, listed


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
    own = isinstance(parts[0], IntegerDomain) and len(parts) == 1
    canonical = "inside_1" if own else "row_index"
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
        found = _listed(d, given, places, default)
        if part.null is not None:
            row = part.values.index(part.null)
            found = f"CASE WHEN {given} IS NULL THEN {row} ELSE {found} END"
        return [first, Step(place, "integer", found)]
    low, high, other = (_number(d, part, y) for y in (part.min, part.max, missing_label(part)))
    missing = d.is_missing(given) if isinstance(part, RealDomain) else f"{given} IS NULL"
    read = [first, Step(inside, column.type, _inside(d, given, missing, low, high, other, part))]
    if isinstance(part, IntegerDomain):
        return [*read, Step(place, "integer", f"{inside} - {low}")]
    if isinstance(part, GridDomain):
        bounds = [d.number(bound) for bound in part.bounds[1:]]
        found = interval(inside, bounds, [str(row) for row in range(part.size)])
        return [*read, Step(place, "integer", found)]
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
    found = interval(given, edges, [str(place) for place in range(column.size)])
    return f"CASE WHEN {d.is_missing(given)} THEN NULL ELSE {found} END"


def _listed(d: Dialect, given: str, places: dict[str | int, str], default: str) -> str:
    """The place of a text, compared byte by byte under any collation, or of a whole number."""
    texts = {key.encode(): place for key, place in places.items() if isinstance(key, str)}
    if texts:
        keys = {d.data(key): texts[key] for key in sorted(texts)}
        return listed(d.utf8(given), keys, default)
    numbers = {key: place for key, place in places.items() if isinstance(key, int)}
    return listed(given, {d.integer(key): numbers[key] for key in sorted(numbers)}, default)
