"""One message for a config that is not valid: file, line, key, and what was expected."""

from __future__ import annotations

import difflib
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from labeldp_trainer.config.yaml_source import KeyPath, YamlSource


def explain(
    errors: list[ErrorDetails], yaml: YamlSource, source: str, model: type[BaseModel]
) -> str:
    """The message for the likeliest cause among pydantic's errors."""
    first = min(errors, key=_rank)
    path = _locate(first["loc"], yaml.data, missing=first["type"] == "missing")
    where = f"{source}:{yaml.line(path)}: {'.'.join(map(str, path)) or 'config'}"
    kind, context = first["type"], first.get("ctx", {})
    if kind == "extra_forbidden":
        return f"{where}: unknown key; {_nearest(str(path[-1]), _known_keys(model, first['loc']))}"
    if kind == "missing":
        return f"{where}: this key is missing"
    if kind in ("literal_error", "union_tag_invalid"):
        expected = str(context.get("expected") or context.get("expected_tags"))
        given = _get(yaml.data, path)
        given = given.get("kind") if isinstance(given, dict) else given
        options = [part.strip(" '") for part in expected.replace(" or ", ", ").split(",")]
        suffix = ".kind" if kind == "union_tag_invalid" else ""
        return f"{where}{suffix}: {given!r} is unknown; {_nearest(str(given), options)}"
    if kind == "union_tag_not_found":
        return f"{where}: the key 'kind' is missing"
    return f"{where}: {context['error'] if 'error' in context else _plain(first)}"


def _nearest(given: str, known: list[str]) -> str:
    close = difflib.get_close_matches(given, known, n=1)
    listed = ", ".join(known)
    return f"did you mean {close[0]!r}?" if close else f"expected one of {listed}"


def _rank(error: ErrorDetails) -> int:
    """An unknown key first: a misspelt key is also a missing one."""
    return 0 if error["type"] == "extra_forbidden" else 1


def _plain(error: ErrorDetails) -> str:
    if error["type"] in ("model_type", "model_attributes_type"):
        return "expected a mapping, as in {key: value}"
    if error["type"] == "string_pattern_mismatch":
        return "expected letters, digits, dots, hyphens and underscores"
    return error["msg"].replace("Input should be", "expected")


def _locate(loc: tuple[int | str, ...], data: Any, *, missing: bool) -> KeyPath:
    """The path in the YAML: pydantic's location without the union tags in it."""
    path: list[str | int] = []
    node = data
    for index, part in enumerate(loc):
        inside = (isinstance(node, dict) and part in node) or (
            isinstance(node, list) and isinstance(part, int) and part < len(node)
        )
        if inside:
            path.append(part)
            node = node[part]
        elif missing and index == len(loc) - 1:
            path.append(part)
    return tuple(path)


def _known_keys(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The keys that the model at ``loc`` has."""
    current: Any = model
    for part in loc[:-1]:
        candidates = _models(current)
        field = next(
            (m.model_fields[str(part)] for m in candidates if str(part) in m.model_fields), None
        )
        if field is not None:
            current = field.annotation
        else:
            current = next((m for m in candidates if _is_tagged(m, str(part))), current)
    return sorted({key for m in _models(current) for key in m.model_fields})


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for argument in get_args(annotation) for m in _models(argument)]


def _is_tagged(candidate: type[BaseModel], tag: str) -> bool:
    kind = candidate.model_fields.get("kind")
    return candidate.__name__ == tag or (kind is not None and tag in get_args(kind.annotation))


def _get(data: Any, path: KeyPath) -> Any:
    for part in path:
        data = data[part]
    return data
