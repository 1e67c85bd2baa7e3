"""Specs that somebody might write by accident or on purpose, from bytes to whole trees."""

from __future__ import annotations

import copy
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import yaml
from hypothesis import strategies as st

from labeldp_compile.yaml_source import read_yaml

PRIVATE = "../../../specs/data/randhie.parquet"
SPECS = sorted((Path(__file__).parents[2] / "tests/golden/plain").glob("*.yaml"))
BASES = [path.read_text("utf-8").replace(PRIVATE, "table.parquet") for path in SPECS]
ODD_TEXT = [
    *(
        "\t",
        "&a *a",
        "<<: *a",
        "*a",
        "!!python/object:os.system",
        "!!binary aGk=",
        "!a b",
        "{",
        "[",
    ),
    *("}", "]", "'", '"', "|", ">-", "? a", "- ", ": ", "#", "%YAML 1.1", "---\n", "...\n", "\n\n"),
    *("\0", "\ufeff", "\u2028", "\x85", "é", "\U0001f600", "~", "null", "yes", "0x10", "1_000"),
    *("1e400", "1e-400", ".inf", "-.inf", ".nan", "9" * 120, "9" * 5000, "[" * 60, "{a: " * 60),
    *("&a [*a, *a]", "a: &x [b]\nc: [*x, *x]", "1.", ".5", "+1", "-0", "1:30", "2025-01-01"),
]
ODD_VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 7, 100, 2**31, 2**53, 2**53 + 1, 2**63, -(2**63) - 1),
    *(10**30, 0.0, -0.0, 0.1, 0.5, 1e-6, 1e-7, 1e-300, 1e300, float("inf"), float("nan")),
    *("", " ", "clamp", "integer", "real", "categorical", "auto", "exact", "uniform", "private"),
    *("squared", "absolute", "poisson", "zero_one", "table.parquet", "table.csv", "missing.csv"),
    *(".", "/", "..", "spec.yaml", "mdvis", "idp", "\x1b[2J", "a" * 3000, "é\U0001f600"),
    *([], [1], [1, 1], [0, 0], ["a", 1], [[1]], [None], {}, {"kind": "uniform"}, {"default": 1}),
]
KEYS = ["kind", "min", "max", "points", "values", "default", "weights", "data", "rows", "counts"]
KEYS += ["split", "prior", "label", "epsilon", "rounding", "bias", "outputs", "grid", "k", "clip"]
KEYS += ["lattice", "goal", "loss", "mechanism", "version", "name", "column", "domain", "zzz", ""]


def spec_file(random: Random) -> bytes:
    """The bytes of a spec file with altered bytes, words or trees."""
    make = random.choice([_bytes, _text, _tree, _tree])
    result: bytes = make(random)
    return result


def spec_files() -> st.SearchStrategy[bytes]:
    """Any of them."""
    return st.randoms(use_true_random=True).map(spec_file)


def _bytes(random: Random) -> bytes:
    data = bytearray(random.choice(BASES).encode())
    for _ in range(random.randint(1, 6)):
        start = random.randrange(len(data) + 1)
        stop = min(start + random.choice([1, 1, 2, 10, 100]), len(data))
        new = bytes(random.randrange(256) for _ in range(random.choice([0, 1, 1, 4])))
        data[start : random.choice([start, stop])] = random.choice([new, bytes(data[start:stop])])
    return bytes(data)


def _text(random: Random) -> bytes:
    text = random.choice(BASES)
    for _ in range(random.randint(1, 3)):
        words = text.split(" ")
        words[random.randrange(len(words))] = random.choice(ODD_TEXT)
        text = " ".join(words)
        if random.random() < 0.3:
            lines = text.split("\n")
            line = lines.pop(random.randrange(len(lines)))
            lines[random.randrange(len(lines) + 1) :] = [line] * random.choice([0, 1, 2])
            text = "\n".join(lines)
    return text.encode("utf-8", "surrogatepass")


def _tree(random: Random) -> bytes:
    tree = _plain(read_yaml(random.choice(BASES)).data)
    for _ in range(random.randint(1, 3)):
        place = random.choice(_places(tree))
        parent, key = place
        choice = random.random()
        if choice < 0.5:
            parent[key] = copy.deepcopy(random.choice(ODD_VALUES))
        elif choice < 0.65:
            del parent[key]
        elif choice < 0.8 and isinstance(parent, dict):
            parent[random.choice(KEYS)] = copy.deepcopy(random.choice(ODD_VALUES))
        elif isinstance(parent, dict):
            other, name = random.choice(_places(tree))
            parent[key], other[name] = copy.deepcopy(other[name]), copy.deepcopy(parent[key])
        if not tree:
            break
    return yaml.safe_dump(tree, allow_unicode=random.random() < 0.5).encode()


def _plain(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_plain(value) for value in node]
    return float(node) if isinstance(node, Decimal) else node


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of the tree."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    found = []
    for key, value in pairs:
        found.append((tree, key))
        if isinstance(value, dict | list):
            found += _places(value)
    return found
