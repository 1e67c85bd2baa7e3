"""From a YAML file to a validated spec, or to one message that names file, line and key."""

from __future__ import annotations

from pathlib import Path

from labeldp_compile.errors import SpecError
from labeldp_compile.spec.auto import resolve_auto
from labeldp_compile.spec.model import Spec
from labeldp_compile.spec.validity import check_validity
from labeldp_compile.yaml_model import Document

_SPEC = Document("spec", Spec, SpecError)


def load_spec(path: Path) -> tuple[Spec, bytes]:
    """Read and validate a spec file; returns it with its bytes (for the digest).

    Raises SpecError with file, line and key.
    """
    text, data = _SPEC.read(path)
    return parse_spec(text, str(path)), data


def parse_spec(text: str, source: str = "spec") -> Spec:
    """Validate the text of a spec; ``source`` names it in errors."""
    spec, yaml = _SPEC.parse(text, source)
    spec = resolve_auto(spec)
    problem = check_validity(spec)
    if problem:
        key, reason = problem
        raise SpecError(f"{source}:{yaml.line(key)}: {'.'.join(key)}: {reason}")
    return spec
