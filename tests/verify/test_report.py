"""What a verification reports, and to whom."""

import json
from pathlib import Path

import pytest
from labeldp_verify import VerificationError, check_bytes, check_file, verify_file

from labeldp_compile.errors import InputError
from tests.fixtures.compiled import INTEGER_SPEC, compile_text

STEPS = [
    "model",
    "certificate",
    "tables",
    "rows",
    "privacy",
    "utility",
    "optimality",
    "claims",
    "whole file",
    "kernel",
    "execution",
    "secure",
]


def test_a_passing_report_lists_every_step():
    report = check_bytes(compile_text(INTEGER_SPEC).model)
    assert [check.name for check in report.checks] == STEPS
    stated = report.to_json()
    assert stated["ok"] is True and stated["format_version"] == "1.0"
    assert {"name", "ok", "detail"} == set(stated["checks"][0])
    assert not set(stated["proved"]) & set(stated["declared"])
    json.dumps(stated)


def test_a_graph_that_is_not_run_is_not_said_to_be():
    model = compile_text(INTEGER_SPEC).model
    report = check_bytes(model, run_graph=False)
    assert report.ok
    assert [check.name for check in report.checks] == [s for s in STEPS if s != "execution"]
    assert not check_bytes(model + b"\0", run_graph=False).ok


def test_verify_file_raises_and_keeps_the_report(tmp_path):
    path = tmp_path / "x.onnx"
    model = compile_text(INTEGER_SPEC).model
    path.write_bytes(model)
    assert verify_file(path).ok
    path.write_bytes(model + b"\0")
    with pytest.raises(VerificationError) as caught:
        verify_file(path)
    assert not caught.value.report.ok
    assert not check_file(path).ok


def test_files_that_cannot_be_read_are_input_errors(tmp_path):
    for path in (tmp_path / "missing.onnx", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            check_file(path)


def test_every_certificate_field_is_proved_or_declared():
    certificate = compile_text(INTEGER_SPEC).certificate.to_json()
    report = check_bytes(compile_text(INTEGER_SPEC).model).to_json()
    listed = {*report["proved"], *report["declared"]}
    # What is neither restates another field and is checked against it, or is fixed by the format.
    derived = {
        "format_version",
        "fields",
        *(f"exact.epsilon_{part}" for part in ("label", "prior", "total")),
    }
    for key, value in certificate.items():
        whole = key in listed | derived or not isinstance(value, dict)
        nested = [key] if whole else [f"{key}.{inner}" for inner in value]
        for name in nested:
            assert name in listed | derived, name


@pytest.mark.parametrize(
    "file", ["plain/auto-private-prior", "plain/laplace", "groups/columns", "joint/response"]
)
def test_a_summary_has_at_most_15_lines_and_says_where_its_numbers_come_from(file):
    path = Path(__file__).parents[1] / "golden" / f"{file}.onnx"
    report = check_bytes(path.read_bytes()).require()
    lines = [line for line in report.in_words("x") if not line.startswith("warning: ")]
    assert len(lines) <= 15 and lines[-1].startswith("x: verified. The file proves ε ≤ ")
    assert lines[-1].status == "ok"
    facts = {line[:15].strip(): line[16:] for line in lines[:-1]}
    assert facts["sha256"] == report.sha256 and facts["checks"].endswith(" checks passed")
    assert "not checked" in facts["signature"]
    for name in ("file", "labels", "ε per label", "total ε", "loss"):
        assert "(proved)" in facts[name] or "(declared)" in facts[name], name
    assert ("groups" in facts) == file.startswith("groups")
    for brief in (False, True):
        words = " ".join(report.in_words("x", brief=brief))
        assert ("declared public by the author of the spec, not proved" in words) == (
            "groups" in facts
        )
    assert len([x for x in report.in_words("x", brief=True) if "warning" not in x]) == 2
