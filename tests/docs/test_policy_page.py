"""docs/policy.md, from the first block to the last: commands, what they print, and the pipeline."""

import shlex

import pytest
import yaml
from click.testing import CliRunner

from labeldp_compile.check.policy import GatePolicy
from labeldp_compile.cli import main
from tests.docs.blocks import DOCS, blocks_of
from tests.docs.console import ROOT, examples, is_shown

TEXT = (DOCS / "policy.md").read_text(encoding="utf-8")
ASKED = "$ echo $?"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """(exit code, lines) of each command of the page, in order, and then of the pipeline."""
    folder = tmp_path_factory.mktemp("policy")
    (folder / "specs").symlink_to(ROOT / "specs")
    for block in blocks_of("policy.md"):
        if block.file_name:
            (folder / block.file_name).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file_name).write_text(block.text, encoding="utf-8")
    pipeline = yaml.safe_load((folder / ".github/workflows/labels.yaml").read_text())
    steps = [step.get("run", "") for step in pipeline["jobs"]["gate"]["steps"]]
    steps = [shlex.split(step.partition(" > ")[0]) for step in steps if step.startswith("labeldp")]
    commands = [words for words, _ in examples(TEXT)]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        results = [CliRunner().invoke(main, words[1:]) for words in commands + steps]
    return [(one.exit_code, one.output.splitlines()) for one in results]


@pytest.mark.slow
def test_every_command_prints_what_is_shown(runs):
    for (words, shown), (code, lines) in zip(examples(TEXT), runs, strict=False):
        asked = shown.index(ASKED) if ASKED in shown else len(shown)
        assert [str(code)] == (shown[asked + 1 :] or ["0"]), (words, lines)
        assert is_shown(shown[:asked], [line.rstrip() for line in lines]), (words, lines)


def test_the_steps_of_the_pipeline_pass(runs):
    steps = runs[len(examples(TEXT)) :]
    assert len(steps) == 4 and all(code == 0 for code, _ in steps), steps


def test_the_table_has_every_key():
    table = TEXT.split("| key |")[1].split("\n\n")[0]
    listed = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    assert listed == set(GatePolicy.model_fields) - {"version", "name"}


def test_the_committed_schema_is_that_of_the_policy():
    from labeldp_compile.check import policy_schema

    committed = (ROOT / "specs" / "labeldp-policy.schema.json").read_text(encoding="utf-8")
    assert committed == policy_schema(), "run: make schema"
