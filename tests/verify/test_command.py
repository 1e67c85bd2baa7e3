"""``labeldp-verify``: its exit codes, and that nothing of a file or of its name is obeyed."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction

import pytest
from click.testing import CliRunner
from labeldp_verify import check_bytes
from labeldp_verify.command import main as verify

from labeldp_compile.cli import main
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from verifier.tests.files import DOMAIN, file_of, rebuilt
from verifier.tests.integers import grouped

HOSTILE = "\x1b[2J\n\u202everified"


@pytest.fixture(scope="module")
def model():
    return compile_text(INTEGER_SPEC).model


def command(*arguments):
    """(exit code, stdout, stderr)"""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        verify([str(argument) for argument in arguments])
    said = []
    for stream in (out, err):
        stream.seek(0)
        said.append(stream.read())
        assert all(c.isprintable() or c == "\n" for c in said[-1]), said
    return end.value.code or 0, *said


def whole(*arguments):
    """What the command prints that comes with the compiler."""
    return CliRunner().invoke(main, ["verify", *map(str, arguments)]).stdout


def test_it_says_what_labeldp_verify_says(model, tmp_path):
    path = tmp_path / "x.onnx"
    path.write_bytes(model)
    code, said, _ = command(path)
    assert code == 0 and "12 checks passed" in said and f"{path}: verified." in said
    assert len(said.splitlines()) <= 15 and "ok     privacy" not in said
    assert whole(path) == said
    code, verbose, _ = command(path, "-v")
    assert whole(path, "--verbose") == verbose
    assert code == 0 and set(said.splitlines()) < set(verbose.splitlines())
    for part in (
        "ok     privacy",
        "proved by the file:",
        "only declared in it:",
        "belief in a label",
    ):
        assert part in verbose and part not in said
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


def test_a_gate_for_several_files(model, tmp_path):
    good, bad = tmp_path / "good.onnx", tmp_path / "bad.onnx"
    good.write_bytes(model)
    bad.write_bytes(rebuilt(model, lambda c: c["exact"].update(epsilon_label="1/10")))
    for limits, code in (("1", 0), ("0.9", 1)):
        assert command(good, good, "--max-epsilon", limits)[0] == code
    code, said, why = command(good, bad, tmp_path / "none.onnx", "--json")
    assert code == 2 and "none.onnx" in why
    found = json.loads(said)
    assert not found["ok"] and [f["ok"] for f in found["files"][:2]] == [True, False]
    assert command(good, bad)[0] == 1


def paid(model, prior):
    """The file as if its prior had cost so much; None: one with groups."""
    if model is None:
        return file_of(DOMAIN, grouped(), paid=Fraction(prior))

    def restate(certificate):
        label, cost = Fraction(certificate["exact"]["epsilon_label"]), Fraction(prior)
        certificate["exact"].update(epsilon_prior=str(cost), epsilon_total=str(label + cost))
        certificate["privacy"].update(epsilon_prior=float(cost), epsilon_total=float(label + cost))

    return rebuilt(model, restate)


@pytest.mark.parametrize("groups", [False, True])
def test_it_says_what_the_prior_cost(model, groups):
    model, label = (None, 2) if groups else (model, 1)
    for prior, shown, together in (
        ("0.9", "0.9", f"{label}.9"),
        ("9", "9", f"{label + 9}"),
        ("1/1000000000", "0.000001", f"{label}.000001"),  # up, never down
        ("1/3", "0.333334", f"{label}.333334"),
    ):
        report = check_bytes(paid(model, prior)).require()
        for brief in (False, True):
            words = " ".join(report.in_words("x.onnx", brief=brief))
            total = f"{together} including the prior (declared; {shown} for the prior); more if"
            assert total in words, words
    words = " ".join(check_bytes(paid(model, 0)).require().in_words("x.onnx"))
    assert "the prior spends nothing" in words and "including the prior" not in words


def test_nothing_of_a_file_or_of_its_name_is_obeyed(model, tmp_path):
    path = tmp_path / f"{HOSTILE}.onnx"
    path.write_bytes(rebuilt(model, lambda c: c.update(insecure=HOSTILE)))
    code, said, _ = command(path)
    assert code == 1 and "FAILED secure" in said and said.count("\n") == len(said.splitlines())
    assert command(tmp_path / f"{HOSTILE}.none")[0] == 2
    code, _, why = command(path, HOSTILE)  # as a pattern of a shell gives
    assert code == 2 and "cannot be read" in why
