"""The three scenes of docs/scenes.md run, print what is shown, and are short."""

import re

import pytest

from tests.docs.blocks import blocks_of
from tests.docs.console import NOT_SHOWN, ROOT, examples, is_shown, run_all

pytestmark = pytest.mark.slow

TEXT = (ROOT / "docs" / "scenes.md").read_text(encoding="utf-8")
MOST_COMMANDS = 8


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes")
    for block in blocks_of("scenes.md"):
        if block.file_name:
            (folder / block.file_name).write_text(block.text, encoding="utf-8")
    return run_all(TEXT, folder)


def test_each_scene_has_at_most_eight_commands():
    scenes = re.split(r"^## ", TEXT, flags=re.M)[1:]
    assert len(scenes) == 3
    assert all(1 < len(examples(scene)) <= MOST_COMMANDS for scene in scenes)


def test_every_command_prints_what_is_shown(printed):
    for (words, shown), lines in zip(examples(TEXT), printed, strict=True):
        assert len(shown) > shown.count(NOT_SHOWN)
        assert is_shown(shown, lines), (words, lines)
