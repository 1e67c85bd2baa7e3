"""From a YAML file to a validated model, or to one message that names file, line and key.

Specs and training configs are read by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from labeldp_compile.errors import InputError
from labeldp_compile.explain import explain
from labeldp_compile.yaml_source import YamlError, YamlSource, read_yaml
from labeldp_compile.yaml_tree import MAX_BYTES, WAY_OUT


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
