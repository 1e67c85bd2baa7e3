"""Every script in benchmarks can start: its imports are found from where it stands."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Optional libraries may be missing; names of our own must be there.
START_EACH = """
import runpy, sys
from pathlib import Path
here = sys.argv[1]
sys.path[0] = here
for script in sorted(Path(here).glob("[a-z]*.py")):
    path = list(sys.path)
    try:
        runpy.run_path(str(script))
    except ImportError as error:
        ours = ("labeldp", "tests", "runtime", "benchmarks", "training_studies", "shared")
        if (error.name or "").startswith(ours):
            print(f"{script.name}: {error}")
    sys.path[:] = path
"""


@pytest.mark.slow  # imports every optional library
def test_every_script_starts():
    command = [sys.executable, "-c", START_EACH, str(ROOT / "benchmarks")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stdout, done.stdout
