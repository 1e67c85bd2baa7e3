"""What kill -9 leaves of ``labeldp randomize``: its owner's alone, and the next run removes it."""

import signal
import stat
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_runtime.whole_file import partial_of

from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import INTEGER_SPEC, compile_text

N = 60_000
# The kernel kills the process at the byte of a file that it may not write: always in the middle,
# always at the same place, and as finally as kill -9 does.
KILLED_AT = """
import resource, signal, sys
from labeldp_compile.cli import main, randomize
at, Rewriting = int(sys.argv.pop(1)), randomize.Rewriting
def limited(*arguments, **options):
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (at, at))
    return Rewriting(*arguments, **options).run()
randomize.Rewriting = limited
main()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with an artifact, a key and a table that only its owner may read."""
    directory = tmp_path_factory.mktemp("place")
    (directory / "a.onnx").write_bytes(compile_text(INTEGER_SPEC).model)
    generator = np.random.default_rng(0)
    columns = {"id": generator.permutation(N), "y": generator.poisson(2.0, N)}
    pq.write_table(pa.table(columns), directory / "t.parquet", row_group_size=10_000)
    (directory / "t.parquet").chmod(0o600)
    assert labeldp("keygen", directory / "k.key").exit_code == 0
    return directory


@pytest.fixture
def output(place):
    """A name in the place; what comes to stand there, and beside it, goes afterwards."""
    known = set(place.iterdir())
    yield place / "out.parquet"
    for path in set(place.iterdir()) - known:
        path.unlink()


def randomize(place, output, *options):
    return labeldp("randomize", place / "a.onnx", place / "t.parquet", "-o", output, *options)


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def killed(place, output, *options, at):
    command = [sys.executable, "-c", KILLED_AT, str(at), "randomize", place / "a.onnx"]
    before = set(place.iterdir())
    process = subprocess.run(
        [*command, place / "t.parquet", "-o", output, *options],
        umask=0,
        check=False,
        capture_output=True,
    )
    assert process.returncode == -signal.SIGXFSZ, process.stderr
    return set(place.iterdir()) - before


KEYED = ("--key", "k.key", "--id-column", "id")


@pytest.mark.parametrize(
    ("suffix", "options", "words"),
    [
        ("parquet", ("--add", "private"), "ε was spent twice"),
        ("csv", ("--quiet",), "ε was spent twice"),
        ("parquet", KEYED, "spent nothing more"),
    ],
)
def test_the_next_run_names_and_removes_it(place, output, suffix, options, words, inside):
    inside(place)
    output = output.with_suffix(f".{suffix}")
    at = int(np.random.default_rng(len(options)).integers(20_000, 100_000))
    left = killed(place, output, *options, at=at)
    assert left == {partial_of(output)} and not output.exists()
    assert mode(partial_of(output)) == 0o600 and 0 < partial_of(output).stat().st_size <= at
    again = randomize(place, output, *options)
    assert again.exit_code == 0 and output.exists() and not partial_of(output).exists()
    (line,) = [line for line in again.stderr.splitlines() if "was killed" in line]
    assert str(partial_of(output)) in line and "removed" in line and words in line
    assert ("spent twice" in line) != ("--key" in options)
    assert "was killed" not in randomize(place, output, *options, "--overwrite").stderr
