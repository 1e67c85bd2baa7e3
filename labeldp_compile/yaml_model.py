"""Read a YAML file into a validated model, or into errors that name file, line and key.

Specs, training configs and policies are read this way. ``Strict``, ``Number``, ``Category`` and
``TextData`` are fields that they share.
"""

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from labeldp_verify.errors import read_at_most
from labeldp_verify.printable import one_line, printable, width
from labeldp_verify.strict import MAX_EXPONENT, is_moderate
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import ErrorDetails

from labeldp_compile.errors import InputError
from labeldp_compile.ledger_url import hidden
from labeldp_compile.tabular.formats import TextForm, read_delimiter, read_encoding
from labeldp_compile.yaml_source import (
    MAX_BYTES,
    WAY_OUT,
    KeyPath,
    Place,
    YamlError,
    YamlSource,
    lines_of,
    read_yaml,
)


def _explained(
    errors: list[ErrorDetails], yaml: YamlSource, model: type[BaseModel]
) -> tuple[list[tuple[KeyPath, str]], int]:
    """Pydantic's errors in the words and lines of the YAML, and how many there are.

    The list holds at most ``MAX_SHOWN``. Errors that only follow from others are left out.
    ``model`` is what was validated.
    """
    found: dict[KeyPath, ErrorDetails] = {}
    for error in sorted(errors, key=_rank):
        found.setdefault(_located(error, yaml.data), error)
    # Of a union's alternatives, keep the errors of those that fit better.
    around = {path[:length] for path in found for length in range(len(path))}
    of_weight = [path for path, error in found.items() if not _rank(error) or path not in around]
    paths = sorted(of_weight, key=yaml.place)
    unknown = [path for path in paths if found[path]["type"] == "extra_forbidden"][:MAX_SHOWN]
    misspelt = {
        (*path[:-1], _meant(str(path[-1]), _known_keys(model, found[path]["loc"])))
        for path in unknown
    }
    paths = [p for p in paths if p not in misspelt or found[p]["type"] != "missing"]
    return [(path, _reason(found[path], path, model)) for path in paths[:MAX_SHOWN]], len(paths)


_FIXED = {
    "missing": "this key is missing",
    "union_tag_not_found": "the key 'kind' is missing",
    "string_pattern_mismatch": "expected letters, digits, dots, hyphens and underscores",
}
_BOUNDS = {  # the words of pydantic
    "Input should be greater than or equal to": "must be at least",
    "Input should be less than or equal to": "must be at most",
    "Input should be greater": "must be greater",
    "Input should be less": "must be less",
    "Input should be": "expected",
}


def _reason(error: ErrorDetails, path: KeyPath, model: type[BaseModel]) -> str:
    kind, context, given = error["type"], error.get("ctx", {}), error["input"]
    if kind == "extra_forbidden":
        return f"unknown key; {_nearest(str(path[-1]), _known_keys(model, error['loc']))}"
    if kind in ("literal_error", "union_tag_invalid"):
        given = given if kind == "literal_error" else given["kind"]
        expected = str(context.get("expected") or context.get("expected_tags"))
        options = [part.strip(" '") for part in expected.replace(" or ", ", ").split(",")]
        if kind == "literal_error" and _models(_annotation(model, error["loc"])):
            options.append(_example(path, None, model, error["loc"]))
        if isinstance(given, str):
            return f"{given!r} is unknown; {_nearest(given, options)}"
        shown = str(given) if isinstance(given, Decimal) else one_line(repr(given), _SHOWN)
        return f"{shown} is not one of {', '.join(options)}"
    if kind in ("model_type", "model_attributes_type"):
        return f"expected a mapping, as in {_example(path, given, model, error['loc'])}"
    if kind == "missing" and _models(_annotation(model, error["loc"])):
        return f"{_FIXED[kind]}, as in {_example(path, None, model, error['loc'])}"
    plain = _FIXED.get(kind) or error["msg"]
    for theirs, ours in _BOUNDS.items():
        plain = plain.replace(theirs, ours)
    return str(context.get("error", plain))


def _example(path: KeyPath, given: Any, model: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    """The mapping to write instead of another value; a known kind is completed."""
    models = _models(_annotation(model, loc))
    kinds = {tag: part for part in models for tag in _tags(part)}
    name = _meant(given, list(kinds)) if isinstance(given, str) else None
    if kinds and name is None:
        keys = [f"kind: {' or '.join(kinds)}"]
    else:
        wanted = models[0] if name is None else kinds[name]
        fields = wanted.model_fields.items()
        keys = [] if name is None else [f"kind: {name}"]
        keys += [f"{key}: …" for key, field in fields if field.is_required() and key != "kind"]
    before = f"{path[-1]}: " if path and isinstance(path[-1], str) else ""
    return f"{before}{{{', '.join(keys)}}}"


def _meant(given: str, known: list[str]) -> str | None:
    """The known word that the user probably meant."""
    return next(iter(difflib.get_close_matches(given, known, n=1)), None)


def _nearest(given: str, known: list[str]) -> str:
    """A suggestion for a misspelled word; for a right one that does not fit, the possible ones."""
    meant = _meant(given, known)
    if meant is not None and meant != given:
        return f"did you mean {meant!r}?"
    return f"expected one of {', '.join(known)}"


def _rank(error: ErrorDetails) -> int:
    """Of several errors at one place, the one with the lowest rank is shown.

    An unknown key is the most likely cause of the others: a misspelled key is also a missing one.
    That a mapping is not a fixed word says least.
    """
    if error["type"] == "extra_forbidden":
        return 0
    fixed_word = error["type"] == "literal_error"
    return 2 if fixed_word and isinstance(error["input"], dict) else 1


def _located(error: ErrorDetails, data: Any) -> KeyPath:
    """The path in the YAML: pydantic's location without the union tags in it."""
    path: list[str | int] = []
    for part in error["loc"]:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):  # a tag, or what is missing
            continue
        path.append(part)
    last = {"missing": error["loc"][-1:], "union_tag_invalid": ("kind",)}
    return (*path, *last.get(error["type"], ()))


def _known_keys(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The keys that the model at ``loc`` has."""
    return sorted({key for m in _models(_annotation(model, loc[:-1])) for key in m.model_fields})


def _annotation(model: type[BaseModel], loc: tuple[int | str, ...]) -> Any:
    """The type of what stands at ``loc``, as far as models tell."""
    current: Any = model
    for part in loc:
        candidates = _models(current)
        # Of several models the part says which, even where its name is also that of a key.
        tagged = next((m for m in candidates if _is_tagged(m, str(part))), None)
        field = next(
            (m.model_fields[str(part)] for m in candidates if str(part) in m.model_fields), None
        )
        if tagged is not None and (field is None or len(candidates) > 1):
            current = tagged
        elif field is not None:
            current = field.annotation
    return current


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for argument in get_args(annotation) for m in _models(argument)]


def _tags(candidate: type[BaseModel]) -> tuple[str, ...]:
    kind = candidate.model_fields.get("kind")
    return () if kind is None else get_args(kind.annotation)


def _is_tagged(candidate: type[BaseModel], tag: str) -> bool:
    return candidate.__name__ == tag or tag in _tags(candidate)


_SHOWN = 60


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("expected a number")
    number = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise ValueError("expected a finite number")
    if not is_moderate(number):
        raise ValueError(f"expected a number between 1e-{MAX_EXPONENT} and 1e{MAX_EXPONENT}")
    return number


Number = Annotated[Decimal, BeforeValidator(_number), WithJsonSchema({"type": "number"})]


class Strict(BaseModel):
    """Forbids unknown keys and later changes."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        defer_build=True,  # parts are built once, in the whole that they are validated in
    )


M = TypeVar("M", bound=BaseModel)


_KINDS = {
    ("label", "privacy"): "a spec; labeldp plan and compile read it",
    ("data", "method"): "a training config; labeldp train reads it",
}
"""Of two kinds of files that are easily taken for each other: keys that only they have."""


@dataclass(frozen=True)
class Document(Generic[M]):
    """A kind of YAML file.

    Attributes:
        name: of the kind, in messages: "spec".
        model: what it holds.
        error: the error to raise for a wrong file; see ``refusal_at``.
    """

    name: str
    model: type[M]
    error: type[InputError]

    def read(self, path: Path) -> tuple[str, bytes]:
        """The text of a file, and its bytes. Raises ``error``."""
        data = read_at_most(path, MAX_BYTES + 1, self.error)
        if len(data) > MAX_BYTES:
            raise self.error(f"{path}: a {self.name} has at most {MAX_BYTES:,} bytes: {WAY_OUT}")
        try:
            return data.decode("utf-8"), data
        except UnicodeDecodeError as error:
            raise self.error(f"{path}: a {self.name} must be UTF-8 text") from error

    def parse(self, text: str, source: str) -> tuple[M, YamlSource]:
        """The model in a text and its lines; ``source`` names it in messages. Raises ``error``."""
        try:
            yaml = read_yaml(text)
        except YamlError as error:
            place = error.line, error.column
            raise refusal_at(self.error, source, text, [(place, str(error))]) from error
        if not isinstance(yaml.data, dict):
            wrong = f"expected a mapping with the keys of a {self.name}"
            raise refusal_at(self.error, source, text, [(yaml.place(()), wrong)])
        for keys, kind in _KINDS.items():
            if all(key in yaml.data and key not in self.model.model_fields for key in keys):
                raise self.error(f"{source}: expected a {self.name}, and this is {kind}")
        try:
            return self.model.model_validate(yaml.data), yaml
        except ValidationError as error:
            problems, number = _explained(error.errors(), yaml, self.model)
            raise self.refusal(source, yaml, problems, number) from error

    def refusal(
        self,
        source: str,
        yaml: YamlSource,
        problems: Sequence[tuple[KeyPath, str]],
        number: int | None = None,
    ) -> InputError:
        """The ``error`` for problems with keys; each is a path and a reason.

        An empty path means the whole document. ``number`` is how many problems there are, if
        ``problems`` holds only those to show.
        """
        named = [
            (yaml.place(path), f"{'.'.join(map(str, path)) or self.name}: {reason}")
            for path, reason in problems
        ]
        return refusal_at(self.error, source, yaml.text, named, number)

    def json_schema(self, title: str) -> str:
        """The JSON Schema (draft 7) as indented text, with a final newline; for editors."""
        schema = _draft7(self.model.model_json_schema())
        document = {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": title,
            **{key: value for key, value in schema.items() if key != "title"},
        }
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


# Keywords with other names in draft 7. Pydantic keeps its own names for the limits of numbers that
# a function reads.
_DRAFT7 = {
    "$defs": "definitions",
    "prefixItems": "items",
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
}


def _draft7(node: Any) -> Any:
    """Rename keywords for draft 7, and drop the OpenAPI keyword ``discriminator``."""
    if isinstance(node, dict):
        return {
            _DRAFT7.get(key, key): _draft7(value)
            for key, value in node.items()
            if key != "discriminator"
        }
    if isinstance(node, list):
        return [_draft7(item) for item in node]
    return node.replace("#/$defs/", "#/definitions/") if isinstance(node, str) else node


MAX_SHOWN = 20
_BEFORE, _LINE = 60, 100  # characters of a line that are shown: at most before the caret, in all
_ELLIPSIS = "…"

Refusal = TypeVar("Refusal", bound=InputError)


def refusal_at(
    kind: type[Refusal],
    source: str,
    text: str,
    problems: Sequence[tuple[Place, str]],
    number: int | None = None,
) -> Refusal:
    """The error for one or more problems in a text; each is a place and a message.

    ``source`` names the text. The first problem is the error's message. Its notes, which tracebacks
    show too, are excerpts of the text, the other messages, and how many there are. ``number`` is
    that count if ``problems`` holds only those to show.
    """
    lines, shown = lines_of(text), problems[:MAX_SHOWN]
    messages = [f"{source}:{line}: {message}" for (line, _), message in shown]
    error = kind(messages[0])
    for message, (place, _) in zip(messages, shown, strict=True):
        if message is not messages[0]:
            error.add_note(printable(f"labeldp: {message}"))
        for excerpt in _excerpt(lines, *place):
            error.add_note(excerpt)
    number = number or len(problems)
    if number > 1:
        more = "" if number == len(shown) else f", of which {MAX_SHOWN} are shown"
        error.add_note(printable(f"labeldp: {source}: {number:,} errors{more}"))
    return error


def _excerpt(lines: Sequence[str], line: int, column: int) -> list[str]:
    """The line and a caret under the column; only a part of a long line."""
    text = hidden(lines[line - 1]) if line <= len(lines) else ""
    if not text.strip():
        return []
    # A tab is not printable, and its width depends on the terminal.
    before, rest = text[:column].replace("\t", " "), text[column:].replace("\t", " ")
    if len(before) > _BEFORE:
        before = _ELLIPSIS + before[-_BEFORE:]
    room = _LINE - len(before)
    if len(rest) > room:
        rest = rest[:room] + _ELLIPSIS
    number = f"{line:>6} | "
    caret = " " * width(number + printable(before)) + "^"
    return [number + printable(before + rest), caret]


def _category(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("expected text or an integer: put it in quotes to make it text")
    return value


Category = Annotated[StrictStr | StrictInt, BeforeValidator(_category)]
"""Text, or an integer."""

Delimiter = Annotated[str, AfterValidator(read_delimiter)]
Encoding = Annotated[str, AfterValidator(read_encoding)]


class TextData(Strict):
    """A file that may be CSV, and what its text does not state."""

    delimiter: Delimiter | None = Field(
        None,
        description="CSV: the character between cells, such as ';' (default: a comma; a tab in "
        ".tsv)",
    )
    encoding: Encoding | None = Field(
        None, description="CSV: the encoding, such as latin-1 (default: utf-8)"
    )
    decimal: Literal[".", ","] | None = Field(
        None, description="CSV: the decimal mark of numbers (default: a point)"
    )
    multiline_cells: bool = Field(
        False, description="CSV: quoted cells that are no label are meant to contain line ends"
    )

    @property
    def form(self) -> TextForm:
        """The form of the file, if it is text."""
        return TextForm(self.delimiter, self.encoding, self.decimal, self.multiline_cells)
