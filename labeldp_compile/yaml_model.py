"""From a YAML file to a validated model, or to one message that names file, line and key.

Specs and training configs are read by it.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails

from labeldp_compile.errors import InputError
from labeldp_compile.yaml_tree import MAX_BYTES, WAY_OUT, KeyPath, YamlError, YamlSource, read_yaml


def explain(
    errors: list[ErrorDetails], yaml: YamlSource, model: type[BaseModel], whole: str
) -> tuple[int, str]:
    """Line and message of the likeliest cause among pydantic's errors.

    ``model`` is what was validated; ``whole`` is what an error is about that is in no key of it.
    """
    first = min(errors, key=_rank)
    path = _locate(first["loc"], yaml.data, missing=first["type"] == "missing")
    key = ".".join(map(str, path)) or whole
    if first["type"] == "union_tag_invalid":
        key += ".kind"
    return yaml.line(path), f"{key}: {_reason(first, path, yaml.data, model)}"


def _reason(error: ErrorDetails, path: KeyPath, data: Any, model: type[BaseModel]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown key; {_nearest(str(path[-1]), _known_keys(model, error['loc']))}"
    if kind == "missing":
        return "this key is missing"
    if kind in ("literal_error", "union_tag_invalid"):
        given = _get(data, path)
        given = given.get("kind") if isinstance(given, dict) else given
        expected = str(context.get("expected") or context.get("expected_tags"))
        options = [part.strip(" '") for part in expected.replace(" or ", ", ").split(",")]
        if isinstance(given, str):
            return f"{given!r} is unknown; {_nearest(given, options)}"
        return f"{given!r} is not one of {', '.join(options)}"
    if kind == "union_tag_not_found":
        return "the key 'kind' is missing"
    return str(context["error"]) if "error" in context else _plain(error)


def _nearest(given: str, known: list[str]) -> str:
    """The way out of a misspelling; where the word is right (but quoted), what may stand there."""
    close = difflib.get_close_matches(given, known, n=1)
    if close and close[0] != given:
        return f"did you mean {close[0]!r}?"
    return f"expected one of {', '.join(known)}"


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


MAX_DIGITS = 100
MAX_EXPONENT = 100


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("expected a number")
    number = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise ValueError("expected a finite number")
    digits = number.as_tuple()
    if len(digits.digits) > MAX_DIGITS or (number and abs(number.adjusted()) > MAX_EXPONENT):
        raise ValueError(f"expected a number between 1e-{MAX_EXPONENT} and 1e{MAX_EXPONENT}")
    return number


Number = Annotated[Decimal, BeforeValidator(_number), WithJsonSchema({"type": "number"})]


class Strict(BaseModel):
    """Forbids unknown keys and later changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Document(Generic[M]):
    """A kind of YAML file.

    Attributes:
        name: of the kind, in messages: "spec".
        model: what it holds.
        error: what is raised for one that is wrong, with the one message.
    """

    name: str
    model: type[M]
    error: type[InputError]

    def read(self, path: Path) -> tuple[str, bytes]:
        """The text of a file, and its bytes. Raises ``error``."""
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise self.error(f"{path}: cannot be read: {error.strerror}") from error
        if len(data) > MAX_BYTES:
            raise self.error(f"{path}: a {self.name} has at most {MAX_BYTES:,} bytes: {WAY_OUT}")
        try:
            return data.decode("utf-8"), data
        except UnicodeDecodeError as error:
            raise self.error(f"{path}: a {self.name} is UTF-8 text") from error

    def parse(self, text: str, source: str) -> tuple[M, YamlSource]:
        """The model in a text and its lines; ``source`` names it in messages. Raises ``error``."""
        try:
            yaml = read_yaml(text)
        except YamlError as error:
            raise self.error(f"{source}:{error.line}: {error}") from error
        if not isinstance(yaml.data, dict):
            raise self.error(f"{source}:1: expected a mapping with the keys of a {self.name}")
        try:
            return self.model.model_validate(yaml.data), yaml
        except ValidationError as error:
            line, message = explain(error.errors(), yaml, self.model, self.name)
            raise self.error(f"{source}:{line}: {message}") from error
