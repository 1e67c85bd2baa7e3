"""Pages from templates: all text is escaped, no request is allowed, and no script runs."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from labeldp_verify.printable import printable
from markupsafe import Markup

from labeldp_compile.tools.page.numbers import data, data_above, name, plain, share_data
from labeldp_compile.tools.page.palette import css_variables

_PACKAGE = Path(__file__).parents[1]
_STYLE = Path(__file__).with_name("page.css")
_OPTIONS: dict[str, Any] = {
    "undefined": StrictUndefined,
    "trim_blocks": True,
    "lstrip_blocks": True,
    "keep_trailing_newline": True,
}


def page(template: str, title: str, folder: Path = _PACKAGE, **facts: object) -> str:
    """A whole page, from a template of this package or of ``folder`` and its facts.

    ``title`` is plain text. No script runs on a page, so text from an artifact would stay text even
    without escaping. Characters that a browser obeys in plain text (controls, marks of direction)
    are shown as U+FFFD.
    """
    style = Markup(css_variables() + _STYLE.read_text(encoding="utf-8"))  # noqa: S704  # ours
    return _environment(folder).get_template(template).render(title=title, style=style, **facts)


def _shown(value: Any) -> Any:
    """The value of a template's expression before it is escaped."""
    return value if isinstance(value, Markup) else printable(str(value))


def text_of(
    template: Path, filters: Mapping[str, Callable[[str], str]] | None = None, **facts: object
) -> str:
    """The text of a template that is not HTML, with its facts."""
    known = _texts(template.parent, frozenset((filters or {}).items()))
    return known.get_template(template.name).render(**facts)


@cache
def _texts(folder: Path, filters: frozenset[tuple[str, Callable[[str], str]]]) -> Environment:
    environment = Environment(  # noqa: S701  # not for a browser
        loader=FileSystemLoader(folder), **_OPTIONS
    )
    environment.filters |= dict(filters)
    return environment


@cache
def _environment(folder: Path) -> Environment:
    loader = FileSystemLoader([folder, _PACKAGE])
    environment = Environment(loader=loader, autoescape=True, finalize=_shown, **_OPTIONS)
    environment.filters |= {
        "above": data_above,
        "data": data,
        "name": name,
        "plain": plain,
        "share": share_data,
    }
    return environment
