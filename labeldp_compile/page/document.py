"""Pages from templates: all text is escaped, no request is allowed, and no script runs."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from labeldp_verify.forms import Output
from labeldp_verify.printable import at_most, clipped, printable
from markupsafe import Markup

_COLOURS = {
    "page": ("#ffffff", "#14171a"),
    "panel": ("#f3f5f7", "#1e2328"),
    "ink": ("#1a1a1a", "#e9eaec"),
    "soft": ("#565c63", "#abb2b9"),
    "grid": ("#cfd4d9", "#3d454d"),
    "accent": ("#1f5fa8", "#6fb3f7"),
    "mark": ("#b3470c", "#f2955c"),
    "good": ("#1b6a34", "#74d08e"),
    "mind": ("#7a4700", "#f0bd62"),
    "bad": ("#b0241c", "#ff9389"),
    "alarm": ("#fdeceb", "#3c1a18"),
    "amber": ("#fdf1d8", "#36290f"),
    "best": ("#e4f1e7", "#1d3926"),
}
LIGHT = {name: light for name, (light, _) in _COLOURS.items()}
DARK = {name: dark for name, (_, dark) in _COLOURS.items()}


def css_variables() -> str:
    """CSS rules with one variable per colour; printed pages use the light scheme."""
    light, dark = (
        " ".join(f"--{name}: {colour};" for name, colour in scheme.items())
        for scheme in (LIGHT, DARK)
    )
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LEAST, _MOST = 1e-4, 1e9  # outside this range, a power of ten is easier to read
_NAME_COLUMNS = 40


def plain(number: float | Fraction, digits: int = 5) -> str:
    """``1,234.5``, ``0.00123`` or ``3.1 × 10⁻¹⁵``, with at most ``digits`` significant digits."""
    value = float(number)
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    mantissa, exponent = f"{abs(value):.{digits - 1}e}".split("e")
    sign, power = "−" if value < 0 else "", int(exponent)
    if _LEAST <= abs(value) < _MOST:
        text = f"{abs(value):,.{max(digits - 1 - power, 0)}f}"
        return sign + (text.rstrip("0").rstrip(".") if "." in text else text)
    mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{sign}{mantissa} × 10{str(power).translate(_SUPERSCRIPTS)}"


def rounded_up(bound: Fraction, digits: int) -> str:
    """An upper bound ≥ 0 with at most ``digits`` significant digits, rounded up."""
    return plain(float(at_most(bound, digits)), digits)


def data(number: float | Fraction, digits: int = 5, field: str | None = None) -> Markup:
    """HTML: the number for people, and all its digits for machines.

    ``field`` is the path of the certificate's field with this number.
    """
    return _data(number, plain(number, digits), field)


def share_data(share: float, digits: int = 3) -> Markup:
    """HTML: a probability as a percentage, and all its digits for machines.

    It is 100% only where the probability is exactly 1.
    """
    texts = (plain(100 * share, more) for more in range(digits, 18))
    shown = plain(100 * share, digits)
    if share < 1:
        shown = next((text for text in texts if text != "100"), shown)
    return _data(share, f"{shown}%", None)


def data_above(bound: Fraction, digits: int = 5, field: str | None = None) -> Markup:
    """HTML: an upper bound ≥ 0, rounded up so that the shown number is also a bound."""
    return _data(bound, rounded_up(bound, digits), field)


def name(item: Output | float, columns: int = _NAME_COLUMNS) -> str | Markup:
    """A label or an output: a number for people and machines, or a category as clipped text."""
    return clipped(item, columns) if isinstance(item, str) else data(item, 6)


def _data(number: float | Fraction, text: str, field: str | None) -> Markup:
    value = number if isinstance(number, Fraction) else repr(number)
    named = "" if field is None else Markup(' data-field="{}"').format(field)
    return Markup('<data value="{}"{}>{}</data>').format(value, named, text)


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
