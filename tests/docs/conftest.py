"""The site of docs/, built once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build_site(folder):
    """Build the site strictly into the folder."""
    pytest.importorskip("material", reason="mkdocs-material is not installed: the extra docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Its folder."""
    folder = tmp_path_factory.mktemp("site")
    build_site(folder)
    return folder
