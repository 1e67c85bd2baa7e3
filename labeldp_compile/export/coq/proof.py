"""The Coq text about one artifact: its integers, and what they prove.

Only numbers and digests of the artifact get into the text, because a name could end a comment.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from labeldp_verify.artifact import Artifact
from labeldp_verify.claims import rational
from labeldp_verify.forms import RealDomain
from labeldp_verify.graph import tables_digest
from labeldp_verify.kernel import Integers, Lookup, Noise, Table, Window, counts

from labeldp_compile.page.document import text_of

PREFIX = "LabelDP"
_OURS = re.compile(rf"^From {PREFIX} Require Import ([\w ]+)\.\n", re.M)
_COQS = re.compile(r"^From Coq Require Import ([\w ]+)\.\n", re.M)


def folder() -> Path:
    """The folder with the files."""
    shipped = Path(__file__).parent / "theory"
    return shipped if shipped.is_dir() else Path(__file__).parents[3] / "proofs"


@cache
def source(name: str) -> str:
    """The text of one file."""
    return (folder() / f"{name}.v").read_text(encoding="utf-8")


def needed(names: Iterable[str]) -> list[str]:
    """These files and all that they need, each after what it needs."""
    found: dict[str, None] = {}
    for name in names:
        before = needed(_imports(_OURS, source(name)))
        found |= dict.fromkeys([*before, name])
    return list(found)


def modules(names: Iterable[str]) -> str:
    """The files as modules of one text, after the imports of Coq's standard library."""
    parts, libraries, files = [], {"ZArith": None, "List": None}, needed(names)
    for name in files:
        text = source(name)
        libraries |= dict.fromkeys(_imports(_COQS, text))
        body = _OURS.sub(lambda line: f"Import {line[1]}.\n", _COQS.sub("", text))
        parts.append(f"Module {name}.\n{body}End {name}.\n")
    above = f"From Coq Require Import {' '.join(libraries)}.\n\n"
    return above + "\n".join([*parts, f"Import {' '.join(files)}.\n"])


def required(names: Iterable[str]) -> str:
    """Imports of the same files, which Coq finds by ``-Q proofs LabelDP``."""
    return (
        "From Coq Require Import ZArith List QArith.\n"
        f"From {PREFIX} Require Import {' '.join(needed(names))}.\n"
    )


def _imports(pattern: re.Pattern[str], text: str) -> list[str]:
    return [name for line in pattern.findall(text) for name in line.split()]


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
    table, grids = list(read.entries), []
    for first, stop, shift, _ in read.stretches:
        size = ((stop - 1) >> shift) + 1 - (first >> shift)
        grids.append({"first": first, "stop": stop, "shift": shift, "entries": table[:size]})
        table = table[size:]
    return grids


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


MAX_INTEGERS = 100_000  # Coq reads about 1,500 a second
MAX_ENTRIES = 10_000  # of a lookup: Coq reads them for seven seconds
_MOST_TERMS = 5_000


@dataclass(frozen=True)
class Proof:
    """A Coq file about one artifact.

    Attributes:
        text: the file.
        epsilon: the ε that it proves for every label.
        theorems: the names of its theorems; Coq prints the assumptions of each.
    """

    text: str
    epsilon: Fraction
    theorems: tuple[str, ...]


def proof_of(
    decoded: Artifact,
    read: Integers,
    *,
    most_entries: int = MAX_ENTRIES,
    ratio: Fraction | None = None,
    self_contained: bool = True,
) -> Proof:
    """The Coq file about a verified artifact.

    Args:
        decoded: the verified file.
        read: its integers, as the kernel reads them.
        most_entries: if the lookup has at most this many entries, the draw of a window is the
            graph's gather from them; otherwise it goes through the segments.
        ratio: the ratio to prove; by default that of the certificate.
        self_contained: whether the theory is in the file; otherwise it needs
            ``-Q proofs LabelDP``.
    """
    certificate = decoded.certificate
    ratio = rational(certificate.exact.realised_ratio) if ratio is None else ratio
    epsilon = rational(certificate.exact.epsilon_label_bound)
    if read.lookup is not None and len(read.lookup.entries) > most_entries:
        read = read._replace(lookup=None)
    grouped, users = certificate.groups is not None, certificate.composition
    file, facts = form_of(read, grouped=grouped)
    files = (file, "Mixtures", "Epsilon")
    theorems = {
        "artifact_is_private": True,
        "private_at_any_offset": isinstance(read.tables[0], Window) and not grouped,
        "rounded_labels_are_private": isinstance(decoded.label, RealDomain)
        and decoded.label.rounding == "unbiased",
        "labels_of_one_person_are_private": users is not None and not grouped,
    }
    proved = tuple(name for name, holds in theorems.items() if holds)
    text = text_of(
        Path(__file__).with_name("artifact.v.jinja"),
        sha256=decoded.sha256,
        tables_sha256=tables_digest(decoded.label, decoded.lookup),
        theory=modules(files) if self_contained else required(files),
        listed=listed,
        number=number,
        ratio=ratio,
        epsilon=epsilon,
        terms=terms(ratio, epsilon),
        labels=labels(read),
        theorems=proved,
        labels_per_user=users and users.labels_per_user,
        **facts,
    )
    return Proof(text, epsilon, proved)


def terms(ratio: Fraction, epsilon: Fraction) -> int:
    """The smallest n for which the ratio is at most Σ εʲ/j! over j ≤ n. Raises ValueError if none.

    The proved ε is at least ln of the ratio, and larger unless the ratio is 1.
    """
    total = term = Fraction(1)
    for n in range(_MOST_TERMS):
        if ratio <= total:
            return n
        term = term * epsilon / (n + 1)
        # Sums are cut to 4,096 bits. Coq uses the exact sums, which are larger.
        total += _cut(term)
        term = _cut(term)
    raise ValueError("the ratio is not a lower bound of e^epsilon")


def _cut(number: Fraction) -> Fraction:
    return Fraction((number.numerator << 4096) // number.denominator, 1 << 4096)
