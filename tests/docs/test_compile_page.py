"""docs/compile.md: its commands print what it shows."""

from tests.docs.blocks import DOCS
from tests.docs.console import examples, is_shown, run_all


def test_its_commands_print_what_is_shown(tmp_path):
    text = (DOCS / "compile.md").read_text(encoding="utf-8")
    for (words, shown), lines in zip(examples(text), run_all(text, tmp_path), strict=True):
        assert is_shown(shown, lines), (words, lines)
