"""The scripts of an auditor run, and import only names that the packages hand out themselves."""

import ast
import importlib

import pytest

from tests.docs.pages import blocks_of
from tests.docs.test_package_readmes import built  # noqa: F401  # a fixture

SCRIPTS = [block.text for block in blocks_of("scripts.md")]
FACES = {"labeldp_learn", "labeldp_runtime", "labeldp_verify"}


@pytest.mark.parametrize("script", SCRIPTS, ids=range(1, 1 + len(SCRIPTS)))
def test_a_script_runs_with_public_names_alone(script, built, inside):  # noqa: F811
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("labeldp"):
            assert node.module in FACES
            face = importlib.import_module(node.module)
            assert {alias.name for alias in node.names} <= {*face.__all__}
    inside(built)
    exec(compile(script, "scripts.md", "exec"), {"__name__": "script"})


def test_there_are_seven():
    assert len(SCRIPTS) == 7
