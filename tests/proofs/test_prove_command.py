"""``labeldp export --to coq``: what it says and writes with Coq, a Coq that refuses, and none."""

import contextlib
import os
import re
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner
from labeldp_verify.budget import Budget, TooLargeError

from labeldp_compile.cli import main
from labeldp_compile.export import coq as coq_program
from labeldp_compile.export import coq as prove_command
from labeldp_compile.export.coq import run_coq
from runtime.tests.engines.cluster import wait_for
from tests.proofs.artifacts import old_path

ARTIFACT = old_path("rr-with-prior-text")


def prove(*arguments):
    return CliRunner().invoke(main, ["export", "--to", "coq", *map(str, arguments)])


def fake_coqc(folder, environment, script):
    """A coqc that answers so, alone on the path with the system's own programs."""
    folder.mkdir()
    program = folder / "coqc"
    program.write_text(
        f"#!/bin/sh\n[ $1 = --print-version ] && echo 8.16.1 4.13.1 && exit\n{script}\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    environment(PATH=f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")


def without_coq(environment, folder):
    folder.mkdir()
    environment(PATH=folder)


def test_coq_checks_a_file_that_stands_alone(coqc, tmp_path, inside):
    inside(tmp_path)
    done = prove(ARTIFACT, "-o", "answer.v")
    assert done.exit_code == 0, done.output
    assert "machine-checked: ε ≤ 1 (Coq 8." in done.output
    assert "The proof does not cover" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["answer.v"]  # no litter of Coq's
    text = Path("answer.v").read_text("ascii")
    assert "From LabelDP" not in text and "Theorem artifact_is_private" in text


def test_without_coq_the_file_is_written_and_nothing_is_claimed(tmp_path, environment):
    without_coq(environment, tmp_path / "bin")
    out = tmp_path / "answer.v"
    done = prove(ARTIFACT, "-o", out)
    assert done.exit_code == 0 and out.is_file()
    assert "nothing was checked" in done.output and "coqc answer.v" in done.output
    assert "machine-checked" not in done.output and "some seconds" not in done.output


@pytest.mark.parametrize(
    "script",
    [
        'echo "Error: Unable to unify" >&2; exit 1',
        "exit 139",
        "echo Axioms:; echo 'taken : False'",
        "echo Closed under the global context",  # of one theorem only
        "exit 0",
    ],
)
def test_what_coq_does_not_accept_is_not_written(tmp_path, environment, script):
    fake_coqc(tmp_path / "bin", environment, script)
    out = tmp_path / "answer.v"
    done = prove(ARTIFACT, "-o", out)
    assert done.exit_code == 1 and "does not accept the proof" in done.output
    assert done.stdout == ""
    first = done.stderr.splitlines()[0]
    said = r"Coq 8\.16\.1 checks \d+ integers; this takes some seconds"
    assert re.fullmatch(said, first), first
    assert not out.exists() and "machine-checked" not in done.output


def test_a_file_that_does_not_verify_is_not_written(tmp_path):
    data = bytearray(ARTIFACT.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "altered.onnx").write_bytes(data)
    done = prove(tmp_path / "altered.onnx", "-o", tmp_path / "answer.v")
    assert done.exit_code == 1 and "DOES NOT VERIFY" in done.output
    assert not (tmp_path / "answer.v").exists()


@pytest.mark.parametrize(
    ("name", "instead"),
    [("doctor-visits.v", "doctor_visits.v"), ("1.v", "artifact.v"), ("a", "a.v")],
)
def test_a_name_that_coq_refuses_is_refused_first(tmp_path, name, instead):
    done = prove(ARTIFACT, "-o", tmp_path / name)
    assert done.exit_code == 2 and f"such as {instead}" in done.output.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []


def test_files_that_coq_would_read_for_hours_are_refused(tmp_path, limit):
    limit(prove_command, "MAX_INTEGERS", 3)
    done = prove(ARTIFACT, "-o", tmp_path / "answer.v")
    assert done.exit_code == 2 and "the limit is 3" in done.output and str(ARTIFACT) in done.output


HONEST_LOOKING = """\
From Coq Require Import QArith.
Definition private (epsilon : Q) := True.
Theorem artifact_is_private : private (1 # 1000).
Proof. exact I. Qed.
Print Assumptions artifact_is_private.
"""


def written(tmp_path, environment):
    """The Coq file about the artifact, where there is no Coq."""
    without_coq(environment, tmp_path / "bin")
    assert prove(ARTIFACT, "-o", tmp_path / "answer.v").exit_code == 0
    return (tmp_path / "answer.v").read_text("ascii")


def test_a_header_proves_nothing_and_check_says_so(tmp_path, environment):
    honest = written(tmp_path, environment)
    header = honest[: honest.index("*)") + 2]
    forged = tmp_path / "forged.v"
    for text in (header + "\n" + HONEST_LOOKING, honest + "\n", honest[:-1], honest.upper(), ""):
        forged.write_text(text)
        done = prove(ARTIFACT, "--check", forged)
        assert done.exit_code == 1 and "IS NOT THE PROOF ABOUT" in done.stderr
        assert done.stdout == ""


def test_coq_accepts_the_file_with_the_honest_header(coqc):
    assert run_coq(HONEST_LOOKING, 1).accepted  # why only a comparison counts


def test_check_compares_with_what_the_artifact_gives(tmp_path, environment):
    written(tmp_path, environment)
    done = prove(ARTIFACT, "--check", tmp_path / "answer.v")
    assert done.exit_code == 2 and "byte for byte" in done.stdout
    assert "coqc is not on the path" in done.stderr and "machine-checked" not in done.output
    done = prove(old_path("laplace"), "--check", tmp_path / "answer.v")
    assert done.exit_code == 1 and "about another artifact" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answer.v", "bin"]


def test_check_asks_coq_too(coqc, tmp_path):
    assert prove(ARTIFACT, "-o", tmp_path / "answer.v").exit_code == 0
    done = prove(ARTIFACT, "--check", tmp_path / "answer.v")
    assert done.exit_code == 0
    assert "byte for byte" in done.stdout and "machine-checked: ε ≤ 1 (Coq 8." in done.stdout


def running(group):
    """Processes of a group that do not only wait to be reaped."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended
            found.append(path.read_text().rpartition(")")[2].split())
    return [stat for stat in found if stat[2] == group and stat[0] != "Z"]


BUSY = "while :; do :; done"


@pytest.mark.parametrize("script", [BUSY, f"({BUSY}) & wait", "sleep 1000 & wait"])
def test_coq_is_killed_at_the_end_of_the_budget(tmp_path, environment, limit, once, script):
    limit(coq_program, "_WAITING", 0.2)
    fake_coqc(tmp_path / "bin", environment, f"echo $$ > {tmp_path}/group\n{script}")
    group = tmp_path / "group"
    there = lambda: group.exists() and group.read_text()  # noqa: E731
    once(coq_program, "_limit", lambda: wait_for(there, "coqc"))  # before its time begins
    done = prove(ARTIFACT, "-o", tmp_path / "answer.v", "--budget", "6,2GB")
    assert done.exit_code == 2, done.output
    assert "Coq takes longer than" in done.stderr and "--budget" in done.stderr
    assert str(ARTIFACT) in done.stderr and "does not accept" not in done.output
    assert not (tmp_path / "answer.v").exists()
    wait_for(lambda: not running(group.read_text().strip()), "the end of those that were killed")


def test_coq_has_the_processor_time_that_verifying_left(tmp_path, environment):
    fake_coqc(tmp_path / "bin", environment, BUSY)
    with pytest.raises(TooLargeError, match="longer than the 1 s of processor time"):
        run_coq("", 1, budget=Budget(1.0, 10**9))


def test_coq_has_the_memory_of_the_budget(coqc, tmp_path):
    with pytest.raises(TooLargeError, match="more memory"):
        run_coq(HONEST_LOOKING, 1, budget=Budget(60.0, 20_000_000))
