"""The general theory, ``proofs/*.v``, as files and as text that needs only Coq.

In a checkout it is the folder ``proofs``; in a wheel it is package data.
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

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
        body = _OURS.sub(lambda found: f"Import {found[1]}.\n", _COQS.sub("", text))
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
