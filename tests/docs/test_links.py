"""Links and anchors of every page lead somewhere; the site builds strictly, from local files."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for pattern in (
        "*.md",
        "docs/*.md",
        "runtime/*.md",
        "learn/*.md",
        "runtime/examples/**/*.md",
        "trainer/*.md",
    )
    for path in sorted(ROOT.glob(pattern))
    if "node_modules" not in path.parts
]


def text_of(page):
    """The page without code, in which brackets mean other things."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page):
    """The anchors that GitHub and mkdocs both make of ASCII headings."""
    headings = re.findall(r"^#+ +(.+)$", page.read_text(encoding="utf-8"), re.M)
    plain = (re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip() for heading in headings)
    return {re.sub(r"\s", "-", heading.lower()) for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target


class _Requests(HTMLParser):
    """Addresses that a browser loads by itself: everything but where a reader clicks."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if tag != "a" and name in ("src", "href", "srcset", "data", "action") and value:
                self.found.add(value)


@pytest.mark.slow
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").glob("*.md")))
    for page in pages:
        parser = _Requests()
        parser.feed(page.read_text(encoding="utf-8"))
        assert parser.found
        assert not [link for link in parser.found if re.match(r"([a-z]+:)?//", link)], page.name
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"(url\(|@import)\s*['\"]?([a-z]+:)?//", text), sheet.name
