"""docs/privacy.md: each file that a proof names exists, and has the function that it names."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
PLACES = (
    "",
    "labeldp_compile",
    "verifier/labeldp_verify",
    "trainer/labeldp_trainer",
    "runtime/labeldp_runtime",
)


def test_the_files_and_functions_exist():
    named = re.findall(r"`([\w/]+\.py)(?:: ([\w, ]+))?`", PAGE)
    assert len(named) > 15
    for name, functions in named:
        found = [ROOT / place / name for place in PLACES if (ROOT / place / name).is_file()]
        assert len(found) == 1, name
        text = found[0].read_text(encoding="utf-8")
        for function in filter(None, functions.split(", ")):
            assert re.search(rf"^ *(def|class) {function}\b|^{function} = ", text, re.M), function


def test_every_theorem_names_a_file():
    sections = re.split(r"^## ", PAGE, flags=re.M)
    theorems = [section for section in sections if section.startswith("Theorem")]
    assert len(theorems) >= 8
    for section in theorems:
        assert re.search(r"`[\w/]+\.py", section), section.splitlines()[0]
