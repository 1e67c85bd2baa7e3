"""Lookups in SQL that every database has: nested comparisons, a binary search written out."""

from collections.abc import Mapping, Sequence


def interval(value: str, bounds: Sequence[str], leaves: Sequence[str]) -> str:
    """``leaves[i]`` [n], where i is how many of the increasing ``bounds`` [n − 1] are ≤ ``value``.

    Neighbours with equal leaves become one. What NULL gives is the last leaf.
    """
    kept = [i for i in range(len(leaves)) if i == 0 or leaves[i] != leaves[i - 1]]
    return _tree(value, [bounds[i - 1] for i in kept[1:]], [leaves[i] for i in kept])


def by_number(value: str, leaves: Sequence[str]) -> str:
    """``leaves[value]`` of a whole number from 0."""
    return interval(value, [str(i) for i in range(1, len(leaves))], leaves)


def listed(value: str, places: Mapping[str, str], default: str) -> str:
    """The place of a value among keys, which are literals in the order of the database.

    NULL, and what is not among them, has the default.
    """
    keys = list(places)
    found = [f"CASE WHEN {value} = {key} THEN {places[key]} ELSE {default} END" for key in keys]
    return _tree(value, keys[1:], found)


def _tree(value: str, bounds: Sequence[str], leaves: Sequence[str]) -> str:
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    below = _tree(value, bounds[: middle - 1], leaves[:middle])
    above = _tree(value, bounds[middle:], leaves[middle:])
    return f"CASE WHEN {value} < {bounds[middle - 1]} THEN {below} ELSE {above} END"
