"""``labeldp-verify``: its exit codes, and that nothing of a file or of its name is obeyed."""

import json
import subprocess
import sys

import pytest

from tests.helpers import INTEGER_SPEC, compile_text
from tests.verify.test_mutations import rebuilt

HOSTILE = "\x1b[2J\n\u202everified"


@pytest.fixture(scope="module")
def model():
    return compile_text(INTEGER_SPEC).model


def command(*arguments):
    """(exit code, stdout, stderr)"""
    done = subprocess.run(
        [sys.executable, "-m", "labeldp_verify", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    for text in (done.stdout, done.stderr):
        assert all(c.isprintable() or c == "\n" for c in text), text
    return done.returncode, done.stdout, done.stderr


def test_it_says_what_labeldp_verify_says(model, tmp_path):
    path = tmp_path / "x.onnx"
    path.write_bytes(model)
    code, said, _ = command(path)
    assert code == 0 and "ok     privacy" in said and f"{path}: verified." in said
    whole = [sys.executable, "-m", "labeldp_compile.cli", "verify", path]
    assert subprocess.run(whole, capture_output=True, text=True, check=True).stdout == said
    code, said, _ = command(path, "--json")
    assert code == 0 and json.loads(said)["ok"]


def test_a_failed_check_is_1_and_what_cannot_be_checked_2(model, tmp_path):
    path = tmp_path / "x.onnx"
    path.write_bytes(rebuilt(model, lambda c: c["exact"].update(epsilon_label="1/10")))
    code, said, _ = command(path)
    assert code == 1 and said.splitlines()[-1].endswith("DOES NOT VERIFY. Do not use this file.")
    assert command(tmp_path / "none.onnx")[0] == 2
    path.write_bytes(model)
    code, said, why = command(path, "--budget", "0.001,1GB")
    assert (code, said) == (2, "") and "not checked" in why
    assert command(path, "--budget", "much")[0] == 2
    assert command(path, "--signature", path)[0] == 2


def test_nothing_of_a_file_or_of_its_name_is_obeyed(model, tmp_path):
    path = tmp_path / f"{HOSTILE}.onnx"
    path.write_bytes(rebuilt(model, lambda c: c.update(insecure=HOSTILE)))
    code, said, _ = command(path)
    assert code == 1 and "FAILED secure" in said and said.count("\n") == len(said.splitlines())
    assert command(tmp_path / f"{HOSTILE}.none")[0] == 2
    code, _, why = command(path, HOSTILE)  # an argument too many, as a pattern of a shell gives
    assert code == 2 and "unrecognized arguments" in why
