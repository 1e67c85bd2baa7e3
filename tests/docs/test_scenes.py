"""The three scenes of docs/scenes.md run, print what is shown, and are short."""

import re

import pytest

from labeldp_compile.audits import audit
from tests.docs.pages import NOT_SHOWN, require_shown, run_page, text_of

MOST_COMMANDS = 8


@pytest.mark.slow
def test_each_scene_prints_what_is_shown_in_at_most_eight_commands(tmp_path, limit):
    limit(audit, "_OTHER_ERROR", 1e-10)  # of 1e-7: processes that it starts draw from the kernel
    scenes = re.split(r"^## ", text_of("scenes.md"), flags=re.M)[1:]
    counts = [len(re.findall(r"^\$ ", scene, re.M)) for scene in scenes]
    assert len(counts) == 3 and all(1 < count <= MOST_COMMANDS for count in counts)
    run = run_page("scenes.md", tmp_path)
    require_shown(run)
    assert all(len(it.shown) > it.shown.count(NOT_SHOWN) for it in run.commands)
