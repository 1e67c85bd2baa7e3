"""The integers of a file as Coq lists, and the facts that the template needs for each form.

The integers are those that the verifier's kernel reads from the file.
"""

from collections.abc import Sequence
from typing import Any

from labeldp_verify.kernel import Integers, Lookup, Noise, Table, Window, counts

_A_LINE = 8  # integers
_A_LIST = 500


def form_of(read: Integers, *, grouped: bool) -> tuple[str, dict[str, Any]]:
    """The theory file that a form needs, and the facts of its integers for the template.

    The lookup of a window is proved, too, if it is among the integers.
    """
    first = read.tables[0]
    if isinstance(first, Noise):
        return "Additives", {"form": "additive", "noise": first} | _drawn(first)
    if isinstance(first, Table):
        facts = {"form": "table", "table": first, "columns": _columns(first.rows[0])}
        return "Tables", facts
    windows = [_window(table) for table in read.tables if isinstance(table, Window)]
    if grouped or read.lookup is None:
        return "Windows", {"form": "grouped" if grouped else "window", "windows": windows}
    facts = {"form": "window", "windows": windows, "lookup": read.lookup}
    return "Lookups", facts | {"grids": _grids(read.lookup)}


def _window(window: Window) -> dict[str, Any]:
    place = {answer: i for i, (_, answer) in enumerate(window.base)}
    return {
        "bits": window.bits,
        "lengths": [length for length, _ in window.base],
        "segments": [f"({number(length)}, {place[answer]})" for length, answer in window.extra],
        "offsets": window.offsets,
    }


def _grids(read: Lookup) -> list[dict[str, Any]]:
    """The lookup of the graph: stretches of entries, in the layout of ``graph/bucket_grid.py``."""
    table, found = list(read.entries), []
    for first, stop, shift, _ in read.stretches:
        size = ((stop - 1) >> shift) + 1 - (first >> shift)
        found.append({"first": first, "stop": stop, "shift": shift, "entries": table[:size]})
        table = table[size:]
    return found


def _drawn(r: Noise) -> dict[str, Any]:
    """The lists of weights and of alias-table entries, and c for tables of 2^c entries."""
    below, above = r.shape_entries
    entries = {"blocks_": r.block_entries, "below_": below, "above_": above}
    items = {"blocks_": 2 * r.half, "below_": r.period, "above_": r.period}
    weights = {name: counts(listed_, r.bits, items[name]) for name, listed_ in entries.items()}
    lists = weights | {f"{name}entries": listed_ for name, listed_ in entries.items()}
    return {"lists": lists, "columns": (_columns(r.block_entries), _columns(below))}


def _columns(entries: Sequence[int]) -> int:
    """c for a list of 2^c entries."""
    return len(entries).bit_length() - 1


def listed(name: str, items: Sequence[int] | Sequence[str], kind: str = "list Z") -> str:
    """The definition of a list; a long list comes in pieces, because Coq reads it recursively."""
    texts = [item if isinstance(item, str) else number(item) for item in items]
    pieces = [texts[i : i + _A_LIST] for i in range(0, len(texts), _A_LIST)] or [texts]
    names = [name] if len(pieces) == 1 else [f"{name}_{i}" for i in range(len(pieces))]
    parts = [
        f"Definition {part} : {kind} :=\n  [{_lines(piece)}]."
        for part, piece in zip(names, pieces, strict=True)
    ]
    if len(pieces) > 1:
        parts.append(f"Definition {name} : {kind} :=\n  {' ++ '.join(names)}.")
    return "\n".join(parts)


def _lines(items: Sequence[str]) -> str:
    rows = ["; ".join(items[i : i + _A_LINE]) for i in range(0, len(items), _A_LINE)]
    return ";\n   ".join(rows)


def number(number: int) -> str:
    """A number for Coq; long numbers in hexadecimal, which Coq reads faster."""
    text = hex(number) if abs(number) >= 1 << 20 else str(number)
    return f"({text})" if number < 0 else text


def size_of(read: Integers) -> int:
    """How many integers Coq would have to read."""
    size = 0
    for table in read.tables:
        if isinstance(table, Window):
            size += len(table.base) + 2 * len(table.extra) + len(table.offsets)
        elif isinstance(table, Table):
            size += sum(map(len, table.rows))
        else:
            size += 4 * table.half + 4 * table.period
    return size


def labels(read: Integers) -> int:
    """k, the number of labels."""
    first = read.tables[0]
    if isinstance(first, Window):
        return len(first.offsets)
    return len(first.rows) if isinstance(first, Table) else first.period // first.spacing + 1
