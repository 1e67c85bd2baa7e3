"""From a YAML file to a validated spec, or to one message that names file, line and key."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from labeldp_compile.errors import SpecError
from labeldp_compile.spec.auto import resolve_auto
from labeldp_compile.spec.model import Spec
from labeldp_compile.spec.validity import check_validity
from labeldp_compile.spec.yaml_source import YamlError, YamlSource, read_yaml
from labeldp_compile.yaml_tree import MAX_BYTES, WAY_OUT


def load_spec(path: Path) -> tuple[Spec, bytes]:
    """Read and validate a spec file; returns it with its bytes (for the digest).

    Raises SpecError with file, line and key.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise SpecError(f"{path}: a spec has at most {MAX_BYTES:,} bytes: {WAY_OUT}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: a spec is UTF-8 text") from error
    return parse_spec(text, str(path)), data


def parse_spec(text: str, source: str = "spec") -> Spec:
    """Validate the text of a spec; ``source`` names it in errors."""
    try:
        yaml = read_yaml(text)
    except YamlError as error:
        raise SpecError(f"{source}:{error.line}: {error}") from error
    if not isinstance(yaml.data, dict):
        raise SpecError(f"{source}:1: expected a mapping with the keys of a spec")
    try:
        spec = Spec.model_validate(yaml.data)
    except ValidationError as error:
        raise SpecError(_explain(error.errors(), yaml, source)) from error
    spec = resolve_auto(spec)
    problem = check_validity(spec)
    if problem:
        key, reason = problem
        raise SpecError(f"{source}:{yaml.line(key)}: {'.'.join(key)}: {reason}")
    return spec


def _explain(errors: list[ErrorDetails], yaml: YamlSource, source: str) -> str:
    first = min(errors, key=_rank)
    path = _locate(first["loc"], yaml.data, first["type"] == "missing")
    where = f"{source}:{yaml.line(path)}: {'.'.join(str(part) for part in path) or 'spec'}"
    kind, context = first["type"], first.get("ctx", {})
    if kind == "extra_forbidden":
        known = _known_keys(first["loc"])
        close = difflib.get_close_matches(str(path[-1]), known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(known)}"
        return f"{where}: unknown key; {hint}"
    if kind == "missing":
        return f"{where}: this key is missing"
    if kind in ("literal_error", "union_tag_invalid"):
        expected = str(context.get("expected") or context.get("expected_tags"))
        given = _get(yaml.data, path)
        given = given.get("kind") if isinstance(given, dict) else given
        options = [part.strip(" '") for part in expected.replace(" or ", ", ").split(",")]
        close = difflib.get_close_matches(str(given), options, n=1)
        hint = f"; did you mean {close[0]!r}?" if close and close[0] != given else ""
        suffix = ".kind" if kind == "union_tag_invalid" else ""
        return f"{where}{suffix}: {given!r} is not one of {', '.join(options)}{hint}"
    if kind == "union_tag_not_found":
        return f"{where}: the key 'kind' is missing"
    message = str(context["error"]) if "error" in context else _plain(first)
    return f"{where}: {message}"


def _rank(error: ErrorDetails) -> int:
    """Which error to show: the one of least rank.

    An unknown key is the likeliest cause of the others (a misspelt key is also a missing one); that
    a mapping is no fixed word says least.
    """
    if error["type"] == "extra_forbidden":
        return 0
    fixed_word = error["type"] == "literal_error"
    return 2 if fixed_word and isinstance(error["input"], dict) else 1


def _plain(error: ErrorDetails) -> str:
    if error["type"] in ("model_type", "model_attributes_type"):
        return "expected a mapping, as in {key: value}"
    if error["type"] == "string_pattern_mismatch":
        return "expected letters, digits, dots, hyphens and underscores"
    return error["msg"].replace("Input should be", "expected")


def _locate(loc: tuple[int | str, ...], data: Any, missing: bool) -> tuple[str | int, ...]:
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


def _known_keys(loc: tuple[int | str, ...]) -> list[str]:
    """The keys that the model at ``loc`` has."""
    current: Any = Spec
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


def _get(data: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        data = data[part]
    return data
