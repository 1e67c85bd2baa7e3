"""The site of docs/ in headless Chromium, from its folder: no complaint, no request elsewhere, no
page too wide, links that can be read, search, buttons that copy."""

import functools
import http.server
import threading
import time
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

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


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(site):
    """The address of a server that shows the folder."""
    handler = functools.partial(_Quiet, directory=url2pathname(urlparse(site).path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


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


def test_a_server_s_page_for_what_is_not_there(tab, served):
    tab.open(f"{served}404.html")
    assert tab.complaints == [] and "no such page" in tab.run("document.body.innerText")
    assert all(url.startswith((served, "data:")) for url in tab.requests)


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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_reader_can_switch_the_scheme(tab, site, dark):
    shown = "document.body.dataset.mdColorScheme"
    tab.open(f"{site}index.html", dark=dark)
    tab.run("localStorage.clear()")
    tab.open(f"{site}index.html", dark=dark)
    assert tab.run(shown) == ("slate" if dark else "default")
    choose = "document.querySelectorAll('[name=__palette]')[{}].click()"
    for index, scheme in ((1, "default"), (2, "slate"), (0, "slate" if dark else "default")):
        tab.run(choose.format(index))
        assert until(tab, f"{shown} === '{scheme}'")


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


def test_buttons_copy_commands_without_prompts_and_answers(tab, site):
    tab.open(f"{site}tutorial.html")
    copied = tab.run("""[...document.querySelectorAll('.language-console code')].map((code) => {
        code.setAttribute('data-md-copying', '');
        return code.innerText.trimEnd();
    })""")
    assert copied[0] == "labeldp plan visits.yaml"
    until(tab, "document.querySelectorAll('pre button[data-clipboard-target]').length")
