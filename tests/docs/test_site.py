"""The site: its first screen, its code, its colours, its search from a folder."""

import json
import re

import pytest

from tests.docs.conftest import ROOT
from tests.report.test_page import contrast

SHEET = (ROOT / "docs" / "site.css").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_of_the_runtime_is_its_readme_and_has_links_to_it(site):
    page = (site / "runtime.html").read_text(encoding="utf-8")
    assert "Requirements on the file" in page and "runtime/examples" in page
    for name in ("index", "spec", "policy"):
        assert 'href="runtime.html' in (site / f"{name}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_links_and_text_can_be_read(scheme):
    (block,) = re.findall(rf'\[data-md-color-scheme="{scheme}"\] {{(.*?)}}', SHEET, re.S)
    colour = dict(re.findall(r"--md-([\w-]+): (#\w{6});", block))
    for ground in ("default-bg-color", "code-bg-color"):
        for text in ("typeset-a-color", "accent-fg-color", "default-fg-color"):
            assert contrast(colour[text], colour[ground]) >= 4.5, (text, ground)
        assert contrast(colour["default-fg-color--light"], colour[ground]) >= 4.5
    assert contrast("#ffffff", colour["primary-fg-color"]) >= 4.5


@pytest.mark.slow
def test_what_search_needs_in_a_folder_is_there(site):
    """A page that is no answer of a server can load scripts, but neither JSON nor workers."""
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    found = json.loads(index.removeprefix("var __index = "))
    assert any("ledger" in entry["text"] for entry in found["docs"])
    scripts = re.findall(r'<script src="([^"]*)"', (site / "index.html").read_text("utf-8"))
    assert "iframe-worker.js" in scripts
    assert all((site / name).is_file() for name in scripts)
