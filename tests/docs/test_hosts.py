"""docs/hosts.md, from the first block to the last."""

import shlex
import shutil

import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from tests.docs.blocks import DOCS, blocks_of


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the blocks define."""
    found, folder = {}, tmp_path_factory.mktemp("hosts")
    shutil.copytree(DOCS.parent / "specs", folder / "specs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in blocks_of("hosts.md"):
            if block.language == "python":
                exec(compile(block.text, "hosts.md", "exec"), found)
                continue
            for line in block.text.splitlines():
                result = CliRunner().invoke(main, shlex.split(line)[1:])
                assert result.exit_code == 0, (line, result.output)
    return found


def test_a_host_gets_private_labels(names):
    assert names["private"].shape == (3,)
    assert names["entropy"].type == "tensor(int64)"
