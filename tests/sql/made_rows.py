"""Labels, ids and groups of every kind for an artifact: inside its lists, outside, and missing."""

import itertools
import math
import random

HOSTILE = ["", " ", "'); DROP TABLE x; --", "a\nb", "\\x00", "é", "Ω\U0001f600", '"', "NULL", "`"]


def labels_of(domain, count, chance):
    """[n] labels of a column, by what the certificate states of its domain."""
    if domain["kind"] == "categorical":
        known = domain["values"]
        others = HOSTILE if isinstance(known[0], str) else [-1, 2**40, -(2**63), 2**63 - 1]
        return [chance.choice([*known * 4, *others, None]) for _ in range(count)]
    points = domain.get("values")  # a grid lists them
    low, high = (points[0], points[-1]) if points else (domain["min"], domain["max"])
    if domain["kind"] == "integer":
        beyond = [low - 1, high + 1, -(2**63), 2**63 - 1, None]
        inside = range(low, high + 1)
        return [chance.choice(beyond if chance.random() < 0.2 else inside) for _ in range(count)]
    beyond = [low - 1, high + 1e300, -math.inf, math.inf, math.nan, None, -0.0, 5e-324]
    if not points:
        step = (high - low) / (domain["points"] - 1)
        points = [low + j * step for j in range(min(domain["points"], 200) + 1)]
    edges = [(below + above) / 2 for below, above in itertools.pairwise(points)]
    beside = [math.nextafter(edge, way) for edge in edges for way in (-math.inf, math.inf)]
    kinds = [beyond, edges + beside]
    return [
        chance.uniform(low, high) if chance.random() < 0.5 else chance.choice(chance.choice(kinds))
        for _ in range(count)
    ]


def groups_of(column, count, chance):
    """[n] values of a public column."""
    if column["values"] is not None:
        known = column["values"]
        others = HOSTILE if isinstance(known[0], str) else [-7, 2**63 - 1]
        return [chance.choice([*known * 3, *others, None]) for _ in range(count)]
    edges = column["bands"]
    beside = [math.nextafter(edge, -math.inf) for edge in edges]
    others = [math.nan, None, math.inf, -math.inf, -0.0]
    return [chance.choice([*edges, *beside, *others]) for _ in range(count)]


def made_rows(certificate, count, seed=1):
    """(label columns, group columns) of n rows."""
    chance = random.Random(seed)
    domain = certificate["label"]["domain"]
    parts = domain["columns"] if domain["kind"] == "joint" else [domain]
    groups = certificate["groups"]["columns"] if "groups" in certificate else []
    return (
        [labels_of(part, count, chance) for part in parts],
        [groups_of(column, count, chance) for column in groups],
    )
