"""JSON that all readers read alike."""

import json
from typing import Any


def parse_json(text: str) -> Any:
    """The value that a JSON text has: an object, a list, or any other.

    Raises ValueError for anything else, for a name that an object has twice (readers differ in
    which of them they take), and for what is nested too deeply.
    """
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found
