"""The integers of each form as Coq's terms, with the check and the theorem that are about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from labeldp_verify.artifact import BucketGrid
from labeldp_verify.artifact.alias_table import alias_entries, column_bits
from labeldp_verify.artifact.bucket_grid import grid_entries
from labeldp_verify.forms import (
    AdditiveRandomizer,
    GroupedWindows,
    TableRandomizer,
    WindowRandomizer,
)

_A_LINE = 8  # integers
_A_LIST = 500
Form = WindowRandomizer | TableRandomizer | AdditiveRandomizer | GroupedWindows


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


def stated(r: Form, grid: BucketGrid | None) -> Stated:
    """The terms of a form; ``grid`` is how a window's lookup is laid out, if it is stated."""
    if isinstance(r, GroupedWindows):
        tables = "".join(_window(f"table_{i}", w) for i, w in enumerate(r.windows))
        names = "; ".join(f"table_{i}" for i in range(len(r.windows)))
        return Stated(
            ("Windows",),
            f"{tables}Definition artifact : list window := [{names}].\n",
            "grouped_check num den k artifact",
            "intros g Hg. exact (grouped_private_proof num den k artifact g checked Hg).",
            "(words 64)",
            "(grouped_out artifact g)",
            group=f"forall g, (g < {len(r.windows)})%nat -> ",
        )
    if isinstance(r, WindowRandomizer):
        segments = Stated(
            ("Windows",),
            _window("artifact", r),
            "window_check num den artifact",
            "rewrite <- rows. exact (window_rows_private_proof num den artifact checked).",
            "(words 64)",
            "(window_out artifact)",
            more=_rows("rows_of artifact"),
        )
        return segments if grid is None else _looked_up(segments, r, grid)
    if isinstance(r, TableRandomizer):
        c = column_bits(r.outputs)
        rows = [alias_entries(counts, r.word_bits) for counts in r.counts]
        definitions = [_list(f"row_{y}", row) for y, row in enumerate(rows)]
        names = "; ".join(f"row_{y}" for y in range(len(rows)))
        return Stated(
            ("Tables",),
            f"(** Alias tables of 2^{c} entries. *)\n"
            + "".join(definitions)
            + f"Definition artifact : list (list Z) := [{names}].\n",
            f"table_file_check num den {r.word_bits} {c} {r.outputs} artifact",
            f"rewrite <- rows. exact (table_private_proof num den {r.word_bits} {c} {r.outputs} "
            "artifact checked).",
            "(words 64)",
            f"(table_out {r.word_bits} {c} artifact)",
            more=_rows("Z.of_nat (length artifact)"),
        )
    return _additive(r)


def _looked_up(form: Stated, r: WindowRandomizer, grid: BucketGrid) -> Stated:
    """The same with the lookup of the graph: stretches of entries, as ``artifact/bucket_grid.py``
    lays them out."""
    table, parts, names = grid_entries(r, grid), [], []
    for i, (first, stop, shift) in enumerate(grid.stretches(r)):
        size = ((stop - 1) >> shift) + 1 - (first >> shift)
        parts.append(_list(f"grid_{i}_entries", table[:size]))
        names.append(f"Stretch {_number(first)} {_number(stop)} {shift} grid_{i}_entries")
        table = table[size:]
    lookup = f"artifact {grid.segment_shift} grid"
    return replace(
        form,
        files=("Lookups",),
        definitions=form.definitions
        + "".join(parts)
        + f"Definition grid : list stretch :=\n  [{'; '.join(names)}].\n",
        theorem=f"rewrite <- rows. exact (looked_up_private_proof num den {lookup} checked "
        "lookup_checked).",
        draw=f"(window_looked_up {lookup})",
        more=form.more + f"\nLemma lookup_checked : grid_check {grid.segment_shift} grid "
        "(base_line artifact ++ extra artifact) = true.\n"
        "Proof. vm_cast_no_check (eq_refl true). Qed.\n",
    )


def _additive(r: AdditiveRandomizer) -> Stated:
    c, d = column_bits(len(r.blocks)), column_bits(r.period)
    below, above = r.shapes
    weights = {"blocks_": r.blocks, "below_": below, "above_": above}
    entries = {f"{name}entries": alias_entries(w, r.word_bits) for name, w in weights.items()}
    names = " ".join(entries)
    return Stated(
        ("Additives",),
        "".join(_list(name, numbers) for name, numbers in (weights | entries).items())
        + f"Definition artifact : additive := Additive {r.word_bits} {r.labels} {r.spacing} "
        f"{' '.join(weights)} {_number(r.low)} {_number(r.high)}.\n",
        f"additive_file_check num den artifact {c} {d} {names}",
        f"exact (additive_private_proof num den artifact {c} {d} {names} checked).",
        "(list_prod (words 64) (words 64))",
        f"(additive_out artifact {c} {d} {names})",
    )


def _rows(count: str) -> str:
    return f"Lemma rows : {count} = k.\nProof. vm_cast_no_check (eq_refl k). Qed.\n"


def _window(name: str, window: WindowRandomizer) -> str:
    segments = [f"({_number(s.length)}, {s.output})" for s in window.extra]
    return (
        _list(f"{name}_base", window.base)
        + _texts(f"{name}_extra", "list (Z * Z)", segments)
        + _list(f"{name}_offsets", window.offsets)
        + f"Definition {name} : window :=\n"
        f"  Window {window.word_bits} {name}_base {name}_extra {name}_offsets.\n\n"
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


def integers(r: Form) -> int:
    """How many integers Coq would have to read."""
    if isinstance(r, GroupedWindows):
        return sum(map(integers, r.windows))
    if isinstance(r, WindowRandomizer):
        return len(r.base) + 2 * len(r.extra) + len(r.offsets)
    if isinstance(r, TableRandomizer):
        return len(r.counts) << column_bits(r.outputs)
    return 2 * len(r.blocks) + 4 * r.period


def labels(r: Form) -> int:
    """k, the number of labels."""
    if isinstance(r, WindowRandomizer):
        return len(r.offsets)
    if isinstance(r, TableRandomizer):
        return len(r.counts)
    return r.labels
