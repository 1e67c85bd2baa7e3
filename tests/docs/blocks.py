"""The fenced code blocks of a page."""

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


@dataclass(frozen=True)
class Block:
    language: str
    text: str

    @property
    def file_name(self):
        """The name in a first line ``# NAME.py`` or ``# NAME.yaml``, or None."""
        found = re.match(r"# (\S+\.(?:py|yaml))\n", self.text)
        return found and found[1]


def blocks_of(page):
    """The blocks in order; a page without any is a mistake of the caller's."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = [Block(*pair) for pair in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)]
    assert found, page
    return found
