"""^C is exit code 130 and one line at any moment, and leaves nothing half-written.

The moments are those at which Python raises audit events (an import, an opened file, a rename), so
that no clock decides what is tested.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fixtures.specs import compiled, spec

ROWS, SPEC = 3000, spec()
DRIVER = """
import os, runpy, signal, sys
module, moment = sys.argv[1], sys.argv[2]
sys.argv[1:] = sys.argv[3:]
event, _, part = moment.partition(":")
sent = False
def hook(name, arguments):
    global sent
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        return  # the command does not listen yet
    if not sent and name.startswith(event) and part in str(arguments):
        sent = True
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(hook)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
MOMENTS = {
    "plan": (":", "import:'click'", "import:'pydantic'", "open:spec.yaml"),
    "verify": ("import:'google.protobuf'", "open:a.onnx"),
    "labeldp-verify": (":", "import:'onnxruntime'", "open:a.onnx"),
    "train": ("import:'labeldp_trainer.config'", "open:train.yaml"),
    "labeldp_trainer": (":", "open:train.yaml"),
}
WRITING = [
    ("keygen", "open:labeldp-partial"),
    ("keygen", "os.link:labeldp-partial"),
    ("randomize", "open:labeldp-partial"),
    ("randomize", "os.rename:labeldp-partial"),
    ("compile", "os.rename:labeldp-partial"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("place")
    (directory / "a.onnx").write_bytes(compiled(SPEC).model)
    (directory / "spec.yaml").write_text(SPEC)
    (directory / "train.yaml").write_text("version: 1\n")
    labels = np.random.default_rng(0).poisson(2.0, ROWS)
    pq.write_table(pa.table({"y": labels}), directory / "t.parquet")
    return directory


def command(name, place):
    """The module and the arguments."""
    return {
        "plan": ("labeldp_compile.cli", "plan", "spec.yaml"),
        "verify": ("labeldp_compile.cli", "verify", "a.onnx"),
        "randomize": ("labeldp_compile.cli", "randomize", "a.onnx", "t.parquet", "-o", "o.parquet"),
        "compile": ("labeldp_compile.cli", "compile", "spec.yaml", "-o", "out"),
        "keygen": ("labeldp_compile.cli", "keygen", "labels.key"),
        "labeldp-verify": ("labeldp_verify", "a.onnx"),
        "train": ("labeldp_compile.cli", "train", "train.yaml"),
        "labeldp_trainer": ("labeldp_trainer", "train.yaml"),
    }[name]


def driven(name, place, moment):
    """Run a command that gets SIGINT at a moment."""
    module, *arguments = command(name, place)
    line = [sys.executable, "-c", DRIVER, module, moment, *arguments]
    return subprocess.run(line, cwd=place, capture_output=True, text=True, timeout=600, check=False)


def require_interrupted(done, name):
    program = "labeldp-verify" if name == "labeldp-verify" else "labeldp"
    assert done.returncode == 130, done.stderr
    assert (done.stdout, done.stderr) == ("", f"\n{program}: interrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "moment"), [(name, moment) for name in MOMENTS for moment in MOMENTS[name]]
)
def test_while_it_loads_and_reads(name, moment, place):
    if "train" in name:
        pytest.importorskip("labeldp_trainer")
    before = sorted(place.iterdir())
    require_interrupted(driven(name, place, moment), name)
    assert sorted(place.iterdir()) == before


@pytest.mark.parametrize(("name", "moment"), WRITING)
def test_while_a_file_is_written_nothing_of_it_stays(name, moment, place):
    before = set(place.rglob("*"))
    require_interrupted(driven(name, place, moment), name)
    assert set(place.rglob("*")) - before <= {place / "out"}


RUN = """
import atexit, signal, sys, time
from labeldp_verify.console.interrupts import run
def interrupt(): signal.raise_signal(signal.SIGINT)
{script}
run("labeldp", lambda: command)
"""
ENDS_OTHERWISE = """
def command():
    try: interrupt()
    except SystemExit: {after}
"""
DESTRUCTORS = """
class Broken:
    def __del__(self): {error}
class Held:
    def __del__(self): interrupt()
def command():
    Broken()
    Held()
    while True: time.sleep(0.01)
"""
INTERRUPTED = "\nlabeldp: interrupted\n"
ENDS = {
    "an exit comes after it": (ENDS_OTHERWISE.format(after="sys.exit(2)"), 130, "", ""),
    "an error comes after it": (ENDS_OTHERWISE.format(after="raise ImportError('x')"), 130, "", ""),
    "nothing comes after it": (ENDS_OTHERWISE.format(after="pass"), 130, "", ""),
    "a generator is closed whole": (
        """
def items():
    try: yield
    finally:
        signal.raise_signal(signal.SIGALRM)  # the reminder comes before anything handles the end
        print("closed", flush=True)
def command():
    for _ in items(): interrupt()
""",
        130,
        "closed\n",
        "",
    ),
    "a destructor waits": (DESTRUCTORS.format(error="pass"), 130, "", ""),
    "its error is told": (DESTRUCTORS.format(error="1 / 0"), 130, "", "ZeroDivisionError"),
    "it comes after the answer": ("atexit.register(interrupt)\ncommand = print", 0, "\n", None),
}


@pytest.mark.parametrize("case", ENDS)
def test_how_a_command_ends(case):
    script, code, stdout, error = ENDS[case]
    line = [sys.executable, "-c", RUN.format(script=script)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout) == (code, stdout), done.stderr
    if error is None:
        assert done.stderr == ""
    else:
        assert done.stderr.endswith(INTERRUPTED) and done.stderr.count("labeldp") >= 1
        assert (error in done.stderr) if error else (done.stderr == INTERRUPTED)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full disk")
def test_an_answer_that_cannot_be_written_is_no_success():
    line = [sys.executable, "-c", RUN.format(script="def command(): print('x')")]
    late = {**os.environ, "PYTHONUNBUFFERED": ""}  # so that nothing is written before the end
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            line, stdout=full, stderr=subprocess.PIPE, text=True, env=late, check=False
        )
    assert done.returncode == 120 and "No space left" in done.stderr


def test_nothing_heavy_is_loaded_before_the_first_line_that_listens(place):
    for module in ("labeldp_compile.cli.__main__", "labeldp_verify.__main__"):
        script = f"import sys; before = set(sys.modules); import {module}\n"
        script += "print(*sorted(set(sys.modules) - before))"
        line = [sys.executable, "-c", script]
        loaded = subprocess.run(line, capture_output=True, text=True, check=True).stdout.split()
        heavy = {"click", "argparse", "pathlib", "numpy", "onnx", "pydantic", "labeldp_compile.api"}
        assert not heavy & set(loaded), loaded
