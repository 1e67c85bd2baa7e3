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
    *(
        "&a [*a, *a]",
        "a: &x [b]\nc: [*x, *x]",
        "1.",
        ".5",
        "+1",
        "-0",
        "-0.0",
        "1:30",
        "2025-01-01",
    ),
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
    """The bytes of a spec file: altered bytes, altered trees, or made of valid parts."""
    make = random.choice([_bytes, _text, _tree, _tree, _tree, _parts, _parts, _parts])
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


def _parts(random: Random) -> bytes:
    """Parts that are each valid or nearly so; whether they fit together is for labeldp to say."""
    low = random.choice([0, 0, 0, 1, -3, -50, 10**6, 2**52])
    size = random.choice([2, 2, 3, 5, 8, 12, 30])
    values = random.choice([["a", "b"], ["é", "x", "", " "], [3, 1, -7], [0, 2**62], ["1", "2"]])
    real = {"kind": "real", "min": low, "max": low + random.choice([1, 0.25, 1e-9, 1e9, 1e300])}
    real["points"] = size
    if random.random() < 0.3:
        real["rounding"] = random.choice(["nearest", "unbiased"])
    domain = random.choice(
        [
            {"kind": "integer", "min": low, "max": low + size - 1},
            real,
            {"kind": "categorical", "values": values},
        ]
    )
    labels = len(values) if domain["kind"] == "categorical" else size
    rule = random.choice(
        ["clamp", {"default": random.choice([low, low + 1, values[0], values[-1]])}]
    )
    if domain["kind"] == "categorical" and random.random() < 0.9:
        rule = {"default": values[0]}
    losses = ["squared", "squared", "absolute", "poisson", "zero_one"]
    loss = "zero_one" if labels == len(values) and random.random() < 0.5 else random.choice(losses)
    weights = [random.choice([0, 1, 1, 2, 1000, 0.1, 1e-9, 10**12]) for _ in range(labels)]
    epsilon = random.choice([1e-6, 1e-3, 0.01, 0.1, 0.5, 1, 1, 2, 4, 8, 20, 40, 60])
    split = random.choice([{}, {"split": "paper"}, {"split": "auto"}])
    spec = {
        "version": 1,
        "name": "fuzz",
        **random.choice([{}, {"goal": "training"}, {"goal": "labels"}]),
        "label": {"column": "mdvis", "domain": domain, "out_of_domain": rule},
        "loss": loss,
        "privacy": {"epsilon": epsilon, **split},
        "prior": random.choice(
            [
                {"kind": "uniform"},
                {"kind": "uniform"},
                {"kind": "public", "weights": weights},
                {"kind": "public", "weights": weights},
                {"kind": "private", "data": "table.parquet"},
                {"kind": "private", "data": "table.csv", "rows": 400},
                {"kind": "public", "data": "table.csv"},
                {"kind": "private", "data": "table.parquet", "counts": "idp"},
            ]
        ),
        "mechanism": random.choice(
            [
                {"kind": "randomized_response"},
                {"kind": "rr_top_k", "k": random.choice([1, 2, labels, labels + 1])},
                {"kind": "rr_with_prior"},
                {"kind": "rr_on_bins"},
                {"kind": "debiased_rr"},
                {"kind": "exponential"},
                {"kind": "auto"},
                {"kind": "laplace", "clip": random.random() < 0.5},
                {"kind": "staircase", "lattice": random.choice([0.5, 1, 1e-3, 1e9, 3])},
                {"kind": "optimal_unbiased"},
                {"kind": "optimal_unbiased", "bias": {"max": random.choice([0, 0.1, 1, 1e9])}},
                {"kind": "optimal_unbiased", "bias": {"penalty": random.choice([0, 1, 1e-9, 1e9])}},
                {"kind": "optimal_unbiased", "bias": {"sample_size": random.choice([1, 2, 10**6])}},
                {"kind": "optimal_unbiased", "outputs": {"grid": random.choice([2, 9, 20])}},
                {"kind": "optimal_unbiased", "outputs": {"values": [low - 9, low, low + size + 9]}},
            ]
        ),
    }
    return yaml.safe_dump(spec).encode()
