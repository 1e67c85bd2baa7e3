"""The site of docs/ in headless Chromium: no complaint, no request elsewhere, no page too wide."""

import functools
import http.server
import importlib.util
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["404", *sorted(path.stem for path in (ROOT / "docs").glob("*.md"))]
NARROW, WIDE = 390, 1280


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of the site, which a server shows: its search works no other way."""
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", folder]
    subprocess.run(command, cwd=ROOT, check=True)
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_no_page_complains_asks_elsewhere_or_is_too_wide(tab, site):
    assert len(PAGES) > 15
    for name in PAGES:
        for width in (NARROW, WIDE):
            tab.open(f"{site}{name}.html", width=width)
            assert tab.complaints == [], name
            assert all(url.startswith((site, "data:")) for url in tab.requests), name
            assert tab.run("document.documentElement.scrollWidth") == width, name


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_reader_can_switch_the_scheme(tab, site, dark):
    scheme, other = ("dark", "light") if dark else ("light", "dark")
    shown = "document.documentElement.dataset.bsTheme"
    tab.open(f"{site}index.html", dark=dark)
    assert tab.run(shown) == scheme
    click = "document.querySelector('[data-bs-theme-value={}]').click()"
    tab.run(click.format(other))
    assert tab.run(shown) == other
    tab.run(click.format("auto"))
    assert tab.run(shown) == scheme
