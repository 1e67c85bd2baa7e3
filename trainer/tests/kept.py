"""What a JSON document keeps when its sentences are rewritten: keys, values, and numbers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?")
MASK = "…"


def facts(
    node: object, masked: Collection[str] = (), path: str = ""
) -> Iterator[tuple[str, object]]:
    """(path, value) of each leaf: of a sentence, its numbers; of a masked value, its keys.

    Of a list, the first four items are enough.
    """
    if isinstance(node, dict):
        for key, value in node.items():
            hidden = value if key not in masked else _hidden(value)
            yield from facts(hidden, masked, f"{path}/{key}")
    elif isinstance(node, list):
        yield f"{path}#", len(node)
        for i, value in enumerate(node[:4]):
            yield from facts(value, masked, f"{path}/{i}")
    elif isinstance(node, str) and " " in node:
        yield path, sorted(NUMBER.findall(node))
    else:
        yield path, node


def _hidden(node: object) -> object:
    """The keys of a masked value."""
    return {key: _hidden(value) for key, value in node.items()} if isinstance(node, dict) else MASK


def lost(before: Mapping[str, object], now: Mapping[str, object]) -> dict[str, object]:
    """What is not there any more: {path: (value before, value now)}."""
    return {
        path: (value, now.get(path))
        for path, value in before.items()
        if not _is_kept(value, now.get(path))
    }


def _is_kept(before: object, now: object) -> bool:
    if isinstance(before, list):
        return not Counter(before) - Counter(now if isinstance(now, list) else [])
    if isinstance(before, float) and isinstance(now, float | int):
        return math.isclose(before, now, rel_tol=1e-6, abs_tol=1e-9)
    return before == now
