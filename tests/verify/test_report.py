"""What a verification reports, and to whom."""

import json

import pytest
from labeldp_verify import VerificationError, check_bytes, check_file, verify_file

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
