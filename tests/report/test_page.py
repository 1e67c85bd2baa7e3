"""The page as a whole: order, safety of what others wrote, files that do not verify."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import ChoiceLoader, DictLoader
from labeldp_verify.printable import printable

from labeldp_compile.page import document
from tests.cli.test_cli import labeldp
from tests.report.conftest import HOSTILE, SPECS
from tests.report.reading import Reader

ORDER = [
    "decision",
    "approval",
    "numbers",
    "summary",
    "checks",
    "matrix",
    "moments",
    "prior",
    "posterior",
    "loss",
    "composition",
    "spec",
]


@pytest.mark.parametrize("name", list(SPECS))
def test_every_form_has_a_page_that_needs_nothing_else(found, pages, name):
    page = Reader(pages(name))
    assert [section for section in page.sections if section] == ORDER
    assert all(link.startswith(("data:", "#")) for link in page.links)
    assert page.handlers == []
    assert "img" not in page.tags and "iframe" not in page.tags and "object" not in page.tags
    assert page.tags.count("script") == 0 and page.tags.count("style") <= 7
    checks = 13 if name == "users" else 12
    assert f"all {checks} checks hold" in page.sections["numbers"]
    says = "Hardly any protection" if name == "users" else "Consistent. No signature was checked."
    assert says in page.sections["decision"]
    assert "Verified" not in page.sections["decision"]
    for check in found[name].report.checks:
        assert check.detail in page.sections["checks"]


def test_the_policy_allows_no_script_and_no_request(pages):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', pages("bins"))[1]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:; ")
    assert "script-src 'none';" in policy


def test_names_of_others_are_shown_and_never_obeyed(pages):
    text = pages("hostile")
    page = Reader(text)
    for name in HOSTILE[:9]:
        assert name.replace("\u202e", "\N{REPLACEMENT CHARACTER}") in page.sections["moments"]
    assert "</title></script><script>alert(3)</script>" in page.sections["summary"]
    assert "\u202e" not in text
    assert page.scripts == []
    assert ">#1a1a1a<" in text and "var(--ink)" not in re.sub(
        r'(style|class)="[^"]*"|<style>.*?</style>', "", text, flags=re.DOTALL
    )


@pytest.mark.slow
def test_the_same_file_gives_the_same_bytes(files, tmp_path, with_pictures):
    one, other = tmp_path / "one.html", tmp_path / "other.html"
    assert labeldp("report", files["hostile"], "-o", one).exit_code == 0
    # In another process, whose hashes of strings differ. Nothing that compiles is loaded there.
    arguments = ["report", str(files["hostile"]), "-o", str(other)]
    code = (
        "import sys; from labeldp_compile.cli import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        "assert 'labeldp_compile.build.assembly' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert one.read_bytes() == other.read_bytes()
    assert Reader(one.read_text(encoding="utf-8")).tags.count("svg") == 4


HOSTILE_WORDS = ["<b>&\"'", "a\u202eb", "{{ 7 * 7 }}", "\x1b[31m", "line\nline", "\udc80"]


@pytest.mark.parametrize("words", HOSTILE_WORDS, ids=ascii)
def test_whatever_a_page_is_given_is_text(words):
    """Through the door that all pages share, whatever the template does with it."""
    templates = DictLoader(
        {
            "x.html": "{% extends 'page/page.html' %}{% from 'page/shapes.html' import table %}"
            "{% block body %}<i title='{{ words }}'>{{ words }}</i>{{ words|name }}"
            "{% call table(words, [words]) %}<tr><td>{{ words ~ words }}</td></tr>{% endcall %}"
            "<script type='application/json'>{{ [words]|tojson }}</script>{% endblock %}"
        }
    )
    door = document._environment(document._PACKAGE)
    text = door.overlay(loader=ChoiceLoader([templates, door.loader])).get_template("x.html")
    page = text.render(title=words, style="", words=words)
    assert "<b>" not in page and "49" not in page
    assert not any(c in page for c in "\u202e\x1b\udc80") and "line\nline" not in page
    assert Reader(page).sections[""].count(printable(words)) >= 7


def test_templates_are_ours_and_none_marks_text_as_safe():
    """The package's own files; what Python marks as safe is made of numbers and escaped text."""
    package = Path(document.__file__).parents[1]
    templates = sorted(package.rglob("*.html"))
    assert {path.name for path in templates} >= {"page.html", "shapes.html", "report.html"}
    for path in templates:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*(safe|forceescape)\b|autoescape", text), path
    assert document._environment(document._PACKAGE).autoescape is True


def test_a_file_that_does_not_verify(files, tmp_path):
    damaged = tmp_path / "damaged.onnx"
    data = bytearray(files["bins"].read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    output = tmp_path / "report.html"
    result = labeldp("report", damaged, "-o", output)
    assert result.exit_code == 1 and "DOES NOT VERIFY" in result.stderr and result.stdout == ""
    page = Reader(output.read_text(encoding="utf-8"))
    assert "DOES NOT VERIFY. Do not use this file." in page.sections[""]
    assert "FAILED" in page.sections["checks"]
    assert (
        "svg" not in page.tags and "data" not in page.tags and list(page.sections) == ["", "checks"]
    )


TEXT = ("ink", "soft", "accent", "mark", "good", "mind", "bad")


def contrast(one, other):
    """The contrast ratio of two colours #rrggbb, 1 … 21 (WCAG 2.2, relative luminance)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour):
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
