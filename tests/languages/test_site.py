"""The site of docs/ in headless Chromium, from its folder: no complaint, no request elsewhere, no
page too wide, links that can be read, search, buttons that copy."""

import time
from pathlib import Path

import pytest

from tests.docs.conftest import build_site
from tests.languages.test_report_page import FAINT

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))
NARROW, WIDE = 390, 1280
SECONDS = 60  # the longest that a search may take on a busy machine


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of the folder."""
    folder = tmp_path_factory.mktemp("site")
    build_site(folder)
    return f"{folder.as_uri()}/"


def until(tab, expression):
    """The value of the expression as soon as it is one."""
    deadline = time.monotonic() + SECONDS
    while not (value := tab.run(expression)):
        assert time.monotonic() < deadline, expression
        time.sleep(0.05)
    return value


def test_no_page_complains_asks_elsewhere_or_is_too_wide(tab, site):
    assert len(PAGES) > 15
    for name in PAGES:
        for width in (NARROW, WIDE):
            tab.open(f"{site}{name}.html", width=width)
            assert tab.complaints == [], name
            assert all(url.startswith((site, "data:")) for url in tab.requests), name
            assert tab.run("document.documentElement.scrollWidth") == width, name


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["index", "commands", "mechanisms"])
def test_what_is_read_stands_out(tab, site, name, dark):
    """In the article and the navigation; what shows only under a pointer is left out."""
    tab.open(f"{site}{name}.html", dark=dark)
    tab.run(
        "document.querySelectorAll('.headerlink, .md-search, .md-skip, .md-top').forEach("
        "(e) => e.remove())"
    )
    result = tab.run(FAINT)
    assert result["seen"] > 50 and result["faint"] == []


def test_search_finds_pages_without_a_server(tab, site):
    tab.open(f"{site}index.html")
    tab.run("""(() => {
        const field = document.querySelector('input[name=query]');
        field.focus();
        field.value = 'ledger';
        field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true, key: 'r'}));
    })()""")
    found = "[...document.querySelectorAll('.md-search-result__link')].map((a) => a.href)"
    until(tab, "document.querySelectorAll('.md-search-result__link').length")
    assert any(link.startswith(f"{site}ledger.html") for link in tab.run(found))
    assert tab.complaints == []
    assert all(url.startswith((site, "data:", "about:")) for url in tab.requests)
