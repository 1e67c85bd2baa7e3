"""From a row and secret bits to the number of the answer: windows, alias tables, additive noise.

The integers are those that the verifier read from the file, and every step computes on whole
numbers below 2^63, or compares 8 bytes of a hash with 8 bytes of a table, the highest byte first.
"""

from collections.abc import Sequence

from labeldp_verify.forms import (
    AdditiveRandomizer,
    GroupedWindows,
    Integers,
    TableRandomizer,
    WindowRandomizer,
)
from labeldp_verify.graph import alias_entries, column_bits

from labeldp_compile.export.sql.dialect import Dialect, Step
from labeldp_compile.export.sql.trees import by_number, interval

Values = Sequence[float | str | int]
_WORD = 8  # bytes


def count_integers(found: Integers) -> int:
    """How many integers the SQL of an artifact would hold, without making it."""
    first = found.tables[0]
    if isinstance(first, AdditiveRandomizer):
        return 4 * (len(first.blocks) + first.period)
    if isinstance(first, TableRandomizer):
        return len(first.counts) << column_bits(first.outputs)
    tables = [table for table in found.tables if isinstance(table, WindowRandomizer)]
    return sum(len(t.base) + len(t.extra) + len(t.offsets) for t in tables)


def draw(dialect: Dialect, found: Integers) -> tuple[list[Step], Values | None]:
    """The steps from ``row_index``, ``table_number`` and ``digest`` to ``answer``, and what the
    answers stand for: without values the answer is the private label itself."""
    first = found.tables[0]
    if isinstance(first, AdditiveRandomizer):
        return _noisy(dialect, first), None
    if isinstance(first, TableRandomizer):
        return _aliased(dialect, first), first.values
    windows = tuple(table for table in found.tables if isinstance(table, WindowRandomizer))
    return _windowed(dialect, GroupedWindows(found.groups, windows))


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
    word, own = d.part("digest", str(place), _WORD), f"{name}_entry"
    return [
        Step(f"{name}_column", "integer", f"{start} + {column}"),
        Step(own, "bytes", entry),
        Step(f"{name}_least", "bytes", f"CASE WHEN {word} <= {own} THEN {word} ELSE {own} END"),
        Step(name, "integer", _bits(d, f"{name}_least", 1, unused, columns)),
    ]


def _bits(d: Dialect, data: str, place: int, shift: int, count: int) -> str:
    """``count`` ≤ 62 bits of the 8 bytes from ``place`` on, above the ``shift`` lowest ones."""
    high, low = (d.unsigned(d.part(data, str(place + start), 4)) for start in (0, 4))
    if shift >= 32:
        found = d.shift_right(high, shift - 32)
        return found if shift + count == 64 else d.low_bits(found, count)
    if shift + count <= 32:
        found = d.shift_right(low, shift)
        return found if shift + count == 32 else d.low_bits(found, count)
    above = high if shift + count == 64 else d.low_bits(high, shift + count - 32)
    return f"({above} * {1 << (32 - shift)} + {d.shift_right(low, shift)})"
