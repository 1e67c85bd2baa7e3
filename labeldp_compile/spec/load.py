"""Read a YAML file into a validated spec, or into errors; and the JSON Schema for editors."""

from pathlib import Path

from labeldp_compile.errors import SpecError
from labeldp_compile.spec.model import Spec
from labeldp_compile.spec.public_grid import read_public_grids
from labeldp_compile.spec.validity import resolved
from labeldp_compile.yaml_model import Document

_SPEC = Document("spec", Spec, SpecError)


def load_spec(path: Path) -> tuple[Spec, bytes]:
    """Read and validate a spec file; returns it with its bytes (for the digest).

    Raises SpecError with the file, line and key of every error: the first is its message, the
    others are its notes.
    """
    text, data = _SPEC.read(path)
    return parse_spec(text, str(path), path.parent), data


def parse_spec(text: str, source: str = "spec", directory: Path | None = None) -> Spec:
    """Validate the text of a spec; ``source`` names it in errors.

    Paths of public grids are relative to ``directory``; without one, such a grid is refused.
    """
    spec, yaml = _SPEC.parse(text, source)
    read_public_grids(spec, directory)
    spec, found = resolved(spec)
    if found:
        raise _SPEC.refusal(source, yaml, found)
    return spec


def json_schema() -> str:
    """The schema as indented JSON, with a final newline; the same for the same models."""
    return _SPEC.json_schema("labeldp spec")
