"""The text of a first spec: the user's answers, and comments that explain each key."""

import re
from pathlib import Path
from typing import Any

import yaml

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*")
_WORDS = ("true", "false", "null")


def starter_spec(**answers: Any) -> str:
    """The commented YAML. It is invalid if the answers are: parse it to check.

    Args:
        answers: the names in ``starter_spec.yaml.jinja``. The ends of a range and ε are texts, as
            typed; ``data`` is relative to the spec.
    """
    # Jinja is loaded only when a spec is written.
    from labeldp_compile.tools.page.document import text_of  # noqa: PLC0415

    return text_of(Path(__file__).with_suffix(".yaml.jinja"), {"scalar": scalar}, **answers)


class Literal(str):
    """A number as it was typed."""


def scalar(value: str | int) -> str:
    """A YAML scalar: text stays text."""
    if isinstance(value, int | Literal):
        return str(value)
    if _PLAIN.fullmatch(value) and value not in _WORDS:
        return value
    quoted: str = yaml.safe_dump(value, allow_unicode=True, default_style='"', width=2**31)
    return quoted.strip()
