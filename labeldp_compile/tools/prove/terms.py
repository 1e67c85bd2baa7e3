"""The integers of each form as Coq's terms, with the check and the theorem that are about it.

They are those that the verifier's kernel reads from the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from labeldp_verify.kernel import Integers, Lookup, Noise, Table, Window, counts

_A_LINE = 8  # integers
_A_LIST = 500


@dataclass(frozen=True)
class Stated:
    """How one form is stated: ``definitions``, the check ``{check}``, words and draw as terms."""

    files: tuple[str, ...]
    definitions: str
    check: str
    theorem: str
    words: str
    draw: str
    more: str = ""
    group: str = ""


def stated(read: Integers, *, grouped: bool) -> Stated:
    """The terms of a file, which may have groups; of a window its lookup, if it is among them."""
    first = read.tables[0]
    if isinstance(first, Noise):
        return _additive(first)
    if isinstance(first, Table):
        return _table(first)
    windows = [table for table in read.tables if isinstance(table, Window)]
    if grouped:
        tables = "".join(_window(f"table_{i}", w) for i, w in enumerate(windows))
        names = "; ".join(f"table_{i}" for i in range(len(windows)))
        return Stated(
            ("Windows",),
            f"{tables}Definition artifact : list window := [{names}].\n",
            "grouped_check num den k artifact",
            "intros g Hg. exact (grouped_private_proof num den k artifact g checked Hg).",
            "(words 64)",
            "(grouped_out artifact g)",
            group=f"forall g, (g < {len(windows)})%nat -> ",
        )
    segments = Stated(
        ("Windows",),
        _window("artifact", first),
        "window_check num den artifact",
        "rewrite <- rows. exact (window_rows_private_proof num den artifact checked).",
        "(words 64)",
        "(window_out artifact)",
        more=_rows("rows_of artifact"),
    )
    return segments if read.lookup is None else _looked_up(segments, read.lookup)


def _table(r: Table) -> Stated:
    c = _columns(r.rows[0])
    definitions = [_list(f"row_{y}", row) for y, row in enumerate(r.rows)]
    names = "; ".join(f"row_{y}" for y in range(len(r.rows)))
    sizes = f"{r.bits} {c} {r.answers} artifact"
    return Stated(
        ("Tables",),
        f"(** Alias tables of 2^{c} entries. *)\n"
        + "".join(definitions)
        + f"Definition artifact : list (list Z) := [{names}].\n",
        f"table_file_check num den {sizes}",
        f"rewrite <- rows. exact (table_private_proof num den {sizes} checked).",
        "(words 64)",
        f"(table_out {r.bits} {c} artifact)",
        more=_rows("Z.of_nat (length artifact)"),
    )


def _looked_up(form: Stated, read: Lookup) -> Stated:
    """The same with the lookup of the graph: stretches of entries, as ``graph/bucket_grid.py``
    lays them out."""
    table, parts, names = list(read.entries), [], []
    for i, (first, stop, shift, _) in enumerate(read.stretches):
        size = ((stop - 1) >> shift) + 1 - (first >> shift)
        parts.append(_list(f"grid_{i}_entries", table[:size]))
        names.append(f"Stretch {_number(first)} {_number(stop)} {shift} grid_{i}_entries")
        table = table[size:]
    lookup = f"artifact {read.shift} grid"
    return replace(
        form,
        files=("Lookups",),
        definitions=form.definitions
        + "".join(parts)
        + f"Definition grid : list stretch :=\n  [{'; '.join(names)}].\n",
        theorem=f"rewrite <- rows. exact (looked_up_private_proof num den {lookup} checked "
        "lookup_checked).",
        draw=f"(window_looked_up {lookup})",
        more=form.more + f"\nLemma lookup_checked : grid_check {read.shift} grid "
        "(base_line artifact ++ extra artifact) = true.\n"
        "Proof. vm_cast_no_check (eq_refl true). Qed.\n",
    )


def _additive(r: Noise) -> Stated:
    c, (below, above) = _columns(r.block_entries), r.shape_entries
    drawn = {
        "blocks_": (r.block_entries, 2 * r.half),
        "below_": (below, r.period),
        "above_": (above, r.period),
    }
    weights = {name: counts(entries, r.bits, items) for name, (entries, items) in drawn.items()}
    entries = {f"{name}entries": listed for name, (listed, _) in drawn.items()}
    d, names = _columns(below), " ".join(entries)
    return Stated(
        ("Additives",),
        "".join(_list(name, numbers) for name, numbers in (weights | entries).items())
        + f"Definition artifact : additive := Additive {r.bits} {_labels(r)} {r.spacing} "
        f"{' '.join(weights)} {_number(r.low)} {_number(r.high)}.\n",
        f"additive_file_check num den artifact {c} {d} {names}",
        f"exact (additive_private_proof num den artifact {c} {d} {names} checked).",
        "(list_prod (words 64) (words 64))",
        f"(additive_out artifact {c} {d} {names})",
    )


def _columns(entries: Sequence[int]) -> int:
    """c of 2^c entries."""
    return len(entries).bit_length() - 1


def _rows(count: str) -> str:
    return f"Lemma rows : {count} = k.\nProof. vm_cast_no_check (eq_refl k). Qed.\n"


def _window(name: str, window: Window) -> str:
    place = {answer: i for i, (_, answer) in enumerate(window.base)}
    segments = [f"({_number(length)}, {place[answer]})" for length, answer in window.extra]
    return (
        _list(f"{name}_base", [length for length, _ in window.base])
        + _texts(f"{name}_extra", "list (Z * Z)", segments)
        + _list(f"{name}_offsets", window.offsets)
        + f"Definition {name} : window :=\n"
        f"  Window {window.bits} {name}_base {name}_extra {name}_offsets.\n\n"
    )


def _list(name: str, numbers: Sequence[int]) -> str:
    return _texts(name, "list Z", list(map(_number, numbers)))


def _texts(name: str, kind: str, items: Sequence[str]) -> str:
    """A list; a long one in pieces, for Coq reads a list recursively."""
    pieces = [items[i : i + _A_LIST] for i in range(0, len(items), _A_LIST)] or [items]
    if len(pieces) == 1:
        return f"Definition {name} : {kind} :=\n  [{_lines(items)}].\n"
    names = [f"{name}_{i}" for i in range(len(pieces))]
    parts = [
        f"Definition {part} : {kind} :=\n  [{_lines(piece)}].\n"
        for part, piece in zip(names, pieces, strict=True)
    ]
    return "".join(parts) + f"Definition {name} : {kind} :=\n  {' ++ '.join(names)}.\n"


def _lines(items: Sequence[str]) -> str:
    rows = ["; ".join(items[i : i + _A_LINE]) for i in range(0, len(items), _A_LINE)]
    return ";\n   ".join(rows)


def _number(number: int) -> str:
    """Hexadecimal, which Coq reads faster, where it is long."""
    text = hex(number) if abs(number) >= 1 << 20 else str(number)
    return f"({text})" if number < 0 else text


def size_of(read: Integers) -> int:
    """How many integers Coq would have to read."""
    return sum(map(_size, read.tables))


def _size(r: Window | Table | Noise) -> int:
    if isinstance(r, Window):
        return len(r.base) + 2 * len(r.extra) + len(r.offsets)
    if isinstance(r, Table):
        return sum(map(len, r.rows))
    return 4 * r.half + 4 * r.period


def labels(read: Integers) -> int:
    """k, the number of labels."""
    return _labels(read.tables[0])


def _labels(r: Window | Table | Noise) -> int:
    if isinstance(r, Window):
        return len(r.offsets)
    return len(r.rows) if isinstance(r, Table) else r.period // r.spacing + 1
